"""Test what is no engine: addresses that are none, servers that hang, or answer nonsense."""

from __future__ import annotations

import socketserver
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from imagegen.engine import client, plain_http
from imagegen.engine.answers import misfit
from imagegen.engine.client import connect
from imagegen.engine.images import local_images
from imagegen.engine.without_sdk import image_labels, labelled_images
from imagegen.errors import EngineError
from imagegen.events import waiting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = b'{"Version": "24.0", "ApiVersion": "1.43"}'


def answer(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Server(socketserver.ThreadingUnixStreamServer):
    """Give the same bytes to each request, then close; without `bytes` it never answers."""

    daemon_threads = True
    block_on_close = False
    says: bytes | None = None
    images: bytes | None = None
    over: threading.Event


class Handler(socketserver.BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        asked = self.request.recv(65536)
        says = self.server.says
        if self.server.images is not None and b"/images/" in asked:
            says = self.server.images
        if says is None:
            self.server.over.wait(20)
            return
        if says == b"drip":
            while not self.server.over.wait(0.05):
                self.request.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            return
        self.request.sendall(says)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(str(tmp_path / "e.sock"), Handler) as made:
        made.over = threading.Event()
        threading.Thread(target=made.serve_forever, args=(0.01,)).start()
        yield made
        made.over.set()
        made.shutdown()


def here(server: Server) -> dict[str, str]:
    return {"DOCKER_HOST": f"unix://{server.server_address!s}"}


@pytest.mark.parametrize(
    "address",
    [
        "::::",
        "tcp://",
        "unix://",
        "http://[",
        "ssh://[",
        "tcp://[",
        "tcp://[zz]:1",
        "tcp://localhost:99999",
        "tcp://localhost:abc",
        "tcp://a b:1",
        "unix:///etc/passwd",
        "unix://" + "a" * 300,
        "unix://\udcff",
        "npipe:////./pipe/x",
        "nonsense",
        " ",
        "http://\x01",
    ],
)
def test_an_address_that_is_none_is_an_error(address: str) -> None:
    with pytest.raises(EngineError, match="no container engine answers") as caught:
        connect({"DOCKER_HOST": address})
    assert "(DOCKER_HOST)" in caught.value.problems[0].evidence[0]


@pytest.mark.parametrize("says", [None, b"drip"], ids=["silent", "drip"])
def test_an_engine_that_hangs_is_left_in_time(
    says: bytes | None, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PATIENCE_SECONDS", 0.4)
    server.says = says
    begun = time.monotonic()
    with pytest.raises(EngineError) as caught:
        connect(here(server))
    assert time.monotonic() - begun < 3
    assert caught.value.problems[0].evidence[0].endswith("(DOCKER_HOST): timed out")


def test_a_request_goes_on_without_an_engine_that_hangs(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("imagegen.engine.without_sdk.SECONDS", 0.3)
    said: list[str] = []
    waiting.tell(said.append)
    assert image_labels("imagegen/cpu:x", here(server)) == {}
    assert said == [f"{here(server)['DOCKER_HOST']} (DOCKER_HOST): no answer for 0.3 s"]
    with pytest.raises(EngineError, match="no container engine answers"):
        labelled_images("label", ["a"], here(server))


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\xff\xfe\0\1" * 100,
        b"HTTP/1.1 two hundred\r\n\r\n",
        answer(b"<html>"),
        answer(b"[]"),
        answer(b"null"),
        answer(b'"a"'),
        answer(b'{"ApiVersion": "latest"}'),
        answer(b'{"ApiVersion": 7}'),
        answer(b'{"ApiVersion": "\xff"}'),
        answer(b'{"message": "no"}', "403 Forbidden"),
        answer(b"oops", "500 Internal Server Error"),
        answer(b"", "302 Found\r\nLocation: http://localhost:1/"),
    ],
)
def test_what_answers_nonsense_is_no_engine(says: bytes, server: Server) -> None:
    server.says = says
    with pytest.raises(EngineError, match="no container engine answers"):
        connect(here(server))


def test_an_answer_without_end_is_left(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_http, "MOST_BYTES", 1000)
    server.says = b"x" * 2000
    with pytest.raises(EngineError, match="no container engine answers") as caught:
        connect(here(server))
    assert "more than 1000 bytes" in caught.value.problems[0].evidence[0]


@pytest.mark.parametrize(
    "body", [b"null", b"[]", b"{}", b'"a"', b'{"Id": 4, "Size": 1, "RootFS": {}}', b"\xff", b"<p>"]
)
def test_an_image_of_another_shape_is_an_engine_error(body: bytes, server: Server) -> None:
    server.says, server.images = answer(VERSION), answer(body)
    engine = connect(here(server))
    with pytest.raises(EngineError, match="the engine could not inspect `a`"):
        local_images.find(engine, "a")
    engine.api.close()


def test_a_name_that_is_no_text_is_an_engine_error(server: Server) -> None:
    server.says = answer(VERSION)
    engine = connect(here(server))
    with pytest.raises(EngineError, match="could not inspect"):
        local_images.find(engine, "\udcff")
    engine.api.close()


def test_a_slow_answer_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    waiting.tell(said.append)
    server.says = answer(VERSION)
    engine = connect(here(server))
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 0.1)
    server.says, server.images = None, None
    with pytest.raises(EngineError):
        local_images.find(replace(engine, api=engine.fresh(timeout=1)), "a")
    assert said[0].startswith("waiting for the engine to answer GET /images/a/json: 0.1 s so far")
    engine.api.close()


@pytest.mark.parametrize(
    ("method", "path", "found", "why"),
    [
        ("GET", "/images/json", [{"Id": "a", "Size": 1, "Labels": None, "RepoTags": None}], ""),
        ("GET", "/images/json", [{"Id": "a"}], "`Size` is missing"),
        ("GET", "/images/json", {}, "`{}` is no list"),
        (
            "GET",
            "/images/a/b:1/json",
            {"Id": "a", "Size": 1, "RootFS": {"Layers": [1]}},
            "`RootFS`",
        ),
        ("GET", "/images/a/history", [{"Size": 0}, None], "`None` is no mapping"),
        ("GET", "/info", {"Runtimes": None, "NCPU": 2, "Unknown": object()}, ""),
        ("GET", "/info", {"NCPU": "two"}, "`NCPU`: found `'two'`"),
        ("POST", "/containers/create", {}, "`Id` is missing"),
        ("GET", "/unknown", 7, ""),
    ],
)
def test_shapes_of_answers(method: str, path: str, found: object, why: str) -> None:
    assert misfit(method, path, found).startswith(why)
    assert bool(misfit(method, path, found)) == bool(why)
