"""What the tool knows: OS releases, components and their releases."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from imagegen.model.release import OsRelease, Release


INTERPRETER, TOOLKIT, CHECKS = ROLES = ("interpreter", "toolkit", "checks")
"""What other code needs one component for: Python, the toolkit of GPUs, what runs in an image."""

_RULE = re.compile(r"\(rule ([^()]*)\)")


def rules_named(text: str) -> tuple[str, ...]:
    """The rules that a text names: `… (rule two-nccls)`."""
    return tuple(_RULE.findall(text)) if "(rule " in text else ()


class Contract(TypedDict, total=False):
    """Capabilities, devices, ulimits, bytes of shared memory, and `bridge` or `host`."""

    caps: list[str]
    devices: list[str]
    ulimits: dict[str, int]
    shm_bytes: int
    network: str


@dataclass(frozen=True)
class Flag:
    """Words of a command line that belong together, and why they are there."""

    words: tuple[str, ...]
    why: str

    @property
    def text(self) -> str:
        """The words quoted for a POSIX shell."""
        return shlex.join(self.words)


@dataclass(frozen=True)
class Variable:
    """A variable that a launch gives to every rank: `NAME=value`, and why.

    The value may have `{iface}`, `{gpus_per_node}` and `{first_node}` in it. It stands in front of
    the variable `before`, or else last. With `transport` it is for that one alone.
    """

    setting: str
    why: str
    before: str = ""
    transport: str = ""
    several_nodes: bool = False

    @property
    def name(self) -> str:
        return self.setting.partition("=")[0]


@dataclass(frozen=True)
class Launch:
    """What a launch gives a component, where its transport or its acceleration is chosen.

    `default` takes the acceleration where the image has the component and none is asked for.
    `devices` gives the devices of the contract, `flags` stand in place of its capabilities and
    devices, and `mpi_over_tcp` keeps MPI itself off the devices. `benchmark` are flags of the
    benchmark. `program` starts the ranks.
    """

    transports: tuple[str, ...] = ()
    accels: tuple[str, ...] = ()
    default: bool = False
    host_network: bool = False
    devices: bool = False
    mpi_over_tcp: bool = False
    flags: tuple[Flag, ...] = ()
    variables: tuple[Variable, ...] = ()
    benchmark: tuple[Flag, ...] = ()
    program: str = ""


@dataclass(frozen=True)
class Checks:
    """What `validate` knows of a component, in every image.

    Its suite has the place `order`: the lowest runs first, 0 runs after all others, by name.
    `short_names` are what ids of its checks begin with, besides the name of the suite.
    `more_suites` are suites of others that hold for it too. `hardware` is what its live checks look
    at. `slow_probe` is the module of `validate/probes` that starts before the checks are loaded.
    """

    order: int = 0
    short_names: tuple[str, ...] = ()
    more_suites: tuple[str, ...] = ()
    hardware: str = ""
    slow_probe: str = ""


@dataclass(frozen=True)
class Question:
    """How a request asks for a component, and what the answer takes with it.

    `order` is the component's place in the search: the lowest takes its newest release first, 0
    comes after all others, by name. `always` puts it into every image. `keys` are other keys of a
    request, each with the variant that it means. `index_prefix` is what names of wheel indexes
    have before the digits of its version. `values` are values of its rows that can be asked for.
    `gpu_libraries` are what it computes on a GPU with.
    """

    order: int = 0
    always: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)
    index_prefix: str = ""
    values: tuple[str, ...] = ()
    gpu_libraries: tuple[str, ...] = ()


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


@dataclass(frozen=True)
class Rule:
    """One `dockerfiles/rules/<name>.yaml`: what a warning or a refusal means."""

    name: str
    what: str
    """The rule in one sentence."""
    why: str
    source: tuple[str, ...]
    """Public addresses, or files of the repository."""


@dataclass(frozen=True, eq=False)
class Catalog:
    """All that the tool knows: OS releases and components, by name. Equal is only the very same.
    `virtual` are names that can be asked for and that no layer is made of: a GPU, a driver."""

    os: Mapping[str, OsRelease]
    components: Mapping[str, Component]
    virtual: Mapping[str, Component] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    """The names of all rules; `catalog.rules` reads what they say."""

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """Role -> the component that has it."""
        return {one.role: name for name, one in self.components.items() if one.role}

    def with_role(self, role: str) -> str:
        """The component that has a role; empty where none has."""
        return self.roles.get(role, "")

    @cached_property
    def search_order(self) -> Mapping[str, int]:
        """Component -> its place in the search, of those that have one."""
        return {name: one.request.order for name, one in self._asked if one.request.order}

    @cached_property
    def in_every_image(self) -> tuple[str, ...]:
        """The components that every image has unless a request says `none`."""
        return tuple(name for name, one in self._asked if one.request.always)

    @cached_property
    def request_keys(self) -> Mapping[str, tuple[str, str]]:
        """Key of a request that is no component's name -> the component and the variant."""
        return {
            key: (name, variant)
            for name, one in self.components.items()
            for key, variant in one.request.keys.items()
        }

    @cached_property
    def request_values(self) -> tuple[str, ...]:
        """The values of rows that can be asked for."""
        return tuple(dict.fromkeys(v for _, one in self._asked for v in one.request.values))

    @cached_property
    def _asked(self) -> Iterable[tuple[str, Component]]:
        """The components in the order of the search."""
        last = 1 + max((one.request.order for one in self.components.values()), default=0)
        return sorted(
            self.components.items(), key=lambda pair: (pair[1].request.order or last, pair[0])
        )
