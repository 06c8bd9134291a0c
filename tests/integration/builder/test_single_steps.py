"""Test work on one step of a cell: build it alone, look inside, go on, clean up."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from command_line import HEED_INTERRUPTS
from image_builder import Builder

from imagegen.engine.images import local_images
from imagegen.model.labels import LABEL_MATRIX, LABEL_UNTIL

if TYPE_CHECKING:
    from pathlib import Path

    from tiny_family import TinyFamily

pytestmark = pytest.mark.both_engines(long=True)

SECONDS = 60

BREAKS = """\
RUN echo before TOKEN > /before
RUN test -e /there-is-nothing-TOKEN
"""


def broken(tiny: TinyFamily) -> None:
    """Give the family a step that works, one that fails, and one that is never reached."""
    tiny.component("first", "RUN echo first TOKEN > /first", seconds="60")
    tiny.component("second", BREAKS, needs=["first"], seconds="50")
    tiny.component("third", "RUN echo third TOKEN > /third", needs=["second"])
    tiny.write_matrix({"os": ["tiny12"]}, {"first": "1", "second": "1", "third": "1"})


def test_until_builds_so_far_and_tags_nothing(tiny: TinyFamily) -> None:
    broken(tiny)
    ended = tiny.build("tiny12", "--until", "first", "--format", "json")
    image = ended.result["image"]
    found = local_images.find(tiny.engine, image)
    assert found is not None
    assert found.tags == ()
    assert found.labels[LABEL_UNTIL] == f"{tiny.matrix}/tiny12 first"
    assert tiny.built() == {}


@pytest.mark.both_engines
def test_until_a_step_that_fails_gives_the_state_before_it(tiny: TinyFamily) -> None:
    broken(tiny)
    ended = tiny.build("tiny12", "--until", "second", code=6)
    assert f"build of `{tiny.matrix}/tiny12` failed: command" in ended.err
    assert "components/second/install.j2:2" in ended.err
    (line,) = [one for one in ended.out.splitlines() if one.startswith("the state before")]
    image = line.split()[-2]
    created = tiny.engine.api.create_container(image, ["none"])
    try:
        changed = {one["Path"] for one in tiny.engine.api.diff(created["Id"]) or ()}
        assert changed == set()
        names = [text for text, _ in local_images.history(tiny.engine, image)]
        assert any(f"before {tiny.token}" in name for name in names)
        assert not any("there-is-nothing" in name for name in names)
    finally:
        tiny.engine.api.remove_container(created["Id"])


def test_until_needs_a_component_of_the_cell_and_one_cell(tiny: TinyFamily) -> None:
    broken(tiny)
    ended = tiny.build("tiny12", "--until", "other", code=2)
    assert "in the order of layers: first, second, third" in ended.err
    assert "`--shell` needs `--until COMPONENT`" in tiny.build("--shell", code=2).err


def test_a_shell_in_the_state_before_the_failing_step(tiny: TinyFamily) -> None:
    """Use a terminal as a person does: type a command, read the answer, leave the shell."""
    broken(tiny)
    argv = tiny.argv("build", "tiny12", "--until", "second", "--shell")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*HEED_INTERRUPTS, str(tiny.run.script), *argv],
        cwd=tiny.run.cwd,
        env=tiny.run.environment({"TERM": "dumb"}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        before = read_until(ours, b"the state before")
        read_until(ours, b"# ")
        os.write(ours, b"cat /before; echo $((40 + 2)); ls /mnt; exit 7\n")
        said = read_until(ours, b"exit\r\n")
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"Traceback" not in before + said
    assert f"before {tiny.token}".encode() in said
    assert b"42" in said
    assert b"env.sh" not in before
    left = tiny.engine.api.containers(all=True, filters={"label": f"{LABEL_MATRIX}={tiny.matrix}"})
    assert left == []


def read_until(terminal: int, mark: bytes) -> bytes:
    """Return what a terminal shows, up to a mark."""
    os.set_blocking(terminal, False)
    seen, deadline = b"", time.monotonic() + SECONDS
    while mark not in seen:
        assert time.monotonic() < deadline, seen.decode(errors="replace")
        try:
            seen += os.read(terminal, 4096)
        except BlockingIOError:
            time.sleep(0.05)
        except OSError:
            break
    return seen


@pytest.mark.both_engines
def test_resume_goes_on_where_a_build_ended(tiny: TinyFamily) -> None:
    fails = "RUN test {{ release.version }} != 2 # TOKEN"
    template = tiny.component("part", fails, ("1", "2", "3"))
    tiny.write_matrix({"os": ["tiny12"], "part": ["1", "2", "3"]}, {})
    assert "there is no build to resume" in tiny.run("build", "--resume", code=3).err
    tiny.build("--no-validate", "--jobs", "1", code=6)
    template.write_text(template.read_text().replace("!= 2", "!= 9"))
    ended = tiny.run("build", "--resume", "--format", "json")
    (row,) = ended.result
    assert (row["cell"], row["outcome"]) == (f"{tiny.matrix}/tiny12-2", "built")
    assert "going on with run 1, 1 cells are left: imagegen build" in ended.err
    assert "nothing is left to build" in tiny.run("build", "--resume", code=3).err
    runs = tiny.run("history", "--format", "json").result
    assert [(run["state"], run["cells"]) for run in runs] == [
        ("0", [f"{tiny.matrix}/tiny12-2"]),
        ("6", [f"{tiny.matrix}/tiny12-{number}" for number in (1, 2, 3)]),
    ]
    builds = tiny.run("history", "1", "--format", "json").result
    assert [build["outcome"] for build in builds].count("built") == 2
    steps = [step for step in builds[0]["steps"] if step["component"]]
    assert [(step["component"], step["release"]) for step in steps] == [("part", "1")]


def test_prune_takes_what_nobody_needs(tiny: TinyFamily) -> None:
    template = tiny.component("part", "RUN echo TOKEN > /part")
    tiny.write_matrix({"os": ["tiny12"]}, {"part": "1"})
    tiny.build("--no-validate")
    template.write_text(template.read_text() + "RUN echo more >> /part\n")
    tiny.build("--no-validate")
    tiny.build("tiny12", "--until", "part")
    argv = ["prune", "--matrix", tiny.matrix, "--format", "json"]
    would = tiny.run(*argv, "--dry-run").result
    assert sorted(one["why"].partition(":")[0] for one in would["images"]) == [
        "ends in the middle",
        "superseded",
    ]
    went = tiny.run(*argv).result
    assert went["images"] == would["images"]
    assert went["sboms"] == would["sboms"]
    left = local_images.list_labelled(tiny.engine, f"{LABEL_MATRIX}={tiny.matrix}")
    assert [image.tags for image in left] == [(tiny.image("tiny12"),)]
    assert tiny.run(*argv).result["images"] == []


def test_prune_leaves_what_others_made_of_our_images(tiny: TinyFamily, token: str) -> None:
    template = tiny.component("part", "RUN echo TOKEN > /part")
    tiny.write_matrix({"os": ["tiny12"]}, {"part": "1"})
    tiny.build("--no-validate")
    old = local_images.find(tiny.engine, tiny.image("tiny12"))
    assert old is not None
    derive = Builder(tiny.engine, tiny.image("tiny12"))
    derived = [derive(f"RUN echo {token} > /mine"), derive(f"LABEL mine={token}")]
    created = tiny.engine.api.create_container(old.id, ["true"])
    committed = tiny.engine.api.commit(created["Id"], message=token)["Id"]
    tiny.engine.api.remove_container(created["Id"])
    template.write_text(template.read_text() + "RUN echo more >> /part\n")
    tiny.build("--no-validate")
    argv = ["prune", "--matrix", tiny.matrix, "--format", "json"]
    assert [one["id"] for one in tiny.run(*argv, "--dry-run").result["images"]] == [old.id]
    # With another journal it knows the images no more; their history still tells them apart.
    environ = {"IMAGEGEN_STATE": str(tiny.run.state.with_name("other"))}
    would = tiny.run(*argv, "--dry-run", environ=environ).result
    assert [one["id"] for one in would["images"]] == [old.id]
    tiny.run(*argv)
    for image in (*derived, committed):
        assert local_images.find(tiny.engine, image) is not None
        local_images.remove(tiny.engine, image)


@pytest.mark.parametrize("state", ["of both", "of its own"])
def test_two_processes_build_a_cell_once(tiny: TinyFamily, state: str, tmp_path: Path) -> None:
    """The engine holds the lock, so it also works for users with different state folders."""
    tiny.component("part", "RUN sleep 3; echo TOKEN > /part")
    tiny.write_matrix({"os": ["tiny12"]}, {"part": "1"})
    argv = tiny.argv("build", "--no-validate", "--progress", "plain")
    environ = {"IMAGEGEN_STATE": str(tmp_path)} if state == "of its own" else {}
    with tiny.run.start(*argv) as first, tiny.run.start(*argv, environ=environ) as second:
        ends = [process.communicate(timeout=SECONDS) for process in (first, second)]
        assert [first.returncode, second.returncode] == [0, 0]
    told = "".join(err for _, err in ends)
    assert told.count("waits: process ") == 1
    assert told.count("up to date, ") == 1
    assert len(local_images.list_labelled(tiny.engine, f"{LABEL_MATRIX}={tiny.matrix}")) == 1
