"""Define the events of a step, which BuildKit calls a vertex: start, output, end, failure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VertexStarted:
    """Report that a step runs.

    BuildKit may run it in pieces; each of them starts and finishes.
    """

    digest: str
    name: str


@dataclass(frozen=True)
class VertexCached:
    """Report that a step came from the cache.

    It may have started and finished a short piece before: the look-up.
    """

    digest: str
    name: str


@dataclass(frozen=True)
class VertexFinished:
    """Report that a step, or a piece of it, ended well; the seconds of the pieces add up."""

    digest: str
    name: str
    seconds: float


@dataclass(frozen=True)
class VertexFailed:
    """Report that a step failed, or was cancelled because another one failed."""

    digest: str
    name: str
    error: str


@dataclass(frozen=True)
class VertexLog:
    """Report one line that a step printed, without its line end."""

    digest: str
    name: str
    text: str


@dataclass(frozen=True)
class VertexProgress:
    """Report bytes or items that are done inside a step; `total` is 0 where it is unknown."""

    digest: str
    name: str
    id: str
    current: int
    total: int


VertexEvent = (
    VertexStarted | VertexCached | VertexFinished | VertexFailed | VertexLog | VertexProgress
)
