"""The records that flow between the stages: Cell -> ImageSpec -> Recipe -> BuildRecord -> ...

Frozen, without IO. A stage takes the record of the stage before it and returns its own; stages
never import one another. Units are in the names or in the docstrings: seconds, bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

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


@dataclass(frozen=True)
class Release:
    """One row of a component's releases: what it is, what it needs, where it comes from.

    `requires` maps a component (or `os`) to constraints of which one must hold; `facts` are free
    data for the templates and for `validate`; `origin` says in words where the bits come from.
    """

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


@dataclass(frozen=True)
class Component:
    """One `dockerfiles/components/<name>/component.yaml` with its folder of templates and files.

    `needs` orders components in a Dockerfile; `seconds` is the predicted build time of its step;
    `env` and `path` are what it adds to the image's environment; `suites` what proves it;
    `contract` what a launch must give it; `trees` maps a context folder to a tree of the payload.
    """

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

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(r.variant for r in self.releases if r.variant))


@dataclass(frozen=True)
class Catalog:
    """All that the tool knows: OS releases and components, by name."""

    os: Mapping[str, OsRelease]
    components: Mapping[str, Component]


@dataclass(frozen=True)
class Want:
    """A wish of a cell or a request: component, constraint (`1.13`, `>=1,<2`, `any`, `none`,
    or a variant such as `rdma-core`), and who asked."""

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
    """One point of a matrix, before it is resolved. `name` is unique in its matrix."""

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
    """A cell with every component pinned. `tag` is the full local reference of the image."""

    cell: Cell
    os: OsRelease
    pins: tuple[Pin, ...]
    tag: str

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
    """Where one instruction came from: the `index`-th (from 0) of a stage, its template line."""

    stage: str
    index: int
    component: str
    template: str
    line: int


@dataclass(frozen=True)
class Recipe:
    """A rendered image: Dockerfile, context and the digest over both (`sha256:<hex>`)."""

    spec: ImageSpec
    dockerfile: str
    files: tuple[ContextFile, ...]
    origins: tuple[StepOrigin, ...]
    contract: Mapping[str, object]
    digest: str


@dataclass(frozen=True)
class StepRecord:
    """One build step as it ran: `seconds` of wall time, `cached` if the engine had it already."""

    name: str
    stage: str
    seconds: float
    cached: bool


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
    """What `validate` said inside a container of exactly this image id.

    `tier` is `static`, `full` or `partial`; `counts` maps outcomes (passed, failed, …) to numbers;
    `report` is the JSON document of `validate --json`.
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
