"""Define the types of the Engine API's answers, with the names that the API uses.

They have only the keys that this room reads. Source: Docker Engine API reference. An engine may
leave keys out, and may write null for an empty list.
"""

from __future__ import annotations

from typing import TypedDict


class EngineComponent(TypedDict, total=False):
    """Describe one program of the engine."""

    Name: str
    Version: str


class VersionAnswer(TypedDict, total=False):
    """Describe the answer to `/version`: name and version of the engine."""

    Version: str
    Arch: str
    Components: list[EngineComponent] | None


class IndexConfig(TypedDict, total=False):
    """Describe how the engine connects to one registry."""

    Secure: bool


class RegistryConfig(TypedDict, total=False):
    """Describe the registries in the engine's settings."""

    IndexConfigs: dict[str, IndexConfig] | None
    InsecureRegistryCIDRs: list[str] | None


class InfoAnswer(TypedDict, total=False):
    """Describe the answer to `/info`: the machine and the settings of the engine."""

    ID: str
    Driver: str
    DockerRootDir: str
    Runtimes: dict[str, object] | None
    NCPU: int
    MemTotal: int
    RegistryConfig: RegistryConfig | None


class ImageRow(TypedDict, total=False):
    """Describe one image in the list `/images/json`."""

    Id: str
    RepoTags: list[str] | None
    Labels: dict[str, str] | None
    Size: int


class ImageConfig(TypedDict, total=False):
    """Describe the configuration that an image gives to its containers."""

    Labels: dict[str, str] | None
    Env: list[str] | None
    Cmd: list[str] | None
    Entrypoint: list[str] | None


class RootFs(TypedDict, total=False):
    """Describe the layers of an image, the lowest first."""

    Layers: list[str]


class ImageAnswer(TypedDict, total=False):
    """Describe the answer to `/images/NAME/json`: all facts about one image."""

    Id: str
    RepoTags: list[str] | None
    RepoDigests: list[str] | None
    Created: str
    Size: int
    Config: ImageConfig
    RootFS: RootFs


class HistoryRow(TypedDict, total=False):
    """Describe one instruction that made an image."""

    CreatedBy: str
    Size: int


class ContainerRow(TypedDict, total=False):
    """Describe one container in the list `/containers/json`."""

    Names: list[str]
    ImageID: str
    State: str


class CacheEntry(TypedDict, total=False):
    """Describe one entry of the build cache in `/system/df`."""

    Size: int
    InUse: bool
    Shared: bool
    LastUsedAt: str | None
    CreatedAt: str | None


class BuildMessage(TypedDict, total=False):
    """Describe one message of a build: a piece of BuildKit's trace, the image id, or an error."""

    id: str
    aux: str | dict[str, str]
    error: str
