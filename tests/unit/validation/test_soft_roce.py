"""Test the job of the Soft-RoCE machine, its answers, and the files that it boots."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from imagegen.engine.machine import guest_kernel, qemu
from imagegen.errors import ValidationError
from imagegen.validation.soft_roce import (
    Guest,
    answers,
    measured,
    report_of,
    setting_of,
)

if TYPE_CHECKING:
    from imagegen.model.launch import Contract

POWERED = qemu.Powered(up=True, timed_out=False, tail=("", "Kernel panic", ""))
PINGPONG = "  remote address: LID 0x0000\n100 iters in 1.23 seconds = 12290.20 usec/iter"
WRITE = "---\n #bytes  #iterations\n 65536      50          5.77          5.71   \t\t 0.1\n---"


def told(code: int, *outcomes: str, **traffic: tuple[int, str]) -> dict[str, tuple[int, str]]:
    checks = [{"id": f"rdma.{n}", "outcome": outcome} for n, outcome in enumerate(outcomes)]
    counts = {outcome: outcomes.count(outcome) for outcome in outcomes}
    more = {f"rdma.{name.replace('_', '-')}": said for name, said in traffic.items()}
    return {"validate": (code, json.dumps({"checks": checks, "counts": counts})), **more}


def test_traffic_joins_the_report() -> None:
    told_all = told(0, "passed", pingpong=(0, PINGPONG), write_bw=(0, WRITE))
    report = report_of("image", Guest(told_all, POWERED))
    assert (report["exit_code"], report["counts"]) == (0, {"passed": 3})
    assert [(c["id"], c["outcome"]) for c in report["checks"][1:]] == [
        ("rdma.pingpong", "passed"),
        ("rdma.write-bw", "passed"),
    ]
    assert report["checks"][1]["measured"] == "100 iters in 1.23 seconds = 12290.20 usec/iter"
    assert report["checks"][2]["measured"] == "50 x 65536 bytes, 5.71 MB/s under emulation"


def test_traffic_that_fails_fails_the_image() -> None:
    said = (1, "local address\nFailed to modify QP to RTR\n\n")
    told_all = told(0, "passed", pingpong=said, write_bw=(0, WRITE))
    report = report_of("image", Guest(told_all, POWERED))
    failed = report["checks"][1]
    assert (report["exit_code"], report["counts"]) == (1, {"passed": 2, "failed": 1})
    assert failed["measured"] == "exit code 1: Failed to modify QP to RTR"
    assert failed["cause"]
    assert failed["remedy"]


def test_traffic_rests_where_a_check_has_failed() -> None:
    report = report_of("image", Guest(told(1, "passed", "failed", "skipped"), POWERED))
    assert report["exit_code"] == 1
    assert [c["outcome"] for c in report["checks"][3:]] == ["skipped", "skipped"]
    assert {(c["reason"], c["measured"]) for c in report["checks"][3:]} == {
        ("blocked-by", "rdma.1")
    }


@pytest.mark.parametrize(
    ("powered", "text"),
    [
        (qemu.Powered(True, False, ()), "`validate` left no report in the Soft-RoCE machine"),
        (qemu.Powered(True, True, ()), "did not end in its time"),
        (qemu.Powered(False, False, ("", "Kernel panic")), "did not start"),
    ],
)
def test_a_machine_without_a_report(powered: qemu.Powered, text: str) -> None:
    for said in ({}, {"validate": (2, "")}, {"validate": (0, '{"half')}):
        with pytest.raises(ValidationError) as raised:
            report_of("image", Guest(said, powered))
        (problem,) = raised.value.problems
        assert text in problem.text
        assert list(problem.evidence) == [line for line in powered.tail if line]


def test_a_device_that_cannot_be_made_is_said_first() -> None:
    with pytest.raises(ValidationError) as raised:
        report_of("image", Guest({"device": (255, ""), **told(3, "skipped")}, POWERED))
    assert "`rdma link add` failed in `image`" in raised.value.problems[0].text


def test_only_whole_answers_count() -> None:
    text = '@begin validate 0\n{"a":\n 1}\n\n@end validate\nnoise\n@begin rdma.pingpong 3\nhal'
    assert answers(text) == {"validate": (0, '{"a":\n 1}\n')}
    assert answers("") == {}


def test_what_no_program_says_is_no_figure() -> None:
    assert measured("nothing of note\n") == "it ended well"


def test_the_guest_has_the_environment_and_the_limits_that_the_image_asks_for() -> None:
    contract: Contract = {
        "shm_bytes": 34359738368,
        "ulimits": {"memlock": -1, "stack": 67108864, "odd": 1},
    }
    lines = setting_of(["PATH=/a:/b", 'ODD=it\'s "$x"', "BARE"], contract)
    assert lines[1] == "export PATH=/a:/b"
    assert lines[5:8] == [
        "mount -t tmpfs -o size=34359738368 shm /dev/shm",
        "ulimit -l unlimited",
        "ulimit -s 65536",
    ]
    assert lines[-1].startswith("rdma link add rxe0")
    subprocess.run(["sh", "-n"], input="\n".join(lines), text=True, check=True)
    asked = [*lines[2:3], 'printf %s "$ODD"']
    shown = subprocess.run(["sh", "-c", "\n".join(asked)], check=True, capture_output=True)
    assert shown.stdout.decode() == 'it\'s "$x"'


def test_the_first_root_is_a_script() -> None:
    subprocess.run(["sh", "-n"], input=guest_kernel.INIT, text=True, check=True)


def test_modules_come_after_what_they_depend_on() -> None:
    depends = {"rxe": ["core", "tunnel"], "uverbs": ["core"], "core": [], "tunnel": ["core"]}
    assert guest_kernel.load_order(["rxe", "built_in", "uverbs"], depends) == [
        "core",
        "tunnel",
        "rxe",
        "uverbs",
    ]


def test_a_module_says_what_it_depends_on() -> None:
    assert guest_kernel.dependencies(b"\x7fELF\0depends=ib_core,udp-tunnel\0name=x\0") == [
        "ib_core",
        "udp_tunnel",
    ]
    assert guest_kernel.dependencies(b"\x7fELF\0depends=\0name=x\0") == []


def members(packed: bytes) -> dict[str, tuple[int, bytes]]:
    """Read the archive by cpio(5), without the code that is tested."""
    found, stream = {}, io.BytesIO(packed)
    while (header := stream.read(110)) and header.startswith(b"070701"):
        fields = [int(header[6 + 8 * n : 14 + 8 * n], 16) for n in range(13)]
        name = stream.read(fields[11]).rstrip(b"\0").decode()
        stream.seek(-stream.tell() % 4, 1)
        found[name] = (fields[1], stream.read(fields[6]))
        stream.seek(-stream.tell() % 4, 1)
    return found


def test_the_job_follows_the_first_root_as_an_archive_of_its_own() -> None:
    initrd = guest_kernel.archive([("bin", 0o40755, b""), ("bin/x", 0o100755, b"12345")])
    assert members(initrd) == {
        "bin": (0o40755, b""),
        "bin/x": (0o100755, b"12345"),
        "TRAILER!!!": (0, b""),
    }
    both = guest_kernel.with_job(initrd, "echo é")
    assert both.startswith(initrd)
    assert len(both) % 4 == 0
    assert members(both[len(initrd) :])["job"] == (0o100644, "echo é".encode())


def test_the_machine_has_a_limit_of_its_own_and_no_way_out() -> None:
    machine = qemu.VirtualMachine(Path("k"), Path("i"), Path("d"), Path("a"), 90)
    line = qemu.qemu_command(machine)
    assert line[:3] == ["timeout", "--kill-after=5", "90"]
    assert "user,id=net,restrict=on" in line
    assert "file:a" in line
    assert next(part for part in line if part.startswith("file=d")).endswith("readonly=on")
