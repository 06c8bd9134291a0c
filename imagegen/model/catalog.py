"""What the tool knows: OS releases, components and their releases."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class OsRelease:
    """One `dockerfiles/os/<id>.yaml`: a distribution release that images can stand on."""

    id: str
    family: str
    os_id: str
    version_id: str
    suite: str
    image: str
    glibc: str
    lib_dir: str
    bootstrap: bool
    source: str
    file: str
    gcc: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Release:
    """One row of a component's releases: what it is, what it needs, where it comes from.
    What it asks of other components (or of `os`) is a map to constraints of which one must hold:
    `requires` brings the other into the image; `constrains` speaks of what is there anyway; `pairs`
    holds unless this very build is asked for, and then majors must agree if anything is compiled;
    outside of `known` the facts say nothing; outside of `warns` it works with a reservation.
    `provides` are values of names without rows of their own, such as the NCCL inside a wheel
    (`unknown` where no source says, with a `?` behind it where the source is not certain).
    `also` are other names of the version; `rank` puts rows behind others; a `named` row is taken
    only by its full name. `facts` are free data for templates and `validate`; `origin` says
    in words where the bits come from, `index`, `tarball` (url, sha256), `artifact` to programs."""

    component: str
    version: str
    variant: str
    requires: Mapping[str, tuple[str, ...]]
    apt: Mapping[str, str]
    build_apt: Mapping[str, str]
    wheels: Mapping[str, str]
    facts: Mapping[str, object]
    origin: str
    source: str
    file: str
    line: int
    constrains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pairs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    known: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provides: Mapping[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    rank: int = 0
    named: bool = False
    confidence: str = "high"
    index: str = ""
    tarball: Mapping[str, str] = field(default_factory=dict)
    artifact: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def where(self) -> str:
        """The row as a user finds it: `torch 1.11.0+cu113 (…/component.yaml:31)`."""
        name = f"{self.component} {self.version}" + (f" ({self.variant})" if self.variant else "")
        return f"{name} ({self.file}:{self.line})" if self.file else name


class Contract(TypedDict, total=False):
    """Capabilities, devices, ulimits, bytes of shared memory, and `bridge` or `host`."""

    caps: list[str]
    devices: list[str]
    ulimits: dict[str, int]
    shm_bytes: int
    network: str


@dataclass(frozen=True)
class Component:
    """One `dockerfiles/components/<name>/component.yaml` with its folder of templates and files.

    `needs` orders components in a Dockerfile; `seconds` and `megabytes` predict what its step
    costs, `churn` how often it changes for each build from nothing; `env` and `path` are what it
    adds to the environment; `suites` what proves it; `contract` what a launch must give it; `trees`
    maps a context folder to a tree of the payload; `installs` are the ways (see `renderer.ways`)
    of its templates; `aliases` other names of variants; of `one_of` it needs one (the first where
    none is asked for); `rules` explain its constraints."""

    name: str
    title: str
    needs: tuple[str, ...]
    seconds: float
    env: Mapping[str, str]
    path: tuple[str, ...]
    suites: tuple[str, ...]
    contract: Contract
    entrypoint: str
    trees: Mapping[str, str]
    releases: tuple[Release, ...]
    file: str
    installs: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    one_of: tuple[str, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    megabytes: Mapping[str, float] = field(default_factory=dict)
    churn: float = 0.1

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(r.variant for r in self.releases if r.variant))


@dataclass(frozen=True, eq=False)
class Catalog:
    """All that the tool knows: OS releases and components, by name. Equal is only the very same.
    `virtual` are names that can be asked for and that no layer is made of: a GPU, a driver."""

    os: Mapping[str, OsRelease]
    components: Mapping[str, Component]
    virtual: Mapping[str, Component] = field(default_factory=dict)
