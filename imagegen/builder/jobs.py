"""Decide how many builds run at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from imagegen.engine.client import EngineMachine

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
