"""Write the `torchrun` lines, one for each node, and the forms of earlier releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.launcher.description import PORT, Launched, as_command, over_lines
from imagegen.launcher.mpirun import script
from imagegen.launcher.variables import variables
from imagegen.model.launch import Flag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.launcher.description import Description

BY_NODE = "node-ranks"
"""The style in which each node gets a line of its own."""

OF_LAUNCHERS = ("MASTER_ADDR", "MASTER_PORT")
"""Variables that these programs set themselves."""


def torchrun(description: Description) -> Launched:
    """Write the line of every node; where they differ, one after the other."""
    starter = description.starter("torchrun")
    if starter is None or starter.style != BY_NODE or description.nodes == 1:
        return as_command(flags(description))
    lines = [tuple(flags(description, node=number)) for number in range(description.nodes)]
    named = zip(description.hosts, lines, strict=True)
    text = "\n\n".join(f"# on {host}\n{over_lines(each)}" for host, each in named)
    argv = tuple(word for flag in lines[0] for word in flag.words)
    return Launched(lines[0], text, argv=argv)


def flags(
    description: Description, node: int = 0, first: str = "", *, with_settings: bool = True
) -> Iterator[Flag]:
    """List the arguments on one node; `first` is where ranks meet, else the first host."""
    say, starter = description.flag, description.starter("torchrun")
    own = settings(description)
    if own and with_settings:
        yield say("env.program", "env")
        yield from own
    yield say("torchrun.program", *(starter.program if starter else ("torchrun",)))
    first = first or (description.hosts[0] if description.hosts else "localhost")
    if description.nodes > 1:
        yield say("torchrun.nodes", f"--nnodes={description.nodes}")
    yield say("torchrun.ranks", f"--nproc_per_node={description.gpus_per_node}")
    if description.nodes > 1 and starter and starter.style == BY_NODE:
        yield say("torchrun.node", f"--node_rank={node}")
        yield say("torchrun.address", f"--master_addr={first}")
        yield say("torchrun.port", f"--master_port={PORT}")
    elif description.nodes > 1:
        yield say("torchrun.id", f"--rdzv_id={description.name}")
        yield say("torchrun.backend", "--rdzv_backend=c10d")
        yield say("torchrun.endpoint", f"--rdzv_endpoint={first}:{PORT}")
    yield from _script(description)


def bare(description: Description) -> Iterator[Flag]:
    """List the program and the script alone, where an operator tells nodes and ranks."""
    starter = description.starter("torchrun")
    yield description.flag("torchrun.program", *(starter.program if starter else ("torchrun",)))
    yield from _script(description)


def _script(description: Description) -> Iterator[Flag]:
    if not description.script[0].endswith(".py"):
        yield description.flag("torchrun.program-file", "--no_python")
    # The program puts the Python itself before a script.
    program, *rest = script(description)
    yield Flag(program.words[-1:], program.reason)
    yield from rest


def settings(description: Description) -> tuple[Flag, ...]:
    """List the variables of a rank that this program does not set itself."""
    found = [
        one for one in variables(description) if one.words[0].partition("=")[0] not in OF_LAUNCHERS
    ]
    if description.interface:
        name = f"GLOO_SOCKET_IFNAME={description.interface}"
        found.append(description.flag("env.GLOO_SOCKET_IFNAME", name))
    return tuple(found)
