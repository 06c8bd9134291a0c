"""Decide how many builds a machine can run at a time, and whether its disk is large enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.errors import BuildError
from imagegen.text import human_bytes

if TYPE_CHECKING:
    from imagegen.engine.client import EngineMachine

TIGHT_SHARE = 0.8
"""A build that needs more than this share of the free bytes gets a warning."""


def check_room(needed: int, machine: EngineMachine) -> str:
    """Check that the predicted bytes fit on the disk of the engine.

    Returns a warning where they nearly fill it; an empty string where there is room, or where the
    free bytes are unknown. Raises BuildError where they do not fit.
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
"""More builds than cores, because a build waits for the network, the disk and the engine about as
long as it computes: on two cores 24 small images took 18 s with two builds at a time, 14 s with
four, and no less with more.
"""
BYTES_A_BUILD = 4 << 30
"""Memory that one build may need, for compilers and for unpacking large wheels."""


def jobs_for(machine: EngineMachine) -> int:
    """Choose the number of builds at a time from the cores and the memory of the engine.

    It is used where the user gives no number.
    """
    in_memory = machine.memory_bytes // BYTES_A_BUILD
    return max(1, min(MOST_JOBS, machine.cores * BUILDS_A_CORE, in_memory))
