"""Whether what a build will write fits on the engine's disk."""

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
