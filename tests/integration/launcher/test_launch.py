"""Test the commands of `imagegen launch` unchanged, in the images that they are for."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from imagegen.engine.containers.containers import LaunchSpec, running

if TYPE_CHECKING:
    from command_line import CommandLine

    from imagegen.engine.client import Engine

CELL = "cpu/debian12-rdma-core"


def launch(run: CommandLine, *arguments: str) -> str:
    """Return the command as a user pastes it."""
    ended = run("launch", CELL, *arguments, "--format", "json")
    return str(ended.result["command"])


def test_the_docker_command_gives_what_the_image_asks_for(
    cpu_family: dict[str, str], command_line: CommandLine
) -> None:
    words = shlex.split(launch(command_line, "--as", "docker", "--transport", "rdma"))
    assert words[:2] == ["docker", "run"]
    assert words[-1] == cpu_family["debian12-rdma-core"]
    assert {"--cap-add=IPC_LOCK", "--device=/dev/infiniband", "--shm-size=32g"} <= {*words}
    assert "memlock=-1" in words
    explained = command_line("launch", CELL, "--as", "docker", "--explain").out
    for flag in shlex.split(launch(command_line, "--as", "docker"))[2:]:
        assert re.search(rf"^# .*{re.escape(flag)}.*# \S", explained, re.MULTILINE), flag


def test_the_mpirun_command_trains_in_the_image(
    engine: Engine, cpu_family: dict[str, str], command_line: CommandLine
) -> None:
    pasted = launch(
        command_line, "--as", "mpirun", "--gpus", "2", "--model", "small", "--batch", "4"
    )
    assert "-np 2" in pasted
    spec = LaunchSpec(cpu_family["debian12-rdma-core"], ("sleep", "infinity"), shm_bytes=256 << 20)
    with running(engine, spec) as container:
        done = container.exec(["bash", "-c", pasted], 120)
    assert done.code == 0, done.err
    assert "Horovod" in done.out or "Number of" in done.out, done.out
    assert len(re.findall(r"^Total img/sec on 2 CPU\(s\): ", done.out, re.MULTILINE)) == 1


def test_what_the_image_lacks_is_said(command_line: CommandLine) -> None:
    ended = command_line(
        "launch", "cpu/debian13-none", "--as", "mpirun", "--accel", "horovod", code=2
    )
    assert "acceleration `horovod` needs component `horovod`" in ended.err
    ended = command_line("launch", "cpu/*", code=3)
    assert "means 4 cells" in ended.err
