"""Define what a launch adds for a component, and what documents say about launches."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping


class Hugepages(TypedDict):
    """Huge pages that a node needs: `per_gpu` for each GPU, and `more`."""

    size: str
    per_gpu: int
    more: int


class Mount(TypedDict):
    """A folder of the host that a container needs, under a name for manifests."""

    name: str
    host: str
    path: str


class Contract(TypedDict, total=False):
    """What a launch must give, the label of images; a key that says nothing may be missing.

    `network` is `bridge` or `host`, `driver` the constraints on the GPU driver of the host, `env`
    the variables of every rank, `user` the number of a user other than root.
    """

    caps: list[str]
    devices: list[str]
    ulimits: dict[str, int]
    shm_bytes: int
    network: str
    privileged: bool
    hugepages: Hugepages
    mounts: list[Mount]
    driver: str
    env: dict[str, str]
    user: int


@dataclass(frozen=True)
class Reason:
    """Why an argument is there: what it does, what happens without it, where that stands."""

    why: str
    without: str = ""
    source: str = ""


@dataclass(frozen=True)
class Flag:
    """Words of a command line that belong together, and the reason for them.

    `shown` is their text where it is not their shell form, such as a line of a script.
    """

    words: tuple[str, ...]
    reason: Reason
    shown: str = ""

    @property
    def text(self) -> str:
        """Quote the words for a POSIX shell."""
        return self.shown or shlex.join(self.words)

    @property
    def why(self) -> str:
        """Return what it does."""
        return self.reason.why


@dataclass(frozen=True)
class Variable:
    """A variable that a launch sets for every rank, `NAME=value`, and the reason for it.

    The value may contain `{iface}`, `{gpus_per_node}` and `{first_node}`. The variable is placed
    before the one that `before` names, else last. `transport` limits it to one transport,
    `several_nodes` to launches on more than one node, and `only` to releases of components.
    """

    setting: str
    reason: Reason
    before: str = ""
    transport: str = ""
    several_nodes: bool = False
    only: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the part before the equals sign."""
        return self.setting.partition("=")[0]


@dataclass(frozen=True)
class Setting:
    """A variable that a component reads: its option, its default, its meaning, its values.

    `kind` is `flag` (0 or 1), `count` (a whole number) or `share` (a number). `of` names the flag
    without which it does nothing.
    """

    name: str
    option: str
    kind: str
    default: str
    means: str
    source: str
    least: str = ""
    most: str = ""
    of: str = ""

    @property
    def range(self) -> str:
        """Say which values it takes."""
        if self.kind == "flag":
            return "0 or 1"
        what = "a whole number" if self.kind == "count" else "a number"
        least = f" from {self.least}" if self.least else ""
        most = f" to {self.most}" if self.most else ""
        return f"{what}{least}{most}"


@dataclass(frozen=True)
class NodeFolder:
    """A folder of the host that a container needs, with the reason."""

    name: str
    host: str
    path: str
    reason: Reason


@dataclass(frozen=True)
class PageNeed:
    """The huge pages that a node needs, with the reason."""

    size: str
    per_gpu: int
    more: int
    reason: Reason


@dataclass(frozen=True)
class Starter:
    """A program of a component that starts ranks: for which `--as`, and for which releases.

    `style` says how its options are named: see the module of that form.
    """

    form: str
    versions: str
    program: tuple[str, ...]
    style: str


@dataclass(frozen=True)
class Launch:
    """What a launch adds for a component whose transport or acceleration is chosen."""

    transports: tuple[str, ...] = ()
    """The transports that the component offers."""
    accels: tuple[str, ...] = ()
    """The accelerations that the component offers."""
    default: bool = False
    """Whether an image with the component takes the acceleration when none is asked for."""
    replaces: tuple[str, ...] = ()
    """Accelerations of other components that this one can do too, without its own variables."""
    host_network: bool = False
    """Whether the container uses the network of the host."""
    devices: bool = False
    """Whether the container gets the devices of the image's contract."""
    mpi_over_tcp: bool = False
    """Whether MPI itself stays away from the devices."""
    privileged: Reason | None = None
    """Why the container has every right; None where it has not."""
    hugepages: PageNeed | None = None
    mounts: tuple[NodeFolder, ...] = ()
    resource: str = ""
    """The resource that a device plugin of Kubernetes gives the device under."""
    variables: tuple[Variable, ...] = ()
    """Variables of every rank."""
    settings: tuple[Setting, ...] = ()
    """Variables that a user may set."""
    benchmark: tuple[Flag, ...] = ()
    """Flags of the benchmark that is in every image."""
    script: str = ""
    """The benchmark of the component, where it lies in an image."""
    program: str = ""
    """The program that starts the ranks."""
    pmi: Mapping[str, str] = field(default_factory=dict)
    """Constraints on its version, with the interface through which Slurm starts its ranks."""
    starters: tuple[Starter, ...] = ()
    """Other programs that start ranks."""


@dataclass(frozen=True)
class HostFact:
    """What a document asks of a machine, and how it is done."""

    name: str
    wants: str
    command: str
    source: str


@dataclass(frozen=True)
class Habits:
    """How one document writes its launches, in the words of `dockerfiles/documents`.

    Empty values leave what imagegen does itself. `order` names the parts of an mpirun line,
    `variables` their order in it. `scripts` maps a form, or `any`, to what ranks run there.
    `interfaces` maps a transport to an interface, `hosts` is a pattern with `{n}` or `{name}`.
    """

    name: str = ""
    title: str = ""
    source: str = ""
    matrices: tuple[str, ...] = ()
    registry: str = ""
    program: str = ""
    interpreter: str = ""
    scripts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    over_tcp: bool = False
    dashes: str = ""
    count: str = ""
    model: str = ""
    model_of_one: str = ""
    interfaces: Mapping[str, str] = field(default_factory=dict)
    mpi_interface: str = ""
    hosts: str = ""
    first_host: int = 0
    manifest: Mapping[str, str] = field(default_factory=dict)
    launcher: tuple[str, ...] = ()
    host: tuple[HostFact, ...] = ()
