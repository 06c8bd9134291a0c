"""Write the `horovodrun` line, which starts all ranks through MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.launcher.description import as_command
from imagegen.launcher.mpirun import script
from imagegen.launcher.variables import variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.launcher.description import Description, Launched
    from imagegen.model.launch import Flag


def horovodrun(description: Description) -> Launched:
    """Write the line that starts every rank; it hands its own variables on to all of them."""
    return as_command(_flags(description))


def _flags(description: Description) -> Iterator[Flag]:
    say, starter = description.flag, description.starter("horovodrun")
    bare = bool(description.habits.count)
    settings = variables(description)
    if settings and not bare:
        yield say("env.program", "env")
        yield from settings
    yield say("horovodrun.program", *(starter.program if starter else ("horovodrun",)))
    yield say("mpirun.count", description.habits.count or "-np", str(description.ranks))
    hosts = ",".join(f"{host}:{description.gpus_per_node}" for host in description.hosts)
    if hosts:
        yield say("mpirun.hosts", "-H", hosts)
    elif description.device != "gpu" and not bare:
        yield say("mpirun.slots", "-H", f"localhost:{description.gpus_per_node}")
    yield from script(description, "python3")
