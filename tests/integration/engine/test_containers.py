"""Test containers on a real engine: they are removed, commands end in time, refusals are noted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from docker.errors import NotFound

from imagegen.engine.containers.containers import (
    Container,
    LaunchSpec,
    network,
    running,
)
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from imagegen.engine.client import Engine

IDLE = ("sleep", "infinity")


def gone(engine: Engine, container: Container) -> bool:
    try:
        engine.api.inspect_container(container.id)
    except NotFound:
        return True
    return False


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_container_is_removed_on_any_exception(
    engine: Engine, tiny_base: str, error: type[BaseException]
) -> None:
    with pytest.raises(error), running(engine, LaunchSpec(tiny_base, IDLE)) as container:  # noqa: PT012
        assert container.alive()
        raise error
    assert gone(engine, container)
    assert not container.alive()


def test_a_launch_gets_what_it_asks_for(engine: Engine, tiny_base: str) -> None:
    spec = LaunchSpec(
        tiny_base,
        IDLE,
        env={"COLOUR": "blue"},
        shm_bytes=96 << 20,
        ulimits={"stack": 16 << 20},
        hostname="node-1",
        mounts=(("/etc/ssl", "/mnt/ssl", "ro"),),
        labels={"io.imagegen.test": "1"},
    )
    script = "echo $COLOUR; hostname; ulimit -s; df -k /dev/shm | tail -n 1; touch /mnt/ssl/x"
    with running(engine, spec) as container:
        done = container.exec(["sh", "-c", script], 20)
        described = engine.api.inspect_container(container.id)
    colour, host, stack, shm = done.out.splitlines()
    assert (colour, host, int(stack)) == ("blue", "node-1", 16 << 10)
    assert int(shm.split()[1]) == 96 << 10
    assert (done.code, "Read-only" in done.err) == (1, True)
    assert described["Config"]["Labels"]["io.imagegen.test"] == "1"
    assert container.notes == ()


def test_a_refused_limit_and_a_missing_device_are_noted(engine: Engine, tiny_base: str) -> None:
    # No kernel lets a process have more open files than fs.nr_open.
    spec = LaunchSpec(
        tiny_base,
        IDLE,
        ulimits={"nofile": 1 << 40, "stack": 16 << 20},
        devices=("/dev/imagegen-none", "/dev/null"),
    )
    with running(engine, spec) as container:
        done = container.exec(["sh", "-c", "ulimit -s"], 20)
    assert done.out.strip() == str(16 << 10)
    assert len(container.notes) == 2
    assert any("--ulimit nofile=" in note for note in container.notes)
    assert any("--device=/dev/imagegen-none" in note for note in container.notes)


def test_memlock_is_unlimited_or_noted(engine: Engine, tiny_base: str) -> None:
    with running(engine, LaunchSpec(tiny_base, IDLE, ulimits={"memlock": -1})) as container:
        done = container.exec(["bash", "-c", "ulimit -l"], 20)
    assert (done.out.strip() == "unlimited") != bool(container.notes)


def test_a_command_that_takes_too_long_is_killed_with_its_children(
    engine: Engine, tiny_base: str
) -> None:
    script = "echo begun; (setsid sleep 301 &); sleep 302; echo never"
    with running(engine, LaunchSpec(tiny_base, IDLE)) as container:
        begun = time.monotonic()
        done = container.exec(["sh", "-c", script], 1.5)
        assert time.monotonic() - begun < 10
        assert (done.timed_out, done.code, done.out) == (True, 124, "begun\n")
        assert container.alive()
        left = container.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline"], 20)
    # A process that was killed and not yet reaped has no command line left.
    assert "infinity" in left.out
    assert "301" not in left.out
    assert "302" not in left.out


def test_output_is_told_by_the_line(engine: Engine, tiny_base: str) -> None:
    lines: list[str] = []
    with running(engine, LaunchSpec(tiny_base, IDLE)) as container:
        script = "printf 'a\\nb'; sleep 0.3; printf 'c\\n'; echo $MARK >&2; exit 3"
        done = container.exec(["sh", "-c", script], 20, {"MARK": "m"}, lines.append)
    assert (done.code, done.out, done.err) == (3, "a\nbc\n", "m\n")
    assert [line for line in lines if line != "m"] == ["a", "bc"]
    assert lines.count("m") == 1


def test_a_container_that_dies_under_a_command(engine: Engine, tiny_base: str) -> None:
    with running(engine, LaunchSpec(tiny_base, ("sh", "-c", "echo last words; sleep 2"))) as dying:
        done = dying.exec(["sleep", "60"], 60)
        assert (done.code, done.timed_out) == (137, False)
        assert not dying.alive()
        assert dying.logs() == "last words\n"
        with pytest.raises(EngineError, match="could not run `true`"):
            dying.exec(["true"], 10)


def test_files_go_in_and_out(engine: Engine, tiny_base: str) -> None:
    with running(engine, LaunchSpec(tiny_base, IDLE)) as container:
        container.write_file("/root/deep.json", b'{"a": 1}', 0o600)
        assert container.read_file("/root/deep.json") == b'{"a": 1}'
        mode = container.exec(["stat", "-c", "%a %U", "/root/deep.json"], 20)
        assert mode.out == "600 root\n"
        for path in ("/root/none", "/root"):
            with pytest.raises(FileNotFoundError):
                container.read_file(path)
        with pytest.raises(EngineError):
            container.write_file("/no/such/folder/x", b"")


def test_what_cannot_start_says_why(engine: Engine, tiny_base: str, token: str) -> None:
    labels = {"io.imagegen.test": token}
    for spec, why in [
        (LaunchSpec("imagegen/test:never-was", labels=labels), "No such image"),
        (LaunchSpec(tiny_base, ("no-such-program",), labels=labels), "no-such-program"),
    ]:
        with pytest.raises(EngineError, match=why), running(engine, spec):
            pytest.fail("it started")
    left = engine.api.containers(all=True, filters={"label": f"io.imagegen.test={token}"})
    assert left == []


def test_containers_find_one_another_in_a_private_network(
    engine: Engine, tiny_base: str, token: str
) -> None:
    with network(engine, f"imagegen-test-{token}") as name:
        first = LaunchSpec(tiny_base, IDLE, network=name, hostname="node-1")
        second = LaunchSpec(tiny_base, IDLE, network=name, hostname="node-2")
        with running(engine, first), running(engine, second) as container:
            found = container.exec(["getent", "hosts", "node-1"], 20)
    assert found.code == 0
    assert engine.api.networks(names=[f"imagegen-test-{token}"]) == []
