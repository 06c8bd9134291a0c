"""What this room reads of the answers of the Engine API, under the names that the API gives.

Source: Docker Engine API reference. An engine may leave keys out, and writes null for
some lists that are empty.
"""

from __future__ import annotations

from typing import TypedDict


class EngineComponent(TypedDict, total=False):
    """One program of the engine."""

    Name: str
    Version: str


class VersionAnswer(TypedDict, total=False):
    """`/version`: the engine by name and number."""

    Version: str
    Arch: str
    Components: list[EngineComponent] | None


class IndexConfig(TypedDict, total=False):
    """How the engine talks to one registry."""

    Secure: bool


class RegistryConfig(TypedDict, total=False):
    """The registries in the engine's own settings."""

    IndexConfigs: dict[str, IndexConfig] | None
    InsecureRegistryCIDRs: list[str] | None


class InfoAnswer(TypedDict, total=False):
    """`/info`: the machine of the engine, and how the engine is set up."""

    ID: str
    Driver: str
    DockerRootDir: str
    Runtimes: dict[str, object] | None
    NCPU: int
    MemTotal: int
    RegistryConfig: RegistryConfig | None


class ImageRow(TypedDict, total=False):
    """One image in the list `/images/json`."""

    Id: str
    RepoTags: list[str] | None
    Labels: dict[str, str] | None
    Size: int


class ImageConfig(TypedDict, total=False):
    """The configuration that an image gives to its containers."""

    Labels: dict[str, str] | None
    Env: list[str] | None
    Cmd: list[str] | None
    Entrypoint: list[str] | None


class RootFs(TypedDict, total=False):
    """The layers of an image, the lowest first."""

    Layers: list[str]


class ImageAnswer(TypedDict, total=False):
    """`/images/NAME/json`: one image in full."""

    Id: str
    RepoTags: list[str] | None
    RepoDigests: list[str] | None
    Created: str
    Size: int
    Config: ImageConfig
    RootFS: RootFs


class HistoryRow(TypedDict, total=False):
    """One instruction that made an image."""

    CreatedBy: str
    Size: int


class ContainerRow(TypedDict, total=False):
    """One container in the list `/containers/json`."""

    Names: list[str]
    ImageID: str
    State: str


class CacheEntry(TypedDict, total=False):
    """One entry of the build cache in `/system/df`."""

    Size: int
    InUse: bool
    Shared: bool
    LastUsedAt: str | None
    CreatedAt: str | None


class BuildMessage(TypedDict, total=False):
    """One message of a build: a piece of BuildKit's trace, the id of the image, or an error."""

    id: str
    aux: str | dict[str, str]
    error: str
