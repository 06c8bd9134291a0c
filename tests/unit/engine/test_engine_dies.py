"""Test an engine that disappears in the middle of a build, with a small server in its place."""

from __future__ import annotations

import base64
import json
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import docker
import pytest

from imagegen.engine.builds.buildkit import BuildRequest, build
from imagegen.engine.builds.trace import message_class
from imagegen.engine.builds.vertex_events import VertexEvent, VertexStarted
from imagegen.engine.client import Engine
from imagegen.engine.endpoint import Endpoint
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator


def trace() -> bytes:
    status = message_class("StatusResponse")()
    status.vertexes.add(digest="d", name="RUN x", started={"seconds": 1})
    aux = base64.b64encode(status.SerializeToString()).decode()
    return json.dumps({"id": "moby.buildkit.trace", "aux": aux}).encode() + b"\r\n"


class _Dying(BaseHTTPRequestHandler):
    """Start a build as an engine does, then end it in the way that the class names."""

    protocol_version = "HTTP/1.1"
    clean_end = False

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(trace()), trace()))
        self.wfile.write(b"0\r\n\r\n" if self.clean_end else b"ff\r\n{")
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Refusing(_Dying):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b'{"message": "no space left on device"}'
        self.send_response(500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Ending(_Dying):
    clean_end = True


@pytest.fixture
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), request.param) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"tcp://127.0.0.1:{server.server_port}"
        with closing(docker.APIClient(base_url=url, version="1.41")) as api:
            yield Engine(Endpoint(url, "the test"), "1.41", api)
        server.shutdown()


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        (_Dying, "the engine could not build"),
        (_Ending, "the engine closed the connection before the build ended"),
    ],
    indirect=["engine"],
)
def test_a_build_whose_connection_dies_is_an_engine_error(engine: Engine, text: str) -> None:
    seen: list[VertexEvent] = []
    with pytest.raises(EngineError, match=text):
        build(engine, BuildRequest((), "b1"), seen.append)
    assert seen == [VertexStarted("d", "RUN x")]


@pytest.mark.parametrize("engine", [_Refusing], indirect=True)
def test_a_refused_build_says_what_the_engine_said(engine: Engine) -> None:
    with pytest.raises(EngineError, match="the engine refused the build") as caught:
        build(engine, BuildRequest((), "b1"), lambda _: None)
    assert caught.value.problems[0].evidence == ("no space left on device",)
