"""Test builds that fail: what a user is told, and what happens to the other cells."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingUnixStreamServer
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from command_line import CommandLine
    from tiny_family import TinyFamily

APT = """\
{% import "macros/apt.j2" as apt %}
# A comment, so that the step is not on the first lines.
{{ apt.install(os, {"no-such-package-TOKEN": "1.*"}) }}
"""

FAILS_IN_RELEASE_2 = """\
RUN echo {{ release.version }} TOKEN > /part
{% if release.version == "2" %}
RUN seq 100 200 && echo oh TOKEN >&2 && exit 3
{% endif %}
"""


def test_a_package_that_does_not_exist(tiny: TinyFamily) -> None:
    template = tiny.component("lost", APT)
    tiny.write_matrix({"os": ["debian12"]}, {"lost": "1"})
    ended = tiny.build(code=6)
    package = f"no-such-package-{tiny.token}"
    assert f"error: build of `{tiny.matrix}/debian12` failed" in ended.err
    assert ": upstream gone\n" in ended.err
    again = f"imagegen build --matrix {tiny.matrix} --overlay {tiny.root} debian12 --until lost"
    assert f"this step alone: {again}" in ended.err
    line = 1 + next(
        at for at, text in enumerate(template.read_text().splitlines()) if "apt.install" in text
    )
    assert f"components/lost/install.j2:{line}" in ended.err
    assert f"step: [lost 1/1] RUN apt-get install -y --no-install-recommends '{package}=1.*'" in (
        ended.err
    )
    assert f"E: Unable to locate package {package}" in ended.err
    assert "hint: correct the version or source in the catalog" in ended.err
    log = next(iter(tiny.run.state.rglob("*.log")))
    assert f"full log: {log}" in ended.err
    assert f"E: Unable to locate package {package}" in log.read_text()


def test_a_cell_that_fails_stops_no_other(tiny: TinyFamily) -> None:
    tiny.component("part", FAILS_IN_RELEASE_2, ("1", "2", "3"))
    tiny.write_matrix({"os": ["tiny12"], "part": ["2", "1", "3"]}, {})
    ended = tiny.build("--no-validate", "--jobs", "1", code=6)
    assert sorted(tiny.built()) == ["tiny12-1", "tiny12-3"]
    assert "2 of 3 images ready" in ended.out
    assert ended.err.count("error:") == 1
    assert f"build of `{tiny.matrix}/tiny12-2` failed" in ended.err
    assert ": command\n" in ended.err
    assert "components/part/install.j2:3" in ended.err
    assert "\n      200\n" in ended.err
    assert "\n      150\n" not in ended.err
    assert f"oh {tiny.token}" in ended.err
    assert "exit code: 3" in ended.err
    rows = tiny.build("--no-validate", "--format", "json", code=6).documents
    assert [row["outcome"] for row in rows[-2]] == ["failed", "up-to-date", "up-to-date"]
    assert rows[-1]["exit_code"] == 6
    assert rows[-1]["errors"][0]["text"].endswith(": command")


def test_a_full_disk_is_named(tiny: TinyFamily) -> None:
    # A step has 64 MB of /dev/shm, which is a file system like any other.
    tiny.component("big", "RUN echo TOKEN && head -c 100M /dev/zero > /dev/shm/big")
    tiny.write_matrix({"os": ["tiny12"]}, {"big": "1"})
    ended = tiny.build("--no-validate", code=6)
    assert ": disk full\n" in ended.err
    assert "components/big/install.j2:1" in ended.err
    assert f"step: [big 1/1] RUN echo {tiny.token}" in ended.err
    assert "No space left on device" in ended.err
    assert "hint: free disk on the engine" in ended.err
    assert tiny.built() == {}


def test_no_engine(tiny: TinyFamily, tmp_path: Path) -> None:
    tiny.component("part", "RUN echo TOKEN > /part")
    tiny.write_matrix({"os": ["tiny12"]}, {"part": "1"})
    for address in (f"unix://{tmp_path}/none.sock", "tcp://127.0.0.1:1"):
        ended = tiny.command("build", environ={"DOCKER_HOST": address}, code=9)
        assert "error: no container engine answers" in ended.err
        assert f"{address}".replace("tcp", "http").partition("//")[2] in ended.err
        assert "(DOCKER_HOST): " in ended.err
        assert "hint: correct DOCKER_HOST, or unset it" in ended.err


class OldEngine(BaseHTTPRequestHandler):
    """Answer as an engine of 2017 does, as far as a client of today gets with it."""

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        body = json.dumps({"Version": "17.06.0-ce", "ApiVersion": "1.30", "MinAPIVersion": "1.12"})
        self.send_response(200)
        self.send_header("Api-Version", "1.30")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


@contextmanager
def old_engine(path: Path) -> Iterator[str]:
    with ThreadingUnixStreamServer(str(path), OldEngine) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"unix://{path}"
        finally:
            server.shutdown()
            serving.join()


def test_an_engine_that_is_too_old(command_line: CommandLine, tmp_path: Path) -> None:
    with old_engine(tmp_path / "old.sock") as address:
        ended = command_line("build", "--matrix", "cpu", environ={"DOCKER_HOST": address}, code=9)
    assert "error: engine too old: API 1.40 (Docker 19.03) or later is needed" in ended.err
    assert "1.30" in ended.err
    assert "hint: upgrade the engine" in ended.err


def test_an_engine_that_hangs_up_in_the_middle(command_line: CommandLine, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "hangs-up.sock"))
        listener.listen()

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    listener.accept()[0].close()

        hanging = threading.Thread(target=hang_up)
        hanging.start()
        address = f"unix://{tmp_path}/hangs-up.sock"
        ended = command_line("build", "--matrix", "cpu", environ={"DOCKER_HOST": address}, code=9)
        listener.shutdown(socket.SHUT_RDWR)
        hanging.join(10)
    assert "error: no container engine answers" in ended.err
    assert address in ended.err


@pytest.mark.parametrize("ref", ["imagegen/none:never", "sha256:" + "0" * 64])
def test_an_image_that_is_not_there(command_line: CommandLine, ref: str) -> None:
    ended = command_line("validate", ref, code=7)
    assert f"error: the engine has no image `{ref}`" in ended.err
    assert "hint: build it first" in ended.err
