"""Define what the catalog knows: OS releases, components and their releases."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from imagegen.model.launch import Contract, Launch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from imagegen.model.release import OsRelease, Release
    from imagegen.model.validation import Proof

INTERPRETER, TOOLKIT, CHECKS = ROLES = ("interpreter", "toolkit", "checks")
"""The roles of components that other code looks for: Python, the GPU toolkit, `validate`."""

COMPILER = "compiler"
"""What the releases of compilers provide: the version that a recipe compiles with."""


_RULE = re.compile(r"\(rule ([^()]*)\)")


def rules_named(text: str) -> tuple[str, ...]:
    """Find the rules that a text names, as in `… (rule two-nccls)`."""
    return tuple(_RULE.findall(text)) if "(rule " in text else ()


@dataclass(frozen=True)
class Checks:
    """What `validate` knows of a component, in every image."""

    order: int = 0
    """The place of its suite in a run, the lowest first; 0 runs after all others, by name."""
    short_names: tuple[str, ...] = ()
    """What the ids of its checks begin with, other than the name of the suite."""
    more_suites: tuple[str, ...] = ()
    """Other suites that apply to an image with the component."""
    hardware: str = ""
    """The hardware that its live checks look at: `gpu`, `rdma` or `harp`."""
    slow_probe: str = ""
    """The module of `validate/probes` that starts before the checks are loaded."""
    before_job: bool = False
    """Whether its live checks belong to `validate --preflight`."""


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
    """The letters before the digits of its version in names of wheel indexes: `cu` for `cu113`."""
    values: tuple[str, ...] = ()
    """Values of its releases that a request may ask for, such as `torchvision`."""
    successors: Mapping[str, str] = field(default_factory=dict)
    """The variants that come after the last release of another one: `{mlnx-ofed: doca}`."""
    gpu_libraries: tuple[str, ...] = ()
    """Components that it needs on a GPU; a wheel with a CUDA of its own needs none."""


@dataclass(frozen=True)
class OwnPart:
    """What the releases of a component bring or require besides what is in the image."""

    of: tuple[str, ...] = ()
    """The components that it is another release of."""
    warning: str = ""
    """What a user reads where the two differ; `{own}` and `{other}` are their versions."""


@dataclass(frozen=True)
class Clue:
    """What shows that an image of any maker has a component, and its version."""

    kind: str
    """One of CLUES: what the clue is about."""
    name: str
    """A glob for the name of the package, variable or library, or for the path of a folder."""
    version: str = ""
    """A regular expression with one group, the version; empty for the usual form of its kind."""
    variant: str = ""
    """The variant of the component that it shows."""
    value: str = ""
    """The value of a release that it shows, such as `torchvision`, in place of the component."""


CLUES = ("wheel", "deb", "conda", "env", "library", "folder")


@dataclass(frozen=True)
class Component:
    """One `dockerfiles/components/<name>/component.yaml` with its folder of templates and files.

    `needs` orders components in a Dockerfile. `seconds` and `megabytes` predict its step, `churn`
    its changes for each build from nothing. `env` and `path` extend the environment, `suites` prove
    it, `contract` is what a launch must give it. `trees` maps a context folder to a tree of the
    payload. `installs` are the ways (see `renderer.ways`) of its templates, `aliases` other names
    of variants. It needs one of `one_of`, the first if none is asked for. `rules` explain its
    constraints, `unknown` says what is not known of releases without facts about a name; `role` is
    one of ROLES. `own_copies` are values of its releases that are copies of a component, `pip_pins`
    facts of its releases that name the wheels that its own wheel requires.
    `found_by` shows it in an image of any maker, the strongest clue first.
    """

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
    unknown: Mapping[str, str] = field(default_factory=dict)
    megabytes: Mapping[str, float] = field(default_factory=dict)
    churn: float = 0.1
    role: str = ""
    own_copies: Mapping[str, OwnPart] = field(default_factory=dict)
    pip_pins: OwnPart = field(default_factory=OwnPart)
    request: Question = field(default_factory=Question)
    checks: Checks = field(default_factory=Checks)
    launch: Launch = field(default_factory=Launch)
    found_by: tuple[Clue, ...] = ()

    def installs_one(self, release: Release) -> bool:
        """Say whether its templates know a way to install a release."""
        return not self.installs or bool({*release.ways} & {*self.installs})

    @property
    def variants(self) -> tuple[str, ...]:
        """List the variants of its releases."""
        return tuple(dict.fromkeys(v for r in self.releases if (v := r.variant or r.own_variant)))


@dataclass(frozen=True)
class Rule:
    """One `dockerfiles/rules/<name>.yaml`: what a warning or a refusal means."""

    name: str
    what: str
    """The rule in one sentence."""
    why: str
    source: tuple[str, ...]
    """Public addresses, or files of the repository."""


PACKAGES = ("wheel", "deb", "conda", "host")
"""The kinds of packages that a row may name; those of the host are not in the image."""


KNOWN_BAD = "(known bad "
"""What ends a warning of a combination that is known to fail, before the name of its row."""


@dataclass(frozen=True)
class KnownBad:
    """One `dockerfiles/known-bad/<name>.yaml`: it is bad where all that it names is there."""

    name: str
    symptom: str
    workaround: str
    where: str
    """Where the workaround has to be done: `launch`, `build` or `host`."""
    source: tuple[str, ...]
    """Public addresses."""
    expires: str
    """The day from which somebody has to look at it again."""
    file: str = ""
    components: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Components, and names such as `gpu`, each with constraints of which one holds."""
    packages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Packages by their kind, each with a constraint."""
    several: str = ""
    """A glob for wheels of which there is more than one."""
    unless_env: Mapping[str, str] = field(default_factory=dict)
    """Variables with the values that make it good."""

    @property
    def text(self) -> str:
        """Say what happens, and what helps."""
        return f"{self.symptom}; workaround: {self.workaround} {KNOWN_BAD}{self.name})"

    @property
    def what(self) -> tuple[str, ...]:
        """List what has to be there, each in a few words: `nccl 2.17`, `wheel numpy >=2`."""
        found = [f"{name} {' or '.join(texts)}" for name, texts in self.components.items()]
        for kind, packages in self.packages.items():
            label = "on the host:" if kind == "host" else kind
            found += [f"{label} {name} {text}" for name, text in packages.items()]
        return (*found, *([f"several wheels {self.several}"] if self.several else []))

    def helped_by(self, env: Mapping[str, str]) -> bool:
        """Say whether an environment has a variable that makes it good."""
        return any(env.get(name) == value for name, value in self.unless_env.items())


@dataclass(frozen=True, eq=False)  # equal only to itself, so that caches can have it as a key
class Catalog:
    """All that is known, by name; `virtual` are names without layers, such as a GPU or a driver."""

    os: Mapping[str, OsRelease]
    components: Mapping[str, Component]
    virtual: Mapping[str, Component] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    """The names of all rules; `catalog.rules` reads what they say."""
    known_bad: tuple[KnownBad, ...] = ()
    """The combinations that are known to fail."""
    proofs: tuple[Proof, ...] = ()
    """What was built and validated."""

    @cached_property
    def buildable(self) -> Catalog:
        """Return the part of the catalog that images can be built from."""
        systems = {name: one for name, one in self.os.items() if not one.obstacle}
        components = {
            name: replace(one, releases=tuple(filter(one.installs_one, one.releases)))
            for name, one in self.components.items()
        }
        return replace(self, os=systems, components=components)

    @cached_property
    def compilers(self) -> Mapping[str, Release]:
        """Map each OS to the release that is its own compiler, where one is known.

        That is a row without a `rank`; those with one are for compilers beside the OS's own.
        """
        return {
            os: row
            for one in self.components.values()
            for row in one.releases
            if COMPILER in row.provides and not row.rank
            for os in row.requires.get("os", ())
        }

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
    def copies(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """Map a component to the components that bring a copy of it, with the copy's name."""
        found: dict[str, tuple[tuple[str, str], ...]] = {}
        for name, component in self.components.items():
            for value, copy in component.own_copies.items():
                for other in copy.of:
                    found[other] = (*found.get(other, ()), (name, value))
        return found

    @cached_property
    def request_values(self) -> tuple[str, ...]:
        """List the values of releases that a request may ask for."""
        return tuple(dict.fromkeys(v for _, one in self._asked for v in one.request.values))

    @cached_property
    def _asked(self) -> Iterable[tuple[str, Component]]:
        """List the components in the order of the search."""
        last = 1 + max((one.request.order for one in self.components.values()), default=0)
        every = self.components.items()
        return sorted(every, key=lambda pair: (pair[1].request.order or last, pair[0]))
