"""Test Ctrl-C and `kill -9` in the middle of a build."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from command_line import ended
from step_processes import SECONDS, wait_for

from imagegen.engine.images import local_images
from imagegen.model.labels import LABEL_MATRIX

if TYPE_CHECKING:
    import subprocess

    from tiny_family import TinyFamily

    from imagegen.engine.images.local_image import LocalImage


@pytest.fixture
def sleepy(tiny: TinyFamily) -> TinyFamily:
    """Make two cells that sleep long, on top of a step that ends."""
    tiny.component("quick", "RUN echo TOKEN > /quick", seconds="60")
    tiny.component("long", "RUN sleep 300; echo mark-TOKEN-{{ release.version }}", ("1", "2"))
    tiny.write_matrix({"os": ["tiny12"], "long": ["1", "2"]}, {"quick": "1"})
    return tiny


def images_of(family: TinyFamily) -> tuple[LocalImage, ...]:
    """List the images of the family, with and without a tag."""
    return local_images.list_labelled(family.engine, f"{LABEL_MATRIX}={family.matrix}")


def begin(family: TinyFamily) -> subprocess.Popen[str]:
    argv = family.argv("build", "--no-validate", "--jobs", "2")
    process = family.run.start(*argv)
    for number in (1, 2):
        wait_for(f"mark-{family.token}-{number}", runs=True)
    return process


def waken(family: TinyFamily) -> None:
    """Shorten the sleep, so that the step ends; the rest of its text stays the same."""
    template = family.root / "dockerfiles/components/long/install.j2"
    template.write_text(template.read_text().replace("sleep 300", "sleep 0"))


def test_ctrl_c_cancels_on_the_engine_and_tags_nothing(sleepy: TinyFamily) -> None:
    with begin(sleepy) as process:
        begun = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        end = ended(process, 130)
    assert time.monotonic() - begun < 10
    said = "error: interrupted: the running builds were cancelled, none of their tags moved"
    assert said in end.err
    assert "hint: `imagegen build --resume`, or the same command, goes on" in end.err
    for number in (1, 2):
        assert f"{sleepy.matrix}/tiny12-{number}  cancelled" in end.out
    assert "0 of 2 images ready in" in end.out
    wait_for(f"mark-{sleepy.token}", runs=False)
    assert sleepy.built() == {}
    waken(sleepy)
    assert "going on with run 1, 2 cells are left" in sleepy.run("build", "--resume").err
    assert sorted(sleepy.built()) == ["tiny12-1", "tiny12-2"]
    again = next(iter(sleepy.run.state.rglob("run-2/*-1.log"))).read_text()
    assert "= cached: [quick" in again
    history = sleepy.run("history", "--format", "json").result
    assert [run["exit_code"] for run in history] == [0, 130]


def test_after_kill_9_the_same_command_ends_well(sleepy: TinyFamily) -> None:
    with begin(sleepy) as process:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)
    # The engine sees the closed connection and stops the steps by itself.
    wait_for(f"mark-{sleepy.token}", runs=False)
    assert sleepy.built() == {}
    waken(sleepy)
    sleepy.build("--no-validate")
    assert sorted(sleepy.built()) == ["tiny12-1", "tiny12-2"]


def begin_gate(tiny: TinyFamily) -> subprocess.Popen[str]:
    """Begin a build whose gate does not end, and wait until the gate runs."""
    stuck = "#!/bin/sh\necho begun; sleep 298 # mark-TOKEN\n".replace("TOKEN", tiny.token)
    install = "COPY check/validate /usr/local/bin/validate\nRUN chmod 755 /usr/local/bin/validate"
    tiny.component("check", install, files={"validate": stuck})
    tiny.write_matrix({"os": ["tiny12"]}, {"check": "1"})
    process = tiny.run.start(*tiny.argv("build"))
    logs = tiny.run.state / "logs/run-1" / f"{tiny.matrix}-tiny12.log"
    deadline = time.monotonic() + SECONDS
    while not (logs.exists() and "begun" in logs.read_text()):
        assert time.monotonic() < deadline, "the gate does not begin"
        time.sleep(0.1)
    return process


def containers_of(family: TinyFamily) -> list[str]:
    """Name the containers of the family's images."""
    own = {image.id for image in images_of(family)}
    every = family.engine.api.containers(all=True)
    return [one["Names"][0][1:] for one in every if one["ImageID"] in own]


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, marks=pytest.mark.long),
    ],
)
def test_a_signal_under_the_gate_stops_it_and_tags_nothing(
    tiny: TinyFamily, number: signal.Signals
) -> None:
    with begin_gate(tiny) as process:
        begun = time.monotonic()
        # As `kill` and a supervisor do it: the process alone, not what it started.
        process.send_signal(number)
        end = ended(process, 130)
    assert time.monotonic() - begun < 15
    assert "error: interrupted" in end.err
    assert tiny.built() == {}
    assert containers_of(tiny) == []


def test_prune_and_the_next_run_find_what_kill_9_left(tiny: TinyFamily) -> None:
    with begin_gate(tiny) as process:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)
    (left,) = containers_of(tiny)
    found = tiny.run("prune", "--dry-run", "--keep-cache").out
    assert f"container {left}: the run that started it was killed" in found
    template = tiny.root / "dockerfiles/components/check/files/validate"
    template.write_text("#!/bin/sh\nexit 3\n")
    tiny.build(code=6)
    assert left not in containers_of(tiny)
