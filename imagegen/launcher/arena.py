"""Write the `arena submit mpi` line, with the mpirun line of the job in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.launcher import mpirun
from imagegen.launcher.description import Launched, around, as_command, plainly

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.launcher.description import Description
    from imagegen.model.launch import Flag


def arena(description: Description) -> Launched:
    """Write the line that submits the job; the operator starts its pods and makes a hostfile."""
    inner = mpirun.flags(description, hostfile=True)
    text = plainly(word for flag in inner for word in flag.words)
    found = tuple(_flags(description, text))
    lines = around(description, "arena")
    if description.cluster.gputopology:
        before, after = (around(description, f"topology-{when}") for when in ("before", "after"))
        lines = (*before, *lines, *after)
    made = as_command(found, lines)
    return replace(made, inner=inner)


def _flags(description: Description, text: str) -> Iterator[Flag]:
    say = description.flag
    yield say("arena.submit", "arena", "submit", "mpi")
    yield say("arena.name", f"--name={description.name}")
    gpus = description.gpus_per_node if description.device == "gpu" else 0
    yield say("arena.gpus", f"--gpus={gpus}")
    yield say("arena.workers", f"--workers={description.nodes}")
    if description.cluster.gputopology:
        yield say("arena.gputopology", "--gputopology=true")
    yield say("arena.image", f"--image={description.image}")
    yield say("arena.command", text)
