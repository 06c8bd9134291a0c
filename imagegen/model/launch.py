"""Define what a launch adds for a component."""

from __future__ import annotations

import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """Words of a command line that belong together, and the reason for them."""

    words: tuple[str, ...]
    why: str

    @property
    def text(self) -> str:
        """Quote the words for a POSIX shell."""
        return shlex.join(self.words)


@dataclass(frozen=True)
class Variable:
    """A variable that a launch sets for every rank, `NAME=value`, and the reason for it.

    The value may contain `{iface}`, `{gpus_per_node}` and `{first_node}`. The variable is placed
    before the one that `before` names, else last. `transport` limits it to one transport, and
    `several_nodes` to launches on more than one node.
    """

    setting: str
    why: str
    before: str = ""
    transport: str = ""
    several_nodes: bool = False

    @property
    def name(self) -> str:
        """Return the part before the equals sign."""
        return self.setting.partition("=")[0]


@dataclass(frozen=True)
class Launch:
    """What a launch adds for a component whose transport or acceleration is chosen."""

    transports: tuple[str, ...] = ()
    """The transports that the component offers."""
    accels: tuple[str, ...] = ()
    """The accelerations that the component offers."""
    default: bool = False
    """Whether an image with the component takes the acceleration when none is asked for."""
    host_network: bool = False
    """Whether the container uses the network of the host."""
    devices: bool = False
    """Whether the container gets the devices of the image's contract."""
    mpi_over_tcp: bool = False
    """Whether MPI itself stays away from the devices."""
    flags: tuple[Flag, ...] = ()
    """Flags of `docker run` that replace the contract's capabilities and devices."""
    variables: tuple[Variable, ...] = ()
    """Variables of every rank."""
    benchmark: tuple[Flag, ...] = ()
    """Flags of the benchmark that is in every image."""
    program: str = ""
    """The program that starts the ranks."""
