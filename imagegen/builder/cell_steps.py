"""Follow the steps of one cell's build: emit events while they run, make the record at the end."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.engine.builds import vertex_events
from imagegen.events import events
from imagegen.model.build import EXPORT_STEP, BuildRecord, StepRecord
from imagegen.model.image import layer_name
from imagegen.renderer.dockerfile import COUNTED, instructions
from imagegen.text import short_step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from imagegen.engine.builds.buildkit import StepError
    from imagegen.engine.builds.vertex_events import VertexEvent
    from imagegen.events.events import Sink
    from imagegen.model.build import Outcome
    from imagegen.model.recipe import Recipe, StepOrigin

_NAME = re.compile(r"^\[(?P<stage>\S+) +(?P<at>\d+)/(?P<of>\d+)\] (?P<text>.*)$", re.DOTALL)
LAST_LINES = 12


def origin_of(recipe: Recipe, step: str) -> StepOrigin | None:
    """Find the template line that a step of the engine came from.

    BuildKit counts a stage's FROM only where it is an image, so steps are counted from the end.
    """
    match = _NAME.match(step)
    if match is None:
        return None
    stage = [origin for origin in recipe.origins if origin.stage == match["stage"]]
    from_end = int(match["of"]) - int(match["at"])
    return stage[-1 - from_end] if from_end < len(stage) else None


class CellSteps:
    """Collect what the engine reports about the steps of one cell's build."""

    def __init__(self, recipe: Recipe, log: Path, sink: Sink, again: str = "") -> None:
        """Start with no steps.

        `log` is the cell's log file. `again` is the command that builds the matrix; where it is
        empty, it is made from the name of the matrix.
        """
        self._recipe, self._log, self._sink = recipe, log, sink
        self._again = again or f"imagegen build --matrix {recipe.spec.cell.matrix}"
        self._steps: dict[str, str] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._cached: set[str] = set()
        self._done: frozenset[str] = frozenset()

    @property
    def _cell(self) -> str:
        return self._recipe.spec.cell.id

    def again(self, attempt: int, of: int) -> None:
        """Report that the build is retried after a network failure."""
        self._seconds.clear()
        self._sink(events.CellRetried(self._cell, attempt, of))

    def ran(self, name: str, seconds: float) -> None:
        """Record the seconds of work that is no step of the cell's Dockerfile."""
        self._steps[name], self._seconds[name] = name, seconds

    def steps_done(self) -> None:
        """Remember which steps ran until now: the next request must not report them as cached."""
        self._done = frozenset(self._steps.values())

    def event(self, event: VertexEvent) -> None:
        """Handle one event of the engine; called from the thread that follows the build."""
        cell = self._cell
        if isinstance(event, vertex_events.VertexStarted):
            self._steps[event.digest] = event.name
            at = self._at(event.name)
            self._sink(events.StepStarted(cell, event.name, short_step(event.name), at))
        elif isinstance(event, vertex_events.VertexCached) and event.name not in self._done:
            self._steps[event.digest] = event.name
            self._cached.add(event.digest)
            self._sink(events.StepCached(cell, event.name, self._at(event.name)))
        elif isinstance(event, vertex_events.VertexFinished):
            # The engine tells of it again when it is asked again.
            if event.name not in self._done:
                self._seconds[event.digest] += event.seconds
            self._sink(events.StepEnded(cell, event.name, self._at(event.name)))
        elif isinstance(event, vertex_events.VertexFailed):
            self._sink(events.StepFailed(cell, event.name, event.error))
        elif isinstance(event, vertex_events.VertexLog):
            self._sink(events.StepOutput(cell, event.text, event.name))

    def _at(self, step: str) -> events.StepAt | None:
        origin = origin_of(self._recipe, step)
        if origin is None:
            return None
        origins = self._recipe.origins
        last = [one for one in origins if one.component == origin.component][-1]
        number = origins.index(origin) + 1
        return events.StepAt(origin.component, number, len(origins), origin == last)

    def evidence(self, error: StepError) -> tuple[str, ...]:
        """List what a user needs to know about a failed step: template line, command, output."""
        origin = origin_of(self._recipe, error.step)
        where = [] if origin is None else [f"{origin.template}:{origin.line}"]
        return (
            *where,
            f"step: {short_step(error.step) or 'none ran'}",
            *(f"  {line}" for line in error.last(LAST_LINES)),
            error.error.splitlines()[0] if error.error else "",
            f"full log: {self._log}",
            *([] if origin is None else [f"this step alone: {self._one_step(origin)}"]),
        )

    def _one_step(self, origin: StepOrigin) -> str:
        cell = self._recipe.spec.cell
        # A request is not a cell of a matrix; `--save` writes it to a matrix that has only this
        # cell.
        name = f" {cell.name}" if cell.file else ""
        return f"{self._again}{name} --until {origin.component}"

    def steps(self, history: Sequence[tuple[str, int]] = ()) -> tuple[StepRecord, ...]:
        """List the steps that ran or came from the cache, the export and what else `ran`.

        Each step has the bytes of its layer.

        `history` are the image's layers as the engine lists them; without it all sizes are 0.
        """
        sizes = layer_sizes(self._recipe, history)
        rows = []
        for digest, name in self._steps.items():
            match, origin = _NAME.match(name), origin_of(self._recipe, name)
            if match is not None:
                cached = digest in self._cached
                row = StepRecord(name, match["stage"], self._seconds[digest], cached)
                rows.append(row if origin is None else self._placed(row, origin, sizes))
            elif name.startswith(EXPORT_STEP) or digest == name:
                rows.append(StepRecord(name, "", self._seconds[digest], cached=False))
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
        """Make the record of a build that failed or was cancelled."""
        outcome: Outcome = "cancelled" if cause == "cancelled" else "failed"
        record = self._record(outcome, image_id, seconds)
        return replace(record, steps=self.steps(), cause=cause, detail=detail)

    def built(
        self,
        image_id: str,
        size_bytes: int,
        seconds: float,
        history: Sequence[tuple[str, int]] = (),
        warnings: tuple[str, ...] = (),
    ) -> BuildRecord:
        """Make the record of a build that succeeded.

        `history` are the image's layers as the engine lists them.
        """
        record = self._record("built", image_id, seconds)
        steps = self.steps(history)
        return replace(record, size_bytes=size_bytes, steps=steps, detail=warnings)

    def _record(self, outcome: Outcome, image_id: str, seconds: float) -> BuildRecord:
        spec, digest = self._recipe.spec, self._recipe.digest
        log = str(self._log)
        return BuildRecord(self._cell, spec.tag, digest, outcome, image_id, seconds, log=log)


def layer_sizes(
    recipe: Recipe, history: Sequence[tuple[str, int]]
) -> Mapping[tuple[str, int], int]:
    """Map (stage, index) to bytes, for the steps whose layers are in the image.

    Steps and layers are matched by position alone: where two stages start from the same stage,
    BuildKit of Docker 20.10 writes instructions of one into the history of the other (the sizes are
    right). They are counted from the end, because a base image may have a history of its own. The
    map is empty where the history is shorter than the recipe, for example when an engine squashed
    it.
    """
    made = [size for text, size in history if text.split(" ", 1)[0] in COUNTED]
    chain = [origin for origin in recipe.origins if origin.stage == origin.component]
    last = sum(one.counted and one.stage == "image" for one in instructions(recipe.dockerfile))
    if len(made) < len(chain) + last:
        return {}
    ours = made[len(made) - len(chain) - last : len(made) - last]
    return {(one.stage, one.index): size for one, size in zip(chain, ours, strict=True)}
