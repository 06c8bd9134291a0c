"""What BuildKit does with one step of a build, which it calls a vertex: start, print, end, fail."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VertexStarted:
    """A step runs. BuildKit may run one in several pieces: each starts and finishes."""

    digest: str
    name: str


@dataclass(frozen=True)
class VertexCached:
    """A step was there already. It may have started and finished a short piece: the look-up."""

    digest: str
    name: str


@dataclass(frozen=True)
class VertexFinished:
    """A step, or a piece of it, ended well. The seconds of the pieces add up."""

    digest: str
    name: str
    seconds: float


@dataclass(frozen=True)
class VertexFailed:
    """A step failed, or was cancelled because another one did."""

    digest: str
    name: str
    error: str


@dataclass(frozen=True)
class VertexLog:
    """One line that a step printed, without its line end."""

    digest: str
    name: str
    text: str


@dataclass(frozen=True)
class VertexProgress:
    """Bytes or items done inside a step; `total` is 0 where it is not known."""

    digest: str
    name: str
    id: str
    current: int
    total: int


VertexEvent = (
    VertexStarted | VertexCached | VertexFinished | VertexFailed | VertexLog | VertexProgress
)
