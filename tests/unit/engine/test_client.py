"""Test where the engine is looked for, how references are read, and how failures are worded."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, ClassVar

import pytest
import requests
from docker.errors import APIError

from imagegen.engine.client import (
    connect,
    engine_errors,
    error_of,
    facts,
    reason,
    require_buildkit,
)
from imagegen.engine.endpoint import Endpoint, endpoints
from imagegen.engine.images import local_images
from imagegen.engine.images.bases import bootstrap_command
from imagegen.engine.registry.distribution import remote_reference
from imagegen.errors import EngineError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def docker_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test from the docker configuration of the user who runs it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path


def test_docker_host_is_the_only_place_then() -> None:
    assert endpoints({"DOCKER_HOST": "tcp://10.0.0.1:2375"}) == (
        Endpoint("tcp://10.0.0.1:2375", "DOCKER_HOST"),
    )


def test_without_a_name_the_system_socket_comes_before_the_rootless_one(tmp_path: Path) -> None:
    (tmp_path / "docker.sock").touch()
    found = endpoints({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert [e.url for e in found] == [
        "unix:///var/run/docker.sock",
        f"unix://{tmp_path}/docker.sock",
    ]


def test_the_current_context_is_the_only_place_then(docker_config: Path) -> None:
    meta = docker_config / "contexts/meta" / hashlib.sha256(b"lab").hexdigest()
    meta.mkdir(parents=True)
    document = {"Name": "lab", "Metadata": {}, "Endpoints": {"docker": {"Host": "tcp://lab:2375"}}}
    (meta / "meta.json").write_text(json.dumps(document))
    (docker_config / "config.json").write_text(json.dumps({"currentContext": "lab"}))
    (found,) = endpoints({"DOCKER_CONFIG": str(docker_config)})
    assert (found.url, found.named_by) == ("tcp://lab:2375", "context lab")


def test_an_unknown_context_is_an_error() -> None:
    with pytest.raises(EngineError, match="there is no docker context `nope`"):
        endpoints({"DOCKER_CONTEXT": "nope"})


def test_tls_files_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    where = {"DOCKER_HOST": "tcp://10.0.0.1:2376", "DOCKER_CERT_PATH": str(tmp_path / "none")}
    with pytest.raises(EngineError, match="the TLS files of DOCKER_HOST cannot be read"):
        endpoints(where)


def test_no_engine_says_where_it_looked_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        connect({"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    (problem,) = caught.value.problems
    assert problem.text == "no container engine answers"
    assert problem.evidence[0].endswith("none.sock (DOCKER_HOST): No such file or directory")
    assert problem.hint == "correct DOCKER_HOST, or unset it to use the engine of this machine"


class _OldEngine(BaseHTTPRequestHandler):
    """Answer as Docker 18.09 does when it is asked for its version."""

    def do_GET(self) -> None:
        body = b'{"Version": "18.09.9", "ApiVersion": "1.39"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(kind: type[BaseHTTPRequestHandler], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield f"tcp://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def test_an_old_engine_is_named_with_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serving(_OldEngine, monkeypatch) as address,
        pytest.raises(EngineError, match=r"engine too old: API 1\.40") as caught,
    ):
        connect({"DOCKER_HOST": address})
    assert caught.value.problems[0].evidence == (f"{address} speaks API 1.39",)


class _Podman(_OldEngine):
    """Answer as `podman system service` of Debian 12 does, shortened."""

    answers: ClassVar[dict[str, bytes]] = {
        "version": (
            b'{"Components": [{"Name": "Podman Engine", "Version": "4.3.1"}, {"Name": "Conmon", '
            b'"Version": "conmon version 2.1.6, commit: unknown"}], "Version": "4.3.1", '
            b'"ApiVersion": "1.41", "MinAPIVersion": "1.24", "Arch": "amd64"}'
        ),
        "info": b'{"Driver": "overlay", "DockerRootDir": "/var/lib/containers/storage"}',
        "build?version=2": (
            b'{"errorDetail":{"message":"stat /var/tmp/libpod_builder393082990/build/Dockerfile: '
            b'no such file or directory\\n"},"error":"stat /var/tmp/libpod_builder393082990/build/'
            b'Dockerfile: no such file or directory\\n"}'
        ),
    }

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = self.answers[self.path.rpartition("/")[2]]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET


NO_CONTEXT = "takes no build context through its API with the containerd image store"


class _ContainerdStore(_Podman):
    """Answer as Docker 26.1.5 with `containerd-snapshotter` does, shortened."""

    answers: ClassVar[dict[str, bytes]] = {
        "version": b'{"Components": [{"Name": "Engine"}], "Version": "26.1", "ApiVersion": "1.45"}',
        "info": b'{"Driver": "overlayfs", "DockerRootDir": "/var/lib/docker"}',
        "build?version=2": (
            b'{"id":"moby.buildkit.trace","aux":"Cm8K"}\n{"error":"failed to read downloaded '
            b'context: failed to load cache key: Get \\"http://build-context-yzzh1q46vvqr\\": '
            b'dial tcp: lookup build-context-yzzh1q46vvqr: no such host"}'
        ),
    }


@pytest.mark.parametrize(
    ("kind", "product", "lack", "hint"),
    [
        (
            _Podman,
            "Podman Engine",
            "Podman Engine 4.3.1 has no BuildKit, and images are built by BuildKit alone",
            "name Docker Engine 19.03 or later with DOCKER_HOST or a docker context",
        ),
        (
            _ContainerdStore,
            "Docker Engine",
            f"Docker Engine 26.1 {NO_CONTEXT}",
            "set `containerd-snapshotter` to false in its daemon.json, or upgrade it to Docker 28",
        ),
    ],
)
def test_an_engine_that_cannot_build_is_told_why(
    kind: type[_Podman], product: str, lack: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(kind, monkeypatch) as address:
        engine = connect({"DOCKER_HOST": address})
        with closing(engine.api):
            found = facts(engine)
            with pytest.raises(EngineError) as caught:
                require_buildkit(engine)
    assert found.product == product
    assert found.lack == Problem(lack, hint=hint)
    (problem,) = caught.value.problems
    assert problem == Problem(lack, evidence=(f"asked at {address} (DOCKER_HOST)",), hint=hint)


def test_a_lost_connection_becomes_an_engine_error() -> None:
    with pytest.raises(EngineError, match="the engine could not build"), engine_errors("build"):
        raise requests.ConnectionError("gone")


def test_the_reason_is_the_engines_or_the_systems() -> None:
    assert reason(APIError("500", explanation="no space left on device\n")) == (
        "no space left on device"
    )
    lost = requests.ConnectionError("long words")
    lost.__cause__ = ConnectionRefusedError(111, "Connection refused")
    assert reason(lost) == "Connection refused"
    assert error_of(b'{"message": "no"}') == "no"
    assert error_of(b"<html>") == "<html>"


@pytest.mark.parametrize(
    ("ref", "parts"),
    [
        ("imagegen/cpu:a-1", ("imagegen/cpu", "a-1")),
        ("localhost:5000/cpu", ("localhost:5000/cpu", "latest")),
        ("localhost:5000/cpu:x", ("localhost:5000/cpu", "x")),
        ("debian", ("debian", "latest")),
    ],
)
def test_references_are_split_at_the_tag(ref: str, parts: tuple[str, str]) -> None:
    assert local_images.split_reference(ref) == parts


def test_registry_targets() -> None:
    local = remote_reference("127.0.0.1:5000/team/cpu:x")
    assert (local.base, local.reference) == ("http://127.0.0.1:5000/v2/team/cpu", "x")
    digest = remote_reference("registry.example/cpu@sha256:ab")
    assert (digest.base, digest.reference) == ("https://registry.example/v2/cpu", "sha256:ab")
    assert remote_reference("debian").repository == "library/debian"
    assert remote_reference("[::1]:5000/cpu").plain_http
    assert remote_reference("localhost/cpu").plain_http


def test_a_bootstrap_asks_for_no_mirror_of_its_own() -> None:
    command = bootstrap_command("bookworm", "rootfs.tar")
    assert command[0] == "mmdebstrap"
    assert command[-2:] == ["bookworm", "rootfs.tar"]
    assert not any("://" in word for word in command)
