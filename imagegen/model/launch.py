"""Define what a launch gives a component."""

from __future__ import annotations

import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """Words of a command line that belong together, and why they are there."""

    words: tuple[str, ...]
    why: str

    @property
    def text(self) -> str:
        """Quote the words for a POSIX shell."""
        return shlex.join(self.words)


@dataclass(frozen=True)
class Variable:
    """A variable that a launch gives to every rank: `NAME=value`, and why.

    The value may have `{iface}`, `{gpus_per_node}` and `{first_node}` in it. The variable is placed
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
    """What a launch gives a component when its transport or its acceleration is chosen."""

    transports: tuple[str, ...] = ()
    """The transports that the component brings."""
    accels: tuple[str, ...] = ()
    """The accelerations that the component brings."""
    default: bool = False
    """Whether an image with the component takes the acceleration when none is asked for."""
    host_network: bool = False
    """Whether the container uses the network of the host."""
    devices: bool = False
    """Whether the container gets the devices of the image's contract."""
    mpi_over_tcp: bool = False
    """Whether MPI itself stays away from the devices."""
    flags: tuple[Flag, ...] = ()
    """Flags of `docker run` in place of the contract's capabilities and devices."""
    variables: tuple[Variable, ...] = ()
    """Variables of every rank."""
    benchmark: tuple[Flag, ...] = ()
    """Flags of the benchmark that travels with every image."""
    program: str = ""
    """The program that starts the ranks."""
