"""Turn BuildKit's trace of one build into events, and find the step that failed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagegen.engine.builds.lines import Lines
from imagegen.engine.builds.vertex_events import (
    VertexCached,
    VertexEvent,
    VertexFailed,
    VertexFinished,
    VertexLog,
    VertexProgress,
    VertexStarted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.engine.builds.trace import Log, Trace, Vertex

TAIL_LINES = 30
TAIL_ERRORS = 10
_STDERR = 2


@dataclass
class _State:
    """Hold what is known of one step so far; its output is cut into lines for each stream."""

    name: str = ""
    started: float = 0.0
    completed: float = 0.0
    cached: bool = False
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_ERRORS))
    streams: dict[int, Lines] = field(default_factory=dict)

    def lines(self, log: Log) -> Iterator[str]:
        """Return the lines that this piece of output completes."""
        for line in self.streams.setdefault(log.stream, Lines()).feed(log.data):
            self._keep(log.stream, line)
            yield line

    def rest(self) -> Iterator[str]:
        """Return the lines that were printed without a line end."""
        for stream, lines in self.streams.items():
            for line in lines.rest():
                self._keep(stream, line)
                yield line

    def _keep(self, stream: int, line: str) -> None:
        self.tail.append(line)
        if stream == _STDERR:
            self.errors.append(line)


class VertexTracker:
    """Follow one build: take its trace, return events, and name the step that failed."""

    def __init__(self) -> None:
        self._steps: dict[str, _State] = {}
        self._failed: list[Vertex] = []

    def feed(self, trace: Trace) -> Iterator[VertexEvent]:
        """Return the events of one message of the trace, in order."""
        for vertex in trace.vertexes:
            step = self._steps.setdefault(vertex.digest, _State())
            step.name = vertex.name or step.name
        for log in trace.logs:
            yield from self._log(log)
        for vertex in trace.vertexes:
            yield from self._vertex(vertex)
        for status in trace.statuses:
            name = self._steps.setdefault(status.vertex, _State()).name
            yield VertexProgress(status.vertex, name, status.id, status.current, status.total)

    def failure(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Return name, last lines and last errors of the step that made the build fail.

        Steps that were only cancelled, because of that step, are left out where possible.
        """
        own = [v for v in self._failed if "context canceled" not in v.error] or self._failed
        if not own:
            return "", (), ()
        step = self._steps[own[0].digest]
        return step.name, tuple(step.tail), tuple(step.errors)

    def _log(self, log: Log) -> Iterator[VertexEvent]:
        step = self._steps.setdefault(log.vertex, _State())
        for line in step.lines(log):
            yield VertexLog(log.vertex, step.name, line)

    def _vertex(self, vertex: Vertex) -> Iterator[VertexEvent]:
        step = self._steps[vertex.digest]
        if vertex.cached:
            if not step.cached:
                step.cached = True
                yield VertexCached(vertex.digest, vertex.name)
            return
        if vertex.started > step.started:
            step.started = vertex.started
            yield VertexStarted(vertex.digest, vertex.name)
        if vertex.completed > step.completed:
            step.completed = vertex.completed
            yield from (VertexLog(vertex.digest, step.name, line) for line in step.rest())
            yield self._end(vertex)

    def _end(self, vertex: Vertex) -> VertexEvent:
        if vertex.error:
            self._failed.append(vertex)
            return VertexFailed(vertex.digest, vertex.name, vertex.error)
        return VertexFinished(
            vertex.digest, vertex.name, max(vertex.completed - vertex.started, 0.0)
        )
