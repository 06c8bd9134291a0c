"""Define the types of the catalog's files, after `config.schemas` has accepted them.

A test checks that the keys here are those of the schemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from imagegen.config.document import Document

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NotRequired

OneOrMore = str | list[str]
"""One constraint, or several of which one must hold."""


class OsReleaseData(TypedDict):
    """The keys of /etc/os-release that are compared."""

    ID: str
    VERSION_ID: str


class OsData(TypedDict):
    """A file of `dockerfiles/os`."""

    id: str
    family: str
    release: OsReleaseData
    suite: str
    image: str
    glibc: str
    lib_dir: str
    bootstrap: bool
    notes: NotRequired[list[str]]
    missing: NotRequired[str]
    source: str


class ReleaseData(TypedDict):
    """A release: an entry of `releases`, or a line of a CSV file."""

    version: str
    variant: NotRequired[str]
    requires: NotRequired[Mapping[str, OneOrMore]]
    limits: NotRequired[Mapping[str, OneOrMore]]
    built_for: NotRequired[Mapping[str, OneOrMore]]
    known_with: NotRequired[Mapping[str, OneOrMore]]
    recommends: NotRequired[Mapping[str, OneOrMore]]
    provides: NotRequired[Mapping[str, str]]
    uncertain: NotRequired[OneOrMore]
    aliases: NotRequired[OneOrMore]
    rank: NotRequired[str]
    """Text in a line of a CSV file."""
    confidence: NotRequired[str]
    index: NotRequired[str]
    tarball: NotRequired[Mapping[str, str]]
    artifact: NotRequired[str]
    notes: NotRequired[list[str]]
    apt: NotRequired[Mapping[str, str]]
    build_apt: NotRequired[Mapping[str, str]]
    wheels: NotRequired[Mapping[str, str]]
    facts: NotRequired[Mapping[str, object]]
    patched: NotRequired[Mapping[str, str]]
    origin: str
    source: str


class TableData(TypedDict):
    """What the columns of a CSV file of releases mean; see `catalog.tables`."""

    rows: NotRequired[Mapping[str, Mapping[str, object]]]
    keys: NotRequired[Mapping[str, Mapping[str, str | Mapping[str, str]]]]


class ContractData(TypedDict, total=False):
    """What a launch must give a component."""

    caps: list[str]
    devices: list[str]
    ulimits: Mapping[str, str]
    shm_bytes: str
    network: str


class ReasonData(TypedDict):
    """What something does, what happens without it, and where that stands."""

    why: str
    without: str
    source: str


class FlagData(ReasonData):
    """Words of a command line, and the reason for them."""

    flag: list[str]


class VariableData(ReasonData):
    """A variable that a launch sets for every rank."""

    set: str
    before: NotRequired[str]
    transport: NotRequired[str]
    several_nodes: NotRequired[bool]
    only: NotRequired[Mapping[str, str]]


class SettingData(TypedDict):
    """A variable that a component reads; see `model.launch.Setting`."""

    name: str
    option: str
    kind: str
    default: str
    means: str
    source: str
    least: NotRequired[str]
    most: NotRequired[str]
    of: NotRequired[str]


class PageNeedData(ReasonData):
    """The huge pages that a node needs."""

    size: str
    per_gpu: str
    more: str


class NodeFolderData(ReasonData):
    """A folder of the host that a container needs."""

    name: str
    host: str
    path: str


class StarterData(TypedDict):
    """A program that starts ranks; see `model.launch.Starter`."""

    form: str
    versions: str
    program: list[str]
    style: str


class LaunchData(TypedDict, total=False):
    """What a launch adds for a component; see `model.launch.Launch`."""

    transports: list[str]
    accels: list[str]
    default: bool
    replaces: list[str]
    host_network: bool
    devices: bool
    mpi_over_tcp: bool
    privileged: ReasonData
    hugepages: PageNeedData
    mounts: list[NodeFolderData]
    resource: str
    variables: list[VariableData]
    settings: list[SettingData]
    benchmark: list[FlagData]
    script: str
    program: str
    pmi: Mapping[str, str]
    starters: list[StarterData]


class ChecksData(TypedDict, total=False):
    """What `validate` knows of a component; see `model.catalog.Checks`."""

    order: str
    short_names: list[str]
    more_suites: list[str]
    hardware: str
    slow_probe: str
    before_job: bool


class RequestData(TypedDict, total=False):
    """How a request asks for a component; see `model.catalog.Question`."""

    order: str
    always: bool
    keys: Mapping[str, str]
    index_prefix: str
    values: list[str]
    successors: Mapping[str, str]
    gpu_libraries: list[str]


class OwnCopyData(TypedDict):
    """A part that a release brings, of which there may be another one in the image."""

    of: str
    warning: str


class PipPinsData(TypedDict):
    """Wheels of which a release's own wheel asks for certain versions."""

    of: list[str]
    warning: str


class ClueData(TypedDict):
    """What shows that an image has a component; see `model.catalog.Clue`."""

    kind: str
    name: str
    version: NotRequired[str]
    variant: NotRequired[str]
    value: NotRequired[str]


class VirtualData(TableData):
    """A file of `dockerfiles/virtual`."""

    name: str
    title: str
    releases: NotRequired[list[ReleaseData]]


class ComponentData(TableData):
    """A file `component.yaml`."""

    name: str
    title: str
    seconds: str
    suites: list[str]
    releases: list[ReleaseData]
    aliases: NotRequired[Mapping[str, str]]
    one_of: NotRequired[list[str]]
    rules: NotRequired[Mapping[str, str]]
    unknown: NotRequired[Mapping[str, str]]
    needs: NotRequired[list[str]]
    churn: NotRequired[str]
    megabytes: NotRequired[str | Mapping[str, str]]
    env: NotRequired[Mapping[str, str]]
    path: NotRequired[list[str]]
    installs: NotRequired[list[str]]
    contract: NotRequired[ContractData]
    entrypoint: NotRequired[str]
    trees: NotRequired[Mapping[str, str]]
    role: NotRequired[str]
    own_copies: NotRequired[Mapping[str, OwnCopyData]]
    pip_pins: NotRequired[PipPinsData]
    request: NotRequired[RequestData]
    checks: NotRequired[ChecksData]
    launch: NotRequired[LaunchData]
    found_by: NotRequired[list[ClueData]]


class RuleData(TypedDict):
    """A file of `dockerfiles/rules`."""

    what: str
    why: str
    source: list[str]


class KnownBadData(TypedDict):
    """A file of `dockerfiles/known-bad`."""

    symptom: str
    workaround: str
    where: str
    source: list[str]
    expires: str
    components: NotRequired[Mapping[str, OneOrMore]]
    packages: NotRequired[Mapping[str, Mapping[str, str]]]
    several: NotRequired[str]
    unless_env: NotRequired[Mapping[str, str]]


class ProofData(TypedDict):
    """An entry of a file of `proofs`."""

    cell: str
    at: str
    tier: str
    passed: bool
    image: str
    recipe: str
    tool: str
    pins: Mapping[str, str]
    suites: list[str]
    failed: NotRequired[list[str]]


OsDocument = Document[OsData]
VirtualDocument = Document[VirtualData]
ComponentDocument = Document[ComponentData]
