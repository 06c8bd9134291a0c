"""Define the types of the Engine API's answers, and tell answers that are not of their type.

The names are those of the API. The types have only the keys that this room reads. An engine may
leave keys out, and may write null for an empty list. Source: Docker Engine API reference.
"""

from __future__ import annotations

import re
from types import UnionType
from typing import (
    Any,
    NamedTuple,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)


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
    Labels: dict[str, str] | None


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


class CreatedAnswer(TypedDict, total=False):
    """Describe the answer to each request that makes something: a container, a network, an exec."""

    Id: str


class ContainerState(TypedDict, total=False):
    """Describe whether a container runs."""

    Running: bool


class ContainerAnswer(TypedDict, total=False):
    """Describe the answer to `/containers/NAME/json`."""

    State: ContainerState


class ExecAnswer(TypedDict, total=False):
    """Describe the answer to `/exec/ID/json`."""

    ExitCode: int | None


class DiskAnswer(TypedDict, total=False):
    """Describe the answer to `/system/df`, as far as it is asked for the build cache."""

    BuildCache: list[CacheEntry] | None


class PruneAnswer(TypedDict, total=False):
    """Describe the answer to `/build/prune`."""

    SpaceReclaimed: int


class Shape(NamedTuple):
    """Say what an answer is, and which keys it, or each of its rows, must have."""

    method: str
    path: str
    type: Any
    needed: tuple[str, ...] = ()


SHAPES = (
    Shape("GET", r"/version", VersionAnswer),
    Shape("GET", r"/info", InfoAnswer),
    Shape("GET", r"/images/json", list[ImageRow], ("Id", "Size")),
    Shape("GET", r"/images/.+/history", list[HistoryRow], ("CreatedBy", "Size")),
    Shape("GET", r"/images/.+/json", ImageAnswer, ("Id", "Size", "RootFS")),
    Shape("GET", r"/containers/json", list[ContainerRow], ("ImageID",)),
    Shape("GET", r"/containers/[^/]+/json", ContainerAnswer, ("State",)),
    Shape("GET", r"/exec/[^/]+/json", ExecAnswer),
    Shape("GET", r"/system/df", DiskAnswer),
    Shape("POST", r"/build/prune", PruneAnswer),
    Shape("POST", r"/(containers|networks)/create|/containers/[^/]+/exec", CreatedAnswer, ("Id",)),
)
"""The shapes of the answers that this room reads; an answer of another shape is not understood."""


def misfit(method: str, path: str, answer: object) -> str:
    """Say why an answer is not what this path of the API answers; empty where it is.

    `path` is without the version. The answers of other paths are not looked at.
    """
    for shape in SHAPES:
        if shape.method == method and re.fullmatch(shape.path, path):
            return _misfit(answer, shape.type) or _lacking(answer, shape.needed)
    return ""


def _lacking(answer: Any, needed: tuple[str, ...]) -> str:
    rows: list[dict[str, object]] = answer if isinstance(answer, list) else [answer]
    lost = [key for key in needed if any(key not in row for row in rows)]
    return f"`{lost[0]}` is missing" if lost else ""


def _misfit(value: object, wanted: Any) -> str:
    """Compare a value with a type: a TypedDict, a list, a dict, a union or a plain class."""
    origin, inner = get_origin(wanted), get_args(wanted)
    if is_typeddict(wanted):
        if not isinstance(value, dict):
            return f"{_start(value)} is no mapping"
        hints = get_type_hints(wanted)
        found = ((key, _misfit(value[key], hints[key])) for key in hints if key in value)
        return next((f"`{key}`: {why}" for key, why in found if why), "")
    if origin in (Union, UnionType):
        return "" if any(not _misfit(value, one) for one in inner) else f"found {_start(value)}"
    if origin is list:
        if not isinstance(value, list):
            return f"{_start(value)} is no list"
        return next(filter(None, (_misfit(one, inner[0]) for one in value)), "")
    plain = origin or wanted
    fits = plain is object or isinstance(value, plain)
    return "" if fits else f"found {_start(value)}"


def _start(value: object) -> str:
    return f"`{value!r:.40}`"
