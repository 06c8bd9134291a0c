"""Decide what the machine of an engine carries: builds at a time, bytes on its disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.errors import BuildError
from imagegen.text import human_bytes

if TYPE_CHECKING:
    from imagegen.engine.client import EngineMachine

TIGHT_SHARE = 0.8
"""From this share of what is free on, a build is told that it may not fit."""


def check_room(needed: int, machine: EngineMachine) -> str:
    """A warning for a disk that is nearly too small; empty where there is room, or nobody knows.

    Raises BuildError where the predicted bytes do not fit.
    """
    free = machine.free_bytes
    if free is None or needed <= TIGHT_SHARE * free:
        return ""
    wants, has = human_bytes(needed), f"{human_bytes(free)} are free at {machine.root_dir}"
    if needed <= free:
        return f"warning: the images will take about {wants}, and {has}"
    raise BuildError.of(
        f"the images will not fit: they take about {wants}, and {has}",
        evidence=["`imagegen plan` says which steps take how much"],
        hint="imagegen prune; or build all the same with `--no-disk-check`",
    )


MOST_JOBS = 8
BUILDS_A_CORE = 2
"""A build waits for the network, the disk and the engine about as long as it computes: on two cores
24 small images took 18 s with two builds at a time, 14 s with four, and no less with more."""
BYTES_A_BUILD = 4 << 30
"""Memory that one build may want: compilers and the unpacking of large wheels."""


def jobs_for(machine: EngineMachine) -> int:
    """Builds at a time where nobody says: as many as the engine's cores and memory carry."""
    in_memory = machine.memory_bytes // BYTES_A_BUILD
    return max(1, min(MOST_JOBS, machine.cores * BUILDS_A_CORE, in_memory))
