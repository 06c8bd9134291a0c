"""Test other engines: Docker 26 fails in the same way, and what podman lacks is named.

The tests of the main path on Docker 26 have the mark `both_engines`.
"""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from another_engine import docker_26, podman
from command_line import ended
from step_processes import wait_for
from tiny_family import TinyFamily

from imagegen.engine.client import connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from command_line import CommandLine
    from own_engine import OwnEngine

    from imagegen.engine.client import Engine

SECONDS = 60


@pytest.fixture
def second(
    engine: Engine,
    tiny_base: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[OwnEngine]:
    """Start a Docker 26 that a test may kill.

    Its folder has a short name, because its sockets are in it.
    """
    with docker_26(tmp_path_factory.mktemp("second"), engine, tiny_base) as made:
        monkeypatch.setenv("DOCKER_HOST", made.address)
        yield made


def test_docker_26_is_killed_in_the_middle(
    second: OwnEngine, command_line: CommandLine, tmp_path: Path, token: str
) -> None:
    connected = second.connected()
    tiny = TinyFamily(tmp_path / "overlay", token, connected, command_line)
    long = tiny.component("long", "RUN sleep 300; echo mark-TOKEN > /long")
    tiny.write_matrix({"os": ["tiny12"]}, {"long": "1"})
    with closing(connected.api), tiny.run.start(*tiny.argv("build", "--no-validate")) as process:
        wait_for(f"mark-{token}", runs=True)
        second.stop(signal.SIGKILL)
        end = ended(process, 9, SECONDS)
    assert "error: the engine died: 0 of 1 images were ready by then" in end.err
    assert "hint: start it again (`imagegen doctor`), then `imagegen build --resume`" in end.err
    refused = tiny.build("--no-validate", code=9)
    assert "error: no container engine answers" in refused.err
    assert f"{second.address} (DOCKER_HOST): Connection refused" in refused.err

    second.start()
    long.write_text(long.read_text().replace("sleep 300", "sleep 0"))
    again = tiny.run("build", "--resume", "--format", "json").result
    assert [row["outcome"] for row in again] == ["built"]
    tiny.engine = second.connected()
    with closing(tiny.engine.api):
        assert [*tiny.built()] == ["tiny12"]


def test_podman_is_refused_before_anything_is_done(
    command_line: CommandLine,
) -> None:
    # Podman does not accept a long path.
    with TemporaryDirectory(prefix="podman-") as folder, podman(Path(folder)) as address:
        environ = {"DOCKER_HOST": address}
        looked = command_line("doctor", environ=environ, code=9)
        built = command_line("build", "--matrix", "cpu", environ=environ, code=9)
        with closing(connect(environ).api) as api:
            left = api.images()
    said = "Podman Engine 4.3.1 has no BuildKit, and images are built by BuildKit alone"
    hint = "hint: name Docker Engine 19.03 or later with DOCKER_HOST or a docker context"
    assert f"error: buildkit: {said}" in looked.err
    assert f"error: {said}\n  asked at {address} (DOCKER_HOST)\n\n{hint}" in built.err
    assert hint in looked.err
    assert left == []
