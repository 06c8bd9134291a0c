"""One cell's build as it is written down: its log file, its line on the board, its record."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.builder.layer_sizes import layer_sizes
from imagegen.console.progress import StepAt
from imagegen.engine.builds.step_events import (
    BuildEvent,
    StepCached,
    StepFailed,
    StepFinished,
    StepLog,
    StepStarted,
)
from imagegen.model.build import BuildRecord, StepRecord
from imagegen.model.image import layer_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from imagegen.console.progress import Board
    from imagegen.engine.builds.buildkit import StepError
    from imagegen.model.build import Outcome
    from imagegen.model.recipe import Recipe, StepOrigin

_NAME = re.compile(r"^\[(?P<stage>\S+) +(?P<at>\d+)/(?P<of>\d+)\] (?P<text>.*)$", re.DOTALL)
LAST_LINES = 12


def origin_of(recipe: Recipe, step: str) -> StepOrigin | None:
    """The template line that a step of the engine came from.

    BuildKit counts a stage's FROM only where it is an image, so steps are counted from the end.
    """
    match = _NAME.match(step)
    if match is None:
        return None
    stage = [origin for origin in recipe.origins if origin.stage == match["stage"]]
    from_end = int(match["of"]) - int(match["at"])
    return stage[-1 - from_end] if from_end < len(stage) else None


def short(step: str) -> str:
    """A step in one short line: without mounts and without the settings that every step sources."""
    text = re.sub(r"--mount=\S+ *", "", step)
    text = re.sub(r"\. /mnt/env\.sh &&\s*|apt-get update &&\s*", "", text)
    return re.sub(r"\s+", " ", text).strip()


class BuildLog:
    """Context manager around one cell's log file; makes the cell's BuildRecord at the end."""

    def __init__(self, path: Path, recipe: Recipe, board: Board, again: str = "") -> None:
        """`again` is the command that builds the matrix; empty for the one of its name."""
        self._path, self._recipe, self._board = path, recipe, board
        self._again = again or f"imagegen build --matrix {recipe.spec.cell.matrix}"
        self._steps: dict[str, str] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._cached: set[str] = set()
        self._done: frozenset[str] = frozenset()

    def __enter__(self) -> BuildLog:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("w", encoding="utf-8")
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    @property
    def _cell(self) -> str:
        return self._recipe.spec.cell.id

    def note(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()

    def again(self, attempt: int, of: int) -> None:
        """A failure that can heal is waited out, and the build tried again."""
        text = f"network failure, attempt {attempt} of {of}"
        self.note(text)
        self._board.step(self._cell, text)

    def steps_done(self) -> None:
        """That the engine has the steps which ran until now is no news from here on."""
        self._done = frozenset(self._steps.values())

    def event(self, event: BuildEvent) -> None:
        """Write one event down; called from the thread that follows the build."""
        if isinstance(event, StepStarted):
            self._steps[event.digest] = event.name
            self.note(f"> {event.name}")
            self._board.step(self._cell, short(event.name), self._at(event.name))
        elif isinstance(event, StepCached) and event.name not in self._done:
            self._steps[event.digest] = event.name
            self._cached.add(event.digest)
            self.note(f"= cached: {event.name}")
        elif isinstance(event, StepFinished):
            self._seconds[event.digest] += event.seconds
        elif isinstance(event, StepFailed):
            self.note(f"! {event.name}: {event.error}")
        elif isinstance(event, StepLog):
            self.note(f"  {event.text}")
            self._board.log(self._cell, event.text)

    def _at(self, step: str) -> StepAt | None:
        origin = origin_of(self._recipe, step)
        if origin is None:
            return None
        number = self._recipe.origins.index(origin) + 1
        return StepAt(origin.component, number, len(self._recipe.origins))

    def evidence(self, error: StepError) -> tuple[str, ...]:
        """What a user needs of a failed step: template line, instruction, last lines."""
        origin = origin_of(self._recipe, error.step)
        where = [] if origin is None else [f"{origin.template}:{origin.line}"]
        return (
            *where,
            f"step: {short(error.step) or 'none ran'}",
            *(f"  {line}" for line in error.last(LAST_LINES)),
            error.error.splitlines()[0] if error.error else "",
            f"full log: {self._path}",
            *([] if origin is None else [f"this step alone: {self._one_step(origin)}"]),
        )

    def _one_step(self, origin: StepOrigin) -> str:
        cell = self._recipe.spec.cell
        # A request is no cell of a matrix: what `--save` makes of it is alone in its own.
        name = f" {cell.name}" if cell.file else ""
        return f"{self._again}{name} --until {origin.component}"

    def steps(self, history: Sequence[tuple[str, int]]) -> tuple[StepRecord, ...]:
        """The steps that ran or came from the cache, each with the bytes of its layer."""
        return self._record_steps(layer_sizes(self._recipe, history))

    def _record_steps(self, sizes: Mapping[tuple[str, int], int]) -> tuple[StepRecord, ...]:
        rows = []
        for digest, name in self._steps.items():
            match, origin = _NAME.match(name), origin_of(self._recipe, name)
            if match is not None:
                cached = digest in self._cached
                row = StepRecord(name, match["stage"], self._seconds[digest], cached)
                rows.append(row if origin is None else self._placed(row, origin, sizes))
        return tuple(rows)

    def _placed(
        self, row: StepRecord, origin: StepOrigin, sizes: Mapping[tuple[str, int], int]
    ) -> StepRecord:
        pin = self._recipe.spec.pin(origin.component)
        return replace(
            row,
            component=origin.component,
            release=layer_name(self._recipe.spec, pin) if pin else "",
            size_bytes=sizes.get((origin.stage, origin.index), 0),
        )

    def failed(
        self, cause: str, detail: tuple[str, ...], seconds: float, image_id: str = ""
    ) -> BuildRecord:
        outcome: Outcome = "cancelled" if cause == "cancelled" else "failed"
        said = outcome if outcome == cause else f"{outcome}: {cause}"
        self.note(said)
        self._board.done(self._cell, outcome, said)
        return BuildRecord(
            self._cell,
            self._recipe.spec.tag,
            self._recipe.digest,
            outcome,
            image_id=image_id,
            seconds=seconds,
            steps=self._record_steps({}),
            cause=cause,
            detail=detail,
            log=str(self._path),
        )

    def built(
        self,
        image_id: str,
        size_bytes: int,
        seconds: float,
        history: Sequence[tuple[str, int]] = (),
        warnings: tuple[str, ...] = (),
    ) -> BuildRecord:
        """The record of a good end; `history` is what the engine says of the image's layers."""
        for line in (*warnings, f"built {image_id}"):
            self.note(line)
        self._board.done(self._cell, "built", f"built {image_id[7:19]} in {seconds:.0f} s")
        return BuildRecord(
            self._cell,
            self._recipe.spec.tag,
            self._recipe.digest,
            "built",
            image_id=image_id,
            seconds=seconds,
            size_bytes=size_bytes,
            steps=self.steps(history),
            detail=warnings,
            log=str(self._path),
        )
