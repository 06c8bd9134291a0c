"""Test one question to the engine without the SDK, and when it needs the SDK.

It needs the SDK if a plain socket is not enough.
"""

from __future__ import annotations

import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest

from imagegen.engine import client, endpoint
from imagegen.engine.endpoint import Endpoint, endpoints
from imagegen.engine.images import local_images
from imagegen.engine.images.local_image import LocalImage
from imagegen.engine.without_sdk import image_labels, labelled_images
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

REF = "imagegen/request:debian12-torch1.13.1"
LABELS = {"io.imagegen.recipe": "sha256:1"}
ROW = {"Id": "sha256:2", "RepoTags": [REF], "Labels": LABELS, "Size": 7}
LISTED = "/v1.47/images/json?filters=%7B%22label%22%3A%20%5B%22io.imagegen.recipe%22%5D%7D"
HAS = {
    LISTED: json.dumps([ROW]).encode(),
    "/v1.47/images/base:1/json": json.dumps(ROW | {"RepoTags": ["base:1"], "Config": {}}).encode(),
    "/_ping": b"OK",
    f"/v1.47/images/{REF}/json": json.dumps(ROW | {"Config": {"Labels": LABELS}}).encode(),
    "/v1.47/images/bare/json": json.dumps(ROW | {"Config": {"Labels": None}}).encode(),
}


@pytest.fixture(autouse=True)
def docker_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test from the docker configuration of the user who runs it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


class Server(socketserver.ThreadingUnixStreamServer):
    """Stand in for an engine: it speaks API 1.47 and has two images, one without labels.

    It answers all other requests with `status`.
    """

    status = 404
    asked: list[str]


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = HAS.get(self.path, b'{"message": "no such image"}')
        self.send_response(200 if self.path in HAS else self.server.status)
        self.send_header("Api-Version", "1.47")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Server]:
    with Server(str(tmp_path / "docker.sock"), Answers) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield server
        server.shutdown()


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Set what the SDK answers; without an answer, any use of the SDK fails the test."""

    def says(found: bool) -> None:
        monkeypatch.setattr(client, "connect", lambda environ: environ)
        image = LocalImage("sha256:2", (REF,), LABELS, 1)
        monkeypatch.setattr(local_images, "find", lambda *_: image if found else None)

    def refuse(*_: Any) -> None:
        raise AssertionError("the SDK was asked")

    monkeypatch.setattr(client, "connect", refuse)
    return says


def places(environ: dict[str, str]) -> tuple[Endpoint, ...]:
    """Return where an engine is looked for; empty if the context or the TLS files are missing."""
    try:
        return endpoints(environ)
    except EngineError:
        return ()


def at(folder: Path) -> dict[str, str]:
    return {"DOCKER_HOST": f"unix://{folder}/docker.sock"}


@pytest.mark.usefixtures("sdk")
def test_an_image_is_found_and_another_is_not(engine: Server, tmp_path: Path) -> None:
    assert image_labels(REF, at(tmp_path)) == LABELS
    assert image_labels("bare", at(tmp_path)) == {}
    assert image_labels("imagegen/cpu:a@b", at(tmp_path)) == {}
    assert engine.asked[::2] == ["/_ping"] * 3
    assert engine.asked[-1] == "/v1.47/images/imagegen/cpu:a@b/json"


@pytest.mark.usefixtures("sdk")
def test_the_rootless_engine_answers_where_there_is_no_other(
    engine: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "SYSTEM_SOCKET", str(tmp_path / "nowhere.sock"))
    where = {"XDG_RUNTIME_DIR": str(tmp_path), "DOCKER_CONFIG": str(tmp_path)}
    assert image_labels(REF, where) == LABELS
    assert engine.asked


@pytest.mark.usefixtures("sdk")
def test_without_an_engine_no_image_is_known(tmp_path: Path) -> None:
    assert image_labels(REF, at(tmp_path)) == {}


def test_an_answer_that_is_neither_yes_nor_no_is_asked_again_by_the_sdk(
    engine: Server, sdk: Callable[[bool], None], tmp_path: Path
) -> None:
    engine.status = 400
    sdk(True)
    assert image_labels("imagegen/cpu:other", at(tmp_path)) == LABELS


@pytest.mark.parametrize("answer", [b'{"Version": "17.06.0-ce"}', b'["x"]', b"[{}]", b"null", b"7"])
def test_a_list_in_other_words_is_left_to_the_sdk(
    engine: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setitem(HAS, LISTED, answer)
    assert labelled_images("io.imagegen.recipe", [], at(tmp_path)) is None
    assert LISTED in engine.asked


def test_what_is_no_engine_is_asked_again_by_the_sdk(
    sdk: Callable[[bool], None], tmp_path: Path
) -> None:
    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1024)

    sdk(False)
    with socketserver.ThreadingUnixStreamServer(str(tmp_path / "docker.sock"), Silent) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        assert image_labels(REF, at(tmp_path)) == {}
        server.shutdown()


@pytest.mark.parametrize(
    "environ",
    [
        {"DOCKER_HOST": "ssh://user@host"},
        {"DOCKER_HOST": "tcp://host:2376", "DOCKER_TLS_VERIFY": "1"},
        {"DOCKER_HOST": "tcp://host:2376", "DOCKER_CERT_PATH": "/certs"},
        {"DOCKER_CONTEXT": "lab"},
    ],
)
def test_ssh_tls_and_contexts_are_the_sdks(
    environ: dict[str, str], sdk: Callable[[bool], None]
) -> None:
    sdk(True)
    assert not any(one.is_plain for one in places(environ))
    assert image_labels(REF, environ) == LABELS


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        (json.dumps({"auths": {}}), True),
        (json.dumps({"currentContext": "default"}), True),
        (json.dumps({"currentContext": "lab"}), False),
        ("not json", True),
        ("[]", True),
    ],
)
def test_the_context_of_the_configuration_counts(
    written: str, plain: bool, docker_config: Path
) -> None:
    """A configuration that cannot be read means the default context, as in the SDK."""
    (docker_config / "config.json").write_text(written)
    found = places({"DOCKER_CONFIG": str(docker_config)})
    assert any(one.is_plain for one in found) == plain


def test_a_plain_host_is_asked_over_tcp() -> None:
    (found,) = endpoints({"DOCKER_HOST": "tcp://10.0.0.1:2375"})
    assert (found.url, found.is_plain) == ("tcp://10.0.0.1:2375", True)


def test_one_list_and_a_look_at_each_base_say_what_stands(engine: Server, tmp_path: Path) -> None:
    found = labelled_images("io.imagegen.recipe", ["base:1", "base:2"], at(tmp_path))
    image = LocalImage("sha256:2", (REF,), LABELS, 7)
    base = LocalImage("sha256:2", ("base:1",), {}, 7)
    assert found == ((image,), {"base:1": base})
    assert engine.asked[1] == LISTED


def test_what_a_plain_socket_cannot_say_is_left_to_the_sdk(engine: Server, tmp_path: Path) -> None:
    assert labelled_images("io.imagegen.recipe", [], at(tmp_path / "nowhere")) is None
    assert labelled_images("io.imagegen.recipe", [], {"DOCKER_HOST": "ssh://node"}) is None
    engine.status = 500
    assert labelled_images("another", [], at(tmp_path)) is None
