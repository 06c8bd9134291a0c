"""Decode `moby.buildkit.trace`, the progress that BuildKit streams while it builds.

Field numbers: api/services/control/control.proto of moby/buildkit (StatusResponse, Vertex,
VertexStatus, VertexLog). Only the fields used here are declared; protobuf skips the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

_PACKAGE = "moby.buildkit.v1"

_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "Timestamp": (("seconds", 1, "int64"), ("nanos", 2, "int32")),
    "Vertex": (
        ("digest", 1, "string"),
        ("name", 3, "string"),
        ("cached", 4, "bool"),
        ("started", 5, "Timestamp"),
        ("completed", 6, "Timestamp"),
        ("error", 7, "string"),
    ),
    "VertexStatus": (
        ("id", 1, "string"),
        ("vertex", 2, "string"),
        ("current", 4, "int64"),
        ("total", 5, "int64"),
    ),
    "VertexLog": (("vertex", 1, "string"), ("stream", 3, "int64"), ("msg", 4, "bytes")),
    "StatusResponse": (
        ("vertexes", 1, "repeated Vertex"),
        ("statuses", 2, "repeated VertexStatus"),
        ("logs", 3, "repeated VertexLog"),
    ),
}


@dataclass(frozen=True)
class Vertex:
    """Describe one step of the build graph.

    Times are seconds since the epoch; 0.0 means not yet.
    """

    digest: str
    name: str
    cached: bool
    started: float
    completed: float
    error: str


@dataclass(frozen=True)
class Status:
    """Describe progress inside a step, for example bytes of a layer."""

    vertex: str
    id: str
    current: int
    total: int


@dataclass(frozen=True)
class Log:
    """Hold a piece of a step's output; it may end anywhere."""

    vertex: str
    stream: int
    data: bytes


@dataclass(frozen=True)
class Trace:
    """Hold one message of the stream."""

    vertexes: tuple[Vertex, ...]
    statuses: tuple[Status, ...]
    logs: tuple[Log, ...]


def decode(data: bytes) -> Trace:
    """Decode one StatusResponse. Raises google.protobuf.message.DecodeError on other bytes."""
    message = _status_response().FromString(data)
    return Trace(
        tuple(_vertex(v) for v in message.vertexes),
        tuple(Status(s.vertex, s.id, s.current, s.total) for s in message.statuses),
        tuple(Log(log.vertex, log.stream, log.msg) for log in message.logs),
    )


def message_class(name: str) -> Any:
    """Return the protobuf class of one of these messages; tests write messages with it."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


# protobuf makes the classes of messages at run time, so type checkers do not know their fields.
@cache
def _status_response() -> Any:
    return message_class("StatusResponse")


def _vertex(vertex: Any) -> Vertex:
    started = _seconds(vertex.started) if vertex.HasField("started") else 0.0
    completed = _seconds(vertex.completed) if vertex.HasField("completed") else 0.0
    return Vertex(vertex.digest, vertex.name, vertex.cached, started, completed, vertex.error)


def _seconds(timestamp: Any) -> float:
    return float(timestamp.seconds + timestamp.nanos / 1e9)


@cache
def _pool() -> DescriptorPool:
    """Describe the messages to protobuf, which is loaded only here: most commands need no build."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    file = descriptor_pb2.FileDescriptorProto(
        name="imagegen/trace.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in fields:
            _describe(message.field.add(name=field_name, number=number), kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _describe(field: FieldDescriptorProto, kind: str) -> None:
    """Set the label and the type of a field: `string`, `Timestamp`, `repeated Vertex`."""
    repeated = kind.startswith("repeated ")
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    kind = kind.removeprefix("repeated ")
    if kind in _MESSAGES:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = field.Type.Value(f"TYPE_{kind.upper()}")
