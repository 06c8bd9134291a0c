"""Test BuildKit's trace: protobuf bytes become records and then events."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError

from imagegen.engine.builds.trace import (
    Log,
    Status,
    Trace,
    Vertex,
    decode,
    message_class,
)
from imagegen.engine.builds.vertex_events import (
    VertexCached,
    VertexFailed,
    VertexFinished,
    VertexLog,
    VertexProgress,
    VertexStarted,
)
from imagegen.engine.builds.vertex_tracker import VertexTracker

# What Docker 20.10.24 sent for `RUN echo hi; echo err >&2; exit 3`: one log message.
REAL_LOG = (
    b"\x1a]\nGsha256:cf8700d6b5d5d1e3fcc786c82ab1250085b07012565af319738f4060df505777"
    b'\x12\x0b\x08\xca\xed\x85\xd8\x06\x10\xbb\x80\xdfK\x18\x01"\x03hi\n'
)


def vertex(
    started: float = 0.0,
    completed: float = 0.0,
    cached: bool = False,
    error: str = "",
    name: str = "RUN x",
) -> Trace:
    return Trace((Vertex(name, name, cached, started, completed, error),), (), ())


def log(data: bytes, stream: int = 1, step: str = "RUN x") -> Trace:
    return Trace((), (), (Log(step, stream, data),))


def test_a_log_message_of_a_real_engine_is_decoded() -> None:
    (line,) = decode(REAL_LOG).logs
    assert (line.stream, line.data) == (1, b"hi\n")
    assert line.vertex.startswith("sha256:cf8700d6")


def test_all_fields_survive_and_unknown_ones_are_skipped() -> None:
    message = message_class("StatusResponse")()
    message.vertexes.add(
        digest="d", name="n", cached=True, started={"seconds": 5, "nanos": 500_000_000}, error="e"
    )
    message.statuses.add(id="layer", vertex="d", current=3, total=9)
    warning = b"\x22\x03\x0a\x01d"
    assert decode(message.SerializeToString() + warning) == Trace(
        (Vertex("d", "n", True, 5.5, 0.0, "e"),), (Status("d", "layer", 3, 9),), ()
    )


def test_other_bytes_are_refused() -> None:
    with pytest.raises(DecodeError):
        decode(b"\x0a\xff")


def test_a_step_starts_and_finishes_once_however_often_it_is_told() -> None:
    tracker = VertexTracker()
    told = [vertex(), vertex(10), vertex(10), vertex(10, 12.5), vertex(10, 12.5)]
    events = [event for trace in told for event in tracker.feed(trace)]
    assert events == [VertexStarted("RUN x", "RUN x"), VertexFinished("RUN x", "RUN x", 2.5)]


def test_pieces_of_a_step_add_up() -> None:
    tracker = VertexTracker()
    told = [vertex(10, 11), vertex(20), vertex(20, 23)]
    events = [event for trace in told for event in tracker.feed(trace)]
    assert [e.seconds for e in events if isinstance(e, VertexFinished)] == [1, 3]


def test_a_cached_step_is_told_once() -> None:
    tracker = VertexTracker()
    told = [vertex(10, 10, cached=True)] * 2
    assert [e for trace in told for e in tracker.feed(trace)] == [VertexCached("RUN x", "RUN x")]


def test_output_becomes_lines_per_stream() -> None:
    tracker = VertexTracker()
    list(tracker.feed(vertex(10)))
    told = [log(b"one\ntw"), log(b"err", stream=2), log(b"o\n50%\r100%\n")]
    lines = [e.text for trace in told for e in tracker.feed(trace) if isinstance(e, VertexLog)]
    assert lines == ["one", "two", "100%"]
    ended = list(tracker.feed(vertex(10, 11)))
    assert ended == [VertexLog("RUN x", "RUN x", "err"), VertexFinished("RUN x", "RUN x", 1)]


def test_progress_inside_a_step() -> None:
    tracker = VertexTracker()
    list(tracker.feed(vertex(10)))
    (event,) = tracker.feed(Trace((), (Status("RUN x", "layer", 1, 2),), ()))
    assert event == VertexProgress("RUN x", "RUN x", "layer", 1, 2)


def test_the_failure_is_the_step_that_failed_by_itself() -> None:
    tracker = VertexTracker()
    told = [
        vertex(1, name="RUN other"),
        vertex(1),
        vertex(1, 2, error="context canceled", name="RUN other"),
        log(b"\n".join(b"%d" % n for n in range(40))),
        vertex(1, 3, error="exit code: 3"),
    ]
    events = [event for trace in told for event in tracker.feed(trace)]
    assert VertexFailed("RUN x", "RUN x", "exit code: 3") in events
    assert tracker.failure() == ("RUN x", tuple(str(n) for n in range(10, 40)), ())


def test_the_last_errors_of_the_failed_step_are_kept_beside_its_output() -> None:
    tracker = VertexTracker()
    told = [
        vertex(1),
        log(b"".join(b"wrong %d\n" % n for n in range(12)), stream=2),
        log(b"".join(b"%d\n" % n for n in range(40))),
        vertex(1, 3, error="exit code: 3"),
    ]
    assert [event for trace in told for event in tracker.feed(trace)]
    _, lines, errors = tracker.failure()
    assert lines == tuple(str(n) for n in range(10, 40))
    assert errors == tuple(f"wrong {n}" for n in range(2, 12))


def test_without_a_failed_step_there_is_no_name() -> None:
    assert VertexTracker().failure() == ("", (), ())
