"""Split a rendered Dockerfile into its instructions, with the stage of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OWN_FOLDER = "image"
"""The context folder of the files of one image alone: a tree that is copied over the image."""

COUNTED = ("RUN", "COPY", "ADD", "WORKDIR")
"""The instructions that BuildKit counts as steps; each makes a history entry with a size."""

_FROM = re.compile(r"^FROM\s+\S+(?:\s+AS\s+(?P<stage>\S+))?\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Instruction:
    """One instruction with its continuation lines.

    `index` counts the steps of its stage from 0; an instruction that is no step has the index of
    the step after it. `first` is its first line, from 0.
    """

    stage: str
    index: int
    counted: bool
    text: str
    first: int


def instructions(dockerfile: str) -> Iterator[Instruction]:
    """List the instructions of all stages in order, without comments and what is before FROM."""
    stage, index = "", 0
    for first, text in _statements(dockerfile):
        match = _FROM.match(text)
        if match is not None:
            stage, index = match["stage"] or "", 0
            continue
        if not stage:
            continue
        counted = text.split(None, 1)[0] in COUNTED
        yield Instruction(stage, index, counted, text, first)
        index += counted


def _statements(dockerfile: str) -> Iterator[tuple[int, str]]:
    """List each statement with the number of its first line; comments inside it are left out."""
    kept: list[str] = []
    first = 0
    for number, line in enumerate(dockerfile.split("\n")):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        first = first if kept else number
        kept.append(line)
        if not line.endswith("\\"):
            yield first, "\n".join(kept)
            kept = []


def steps(dockerfile: str) -> Mapping[tuple[str, int], str]:
    """Map (stage, index) to the text of each step."""
    found = instructions(dockerfile)
    return {(one.stage, one.index): one.text for one in found if one.counted}


def until_before(dockerfile: str, stage: str, index: int) -> str:
    """Cut a Dockerfile off before a step.

    Built with `stage` as target, it makes the state in which that step runs.
    """
    lines = dockerfile.split("\n")
    found = next(
        (
            one
            for one in instructions(dockerfile)
            if one.counted and (one.stage, one.index) == (stage, index)
        ),
        None,
    )
    return dockerfile if found is None else "\n".join([*lines[: found.first], ""])
