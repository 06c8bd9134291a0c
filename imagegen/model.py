"""The records that flow between the stages: Cell -> ImageSpec -> Recipe -> BuildRecord -> ...

Frozen, without IO. A stage takes the record of the stage before it and returns its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.budget import SizeBudget
    from imagegen.parts import Part

LABEL_RECIPE = "io.imagegen.recipe"
LABEL_CELL = "io.imagegen.cell"
LABEL_MATRIX = "io.imagegen.matrix"
LABEL_BASE = "org.opencontainers.image.base.digest"
LABEL_CONTRACT = "io.imagegen.contract"
LABEL_VALIDATED = "io.imagegen.validated"

EXPECTATION_PATH = "/etc/imagegen/image.json"
"""Where an image keeps what the resolver promised about it."""

Outcome = Literal["built", "up-to-date", "failed", "cancelled", "blocked"]
BaseMode = Literal["auto", "registry", "bootstrap"]


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
    holds unless a wish names this very build, and then majors must agree if anything is compiled;
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


@dataclass(frozen=True)
class Component:
    """One `dockerfiles/components/<name>/component.yaml` with its folder of templates and files.

    `needs` orders components in a Dockerfile; `seconds` and `megabytes` predict what its step
    costs, `churn` how often it changes for each build from nothing; `env` and `path` are what it
    adds to the environment; `suites` what proves it; `contract` what a launch must give it; `trees`
    maps a context folder to a tree of the payload; `installs` are the ways (see `render.ways_of`)
    of its templates; `aliases` other names of variants; of `one_of` it needs one (the first where
    none is asked for); `rules` explain its constraints."""

    name: str
    title: str
    needs: tuple[str, ...]
    seconds: float
    env: Mapping[str, str]
    path: tuple[str, ...]
    suites: tuple[str, ...]
    contract: Mapping[str, object]
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
    `virtual` are names that a wish may speak of and that no layer is made of: a GPU, a driver."""

    os: Mapping[str, OsRelease]
    components: Mapping[str, Component]
    virtual: Mapping[str, Component] = field(default_factory=dict)


@dataclass(frozen=True)
class Want:
    """A wish: component, constraint (`1.13`, `>=1,<2`, `any`, `none`, a variant), who asked."""

    component: str
    constraint: str
    asked_by: str


@dataclass(frozen=True)
class Omission:
    """A component that a cell goes without, and why."""

    component: str
    reason: str


@dataclass(frozen=True)
class Cell:
    """One point of a matrix, before it is resolved. `name` is unique in its matrix; `env` is what
    the matrix sets in its images, and `notes` say why it is made of what it is made of."""

    matrix: str
    name: str
    values: Mapping[str, str]
    wants: tuple[Want, ...]
    omitted: tuple[Omission, ...]
    tag: str
    profile: str
    base: BaseMode
    file: str
    line: int
    allow_unknown: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    size_budget: SizeBudget | None = None

    @property
    def id(self) -> str:
        """`matrix/name`, unique over all matrices."""
        return f"{self.matrix}/{self.name}"


@dataclass(frozen=True)
class Pin:
    """A component at the release that the resolver chose, and who led to it."""

    component: str
    release: Release
    via: tuple[str, ...]

    @property
    def version(self) -> str:
        return self.release.version


@dataclass(frozen=True)
class ImageSpec:
    """A cell with every component pinned. `tag` is the full local reference of the image.
    `given` are the virtual names (GPU, driver, …) with their values; `warnings` are sentences."""

    cell: Cell
    os: OsRelease
    pins: tuple[Pin, ...]
    tag: str
    given: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def pin(self, component: str) -> Pin | None:
        return next((pin for pin in self.pins if pin.component == component), None)


@dataclass(frozen=True)
class ContextFile:
    """One file of a build context: POSIX path relative to the context root."""

    path: str
    data: bytes
    mode: int = 0o644


@dataclass(frozen=True)
class StepOrigin:
    """Where the `index`-th (from 0) instruction of a stage came from: its template line."""

    stage: str
    index: int
    component: str
    template: str
    line: int


@dataclass(frozen=True)
class Recipe:
    """A rendered image, the digest over all of it; `templates`: a hash of each source read."""

    spec: ImageSpec
    dockerfile: str
    files: tuple[ContextFile, ...]
    origins: tuple[StepOrigin, ...]
    contract: Mapping[str, object]
    digest: str
    parts: tuple[Part, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StepRecord:
    """One step as it ran; `release` of its component, `size_bytes` of the layer, 0 for unknown."""

    name: str
    stage: str
    seconds: float
    cached: bool
    component: str = ""
    release: str = ""
    size_bytes: int = 0


@dataclass(frozen=True)
class BuildRecord:
    """How the build of one cell ended. `cause` groups failures: network, package, disk, …"""

    cell_id: str
    tag: str
    recipe: str
    outcome: Outcome
    image_id: str = ""
    seconds: float = 0.0
    size_bytes: int = 0
    steps: tuple[StepRecord, ...] = ()
    cause: str = ""
    detail: tuple[str, ...] = ()
    log: str = ""


@dataclass(frozen=True)
class ValidationRecord:
    """What `validate` said in a container of this image. `tier` is `static`, `full`, `partial` or
    `soft-roce`; `counts` maps outcomes to numbers; `report` is the document of `validate --json`.
    """

    image_id: str
    tag: str
    tier: str
    passed: bool
    counts: Mapping[str, int]
    seconds: float
    report: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Publication:
    """An image in a registry: `digest` is what the registry itself answered."""

    image_id: str
    reference: str
    digest: str
    previous: str = ""
