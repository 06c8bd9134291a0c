"""What the tool knows: OS releases, components and their releases."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

from imagegen.model.launch import Launch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


INTERPRETER, TOOLKIT, CHECKS = ROLES = ("interpreter", "toolkit", "checks")
"""What other code needs one component for: Python, the toolkit of GPUs, what runs in an image."""


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
    """One release of a component: what it is, what it asks of others, where it comes from.

    A constraint speaks of another component, or of a value such as `os`, `glibc` or `driver`; of
    several constraints for one name one must hold. The five maps of constraints differ in what
    follows when none holds:

    | map | where the other is not in the image | where no constraint holds |
    | --- | --- | --- |
    | `requires` | it is added | refused |
    | `limits` | nothing follows | refused |
    | `built_for` | nothing follows | refused, except for a build that is asked for by full name |
    | `known_with` | nothing follows | unknown: refused without `--allow-unknown` |
    | `recommends` | nothing follows | a warning |
    """

    component: str
    """The component that this is a release of."""
    version: str
    """The version as the project writes it, with the local part of a wheel: `1.11.0+cu113`."""
    variant: str
    """What tells releases of one version apart, such as `distro` and `source`; mostly empty."""
    requires: Mapping[str, tuple[str, ...]]
    """What has to be in the image too: `{python: ["3.8", "3.9"]}`."""
    apt: Mapping[str, str]
    """apt packages of the image, with their versions; `*` stands for any text."""
    build_apt: Mapping[str, str]
    """apt packages for what is compiled against it, such as headers, or for compiling it."""
    wheels: Mapping[str, str]
    """Python packages that pip installs, with their versions."""
    facts: Mapping[str, object]
    """Free data for templates and for `validate`, such as `{cuda: "11.3"}`."""
    origin: str
    """Where it comes from, in words: `wheel torch 1.11.0+cu113`."""
    source: str
    """The document that the facts of this release are taken from."""
    file: str
    """The file that has this release."""
    line: int
    """The line of that file."""
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What may be beside it, where it is there: `{driver: [">=450.80.02"]}`."""
    built_for: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What a binary was built for: `{cuda: ["11.3"]}`. Who asks for this build by its full name may
    have another one beside it, of the same major version if anything is compiled."""
    known_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What its source speaks of; whether it works with anything else is unknown."""
    recommends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What it was tested with or made for; it works with others too, under a warning."""
    provides: Mapping[str, str] = field(default_factory=dict)
    """Values that come with it and have no releases of their own, such as the NCCL in a wheel:
    `unknown` where no source says, with a `?` at the end where the source is not certain."""
    aliases: tuple[str, ...] = ()
    """Other names of the version: CUDA 11.3.1 has the compiler 11.3.109."""
    rank: int = 0
    """Releases of a lower rank are preferred, whatever their versions."""
    only_by_full_name: bool = False
    """Whether it is taken only by a request that gives its full version, or its variant."""
    confidence: str = "high"
    """How certain the source is: `high`, or `medium` for a warning."""
    index: str = ""
    """The index of wheels that pip asks instead of its default one."""
    tarball: Mapping[str, str] = field(default_factory=dict)
    """An archive that is downloaded and checked: `url` and `sha256`."""
    artifact: str = ""
    """The name in `artifacts.yaml` of a vendor part that a user has to give."""
    notes: tuple[str, ...] = ()
    """What a user should know who takes it; each is a warning."""

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
class Checks:
    """What `validate` knows of a component, in every image."""

    order: int = 0
    """The place of its suite in a run, the lowest first; 0 runs after all others, by name."""
    short_names: tuple[str, ...] = ()
    """What the ids of its checks begin with, besides the name of the suite."""
    more_suites: tuple[str, ...] = ()
    """Other suites that apply to an image with the component."""
    hardware: str = ""
    """The hardware that its live checks look at: `gpu`, `rdma` or `harp`."""
    slow_probe: str = ""
    """The module of `validate/probes` that starts before the checks are loaded."""


@dataclass(frozen=True)
class Question:
    """How a request asks for a component."""

    order: int = 0
    """Its place in the search: the lowest gets its newest release first; 0 comes last, by name."""
    always: bool = False
    """Whether every image has it, unless a request says `none`."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Other keys of a request that mean it, each with the variant: `{ofed: mlnx-ofed}`."""
    index_prefix: str = ""
    """What names of wheel indexes have before the digits of its version: `cu` for `cu113`."""
    values: tuple[str, ...] = ()
    """Values of its releases that a request may ask for, such as `torchvision`."""
    gpu_libraries: tuple[str, ...] = ()
    """Components that it needs on a GPU; a wheel with a CUDA of its own needs none."""


@dataclass(frozen=True)
class Component:
    """One `dockerfiles/components/<name>/component.yaml` with its folder of templates and files.

    `needs` orders components in a Dockerfile; `seconds` and `megabytes` predict what its step
    costs, `churn` how often it changes for each build from nothing; `env` and `path` are what it
    adds to the environment; `suites` what proves it; `contract` what a launch must give it; `trees`
    maps a context folder to a tree of the payload; `installs` are the ways (see `renderer.ways`)
    of its templates; `aliases` other names of variants; of `one_of` it needs one (the first where
    none is asked for); `rules` explain its constraints; `role` is one of ROLES. `own_copies` are
    values of its rows that are other copies of a component, and `pip_pins` are facts of its rows
    that name the releases of wheels that its own wheel asks for."""

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
    role: str = ""
    own_copies: Mapping[str, str] = field(default_factory=dict)
    pip_pins: tuple[str, ...] = ()
    request: Question = field(default_factory=Question)
    checks: Checks = field(default_factory=Checks)
    launch: Launch = field(default_factory=Launch)

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

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """Map each role to the component that has it."""
        return {one.role: name for name, one in self.components.items() if one.role}

    def with_role(self, role: str) -> str:
        """Return the component that has a role; empty where none has."""
        return self.roles.get(role, "")

    @cached_property
    def search_order(self) -> Mapping[str, int]:
        """Map components to their places in the search, those that have one."""
        return {name: one.request.order for name, one in self._asked if one.request.order}

    @cached_property
    def in_every_image(self) -> tuple[str, ...]:
        """List the components that every image has unless a request says `none`."""
        return tuple(name for name, one in self._asked if one.request.always)

    @cached_property
    def request_keys(self) -> Mapping[str, tuple[str, str]]:
        """Map keys of a request that are no component's name to a component and a variant."""
        return {
            key: (name, variant)
            for name, one in self.components.items()
            for key, variant in one.request.keys.items()
        }

    @cached_property
    def request_values(self) -> tuple[str, ...]:
        """List the values of releases that a request may ask for."""
        return tuple(dict.fromkeys(v for _, one in self._asked for v in one.request.values))

    @cached_property
    def _asked(self) -> Iterable[tuple[str, Component]]:
        """List the components in the order of the search."""
        last = 1 + max((one.request.order for one in self.components.values()), default=0)
        return sorted(
            self.components.items(), key=lambda pair: (pair[1].request.order or last, pair[0])
        )
