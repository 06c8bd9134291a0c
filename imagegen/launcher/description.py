"""Describe a training launch: what starts, where, and how; every form is made of this alone."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagegen.model.constraint import matches
from imagegen.model.launch import Contract, Flag, Habits, Launch, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from imagegen.model.cell import User
    from imagegen.model.launch import Starter

SOCKETS, NONE = "sockets", "none"
"""The transport and the acceleration that need no component."""
GIB = 1024**3
PORT = 29500
"""The port on which ranks meet where no MPI starts them."""

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./^-]+")


@dataclass(frozen=True)
class Cluster:
    """What a launch asks of Kubernetes or Slurm; empty values leave it out.

    `api` is the version of the MPIJob, `queue` that of Kueue, `network` a secondary network,
    `runtime` what starts containers under Slurm.
    """

    api: str = "v2beta1"
    gang: bool = False
    queue: str = ""
    network: str = ""
    resource: str = ""
    memory: str = ""
    runtime: str = "pyxis"
    preflight: bool = False
    gputopology: bool = False


@dataclass(frozen=True)
class Description:
    """What to launch, and how.

    `contract` is as in image.json. `components` maps a component to its version, `versions` to all
    its versions where others bring copies. `launches` has for every component of the catalog what
    a launch adds for it. `gpus_per_node` is also the number of ranks on a node of a CPU image,
    `batch` the batch of one rank. Without `hosts`, ranks run where the command runs, or where an
    operator starts them. `interface` is that of all traffic, `mpi_interface` that of MPI alone.
    """

    image: str
    contract: Contract
    components: Mapping[str, str]
    launches: Mapping[str, Launch]
    device: str
    reasons: Mapping[str, Reason]
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    habits: Habits = field(default_factory=Habits)
    form: str = "docker"
    name: str = "training"
    nodes: int = 1
    hosts: tuple[str, ...] = ()
    gpus_per_node: int = 1
    transport: str = SOCKETS
    accel: str = NONE
    model: str = "resnet50"
    batch: int = 64
    interface: str = ""
    mpi_interface: str = ""
    script: tuple[str, ...] = ()
    own_script: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    privileged: bool = False
    cdi: bool = False
    cluster: Cluster = field(default_factory=Cluster)
    user: User | None = None

    @property
    def ranks(self) -> int:
        """Return how many ranks there are on all nodes."""
        return self.nodes * self.gpus_per_node

    @property
    def given(self) -> Launch:
        """Return what the transport adds to the launch; nothing for sockets."""
        every = self.launches.values()
        return next((one for one in every if self.transport in one.transports), Launch())

    @property
    def accelerated(self) -> Launch:
        """Return what the acceleration adds to the launch, whichever component does it."""
        every = self.launches.values()
        return next((one for one in every if self.accel in one.accels), Launch())

    @property
    def program(self) -> str:
        """Return the program that starts ranks, by its full path; empty where there is none.

        With its full path, mpirun starts its daemons on other nodes from the same folder.
        """
        here = (self.launches[name] for name in self.components if name in self.launches)
        return next((one.program for one in here if one.program), "")

    def starter(self, form: str) -> Starter | None:
        """Return the program of a form that the image has, in the release that it has."""
        for name, version in self.components.items():
            for one in self.launches.get(name, Launch()).starters:
                if one.form == form and matches(one.versions, version):
                    return one
        return None

    @property
    def first_node(self) -> str:
        """Return the name of the first node; empty where only the cluster knows it."""
        if self.hosts:
            return self.hosts[0]
        if self.form == "mpijob" and self.cluster.api == "v2beta1":
            return f"{self.name}-worker-0.{self.name}"
        return "localhost" if self.nodes == 1 else ""

    @property
    def pages(self) -> int:
        """Return how many huge pages a node needs; 0 for none."""
        need = self.given.hugepages
        return need.per_gpu * self.gpus_per_node + need.more if need else 0

    @property
    def everything_allowed(self) -> bool:
        """Say whether the container gets every right."""
        return self.privileged or self.given.privileged is not None

    def why(self, key: str) -> Reason:
        """Return the reason for an argument of imagegen's own; `cap.*` is for all under `cap`."""
        group = f"{key.rpartition('.')[0]}.*"
        return self.reasons[key] if key in self.reasons else self.reasons[group]

    def flag(self, key: str, *words: str) -> Flag:
        """Make words of a command line with the reason of this key."""
        return Flag(words, self.why(key))


@dataclass(frozen=True)
class Launched:
    """What a user pastes or saves, and the reason for each argument of it.

    `flags` are the arguments in their order, `inner` those of a command in the text of another one.
    `around` are the commands before and after. The text of a command is that of its flags.
    """

    flags: tuple[Flag, ...]
    text: str
    inner: tuple[Flag, ...] = ()
    around: tuple[Flag, ...] = ()
    argv: tuple[str, ...] = ()


def as_command(flags: Iterable[Flag], around: Iterable[Flag] = ()) -> Launched:
    """Write a command over lines, each argument on a line of its own."""
    known = tuple(flags)
    argv = tuple(word for flag in known for word in flag.words)
    return Launched(known, over_lines(known), around=tuple(around), argv=argv)


def over_lines(flags: Iterable[Flag]) -> str:
    """Join flags as one command for a POSIX shell."""
    return " \\\n  ".join(flag.text for flag in flags)


def plainly(words: Iterable[str]) -> str:
    """Write words for a shell, with no quotes around those that no shell changes."""
    return " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words)


def around(description: Description, form: str, **more: str) -> tuple[Flag, ...]:
    """List the commands around a form; the data has them under `around.FORM.NUMBER`."""
    fields = {"name": description.name, "image": description.image, **more}
    prefix = f"around.{form}."
    keys = [key for key in description.reasons if key.startswith(prefix)]
    found = []
    for key in keys:
        reason = description.reasons[key]
        line, _, why = reason.why.partition("  # ")
        text = re.sub(r"\{(\w+)\}", lambda found: fields.get(found[1], found[0]), line)
        found.append(Flag((), Reason(why, reason.without, reason.source), shown=text))
    return tuple(found)
