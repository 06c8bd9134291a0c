"""Test why a command broke: memory, files that are truncated or damaged, limits."""

from __future__ import annotations

import hashlib
import resource
import struct
from typing import TYPE_CHECKING

import pytest

from unit.validate.trees import expected, write
from validate.fixtures import Situation
from validate.probes import crashes, damage, limits
from validate.probes.memory import Memory, memory
from validate.process import Result

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
V2, V1 = "/sys/fs/cgroup", "/sys/fs/cgroup/memory"


def situation(root: Path, **env: str) -> Situation:
    return Situation(expected(root), env, str(root), {})


def ended(number: int, *argv: str, said: str = "") -> Result:
    return Result(list(argv or ("/bin/x",)), -number, "", said)


def elf(size: int = 4096) -> bytes:
    """Return an object whose only segment takes all of it."""
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQ", 3, 62, 1, 0, 64, 0)
    head += struct.pack("<IHHHHHH", 0, 64, 56, 1, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, size, size, 4096)
    return (head + load).ljust(size, b"\0")


def group_v2(root: Path, limit: str, peak: int, kills: int, folder: str = V2) -> None:
    write(root, folder + "/memory.max", limit)
    write(root, folder + "/memory.peak", str(peak))
    write(root, folder + "/memory.events", f"low 0\nhigh 0\nmax 9\noom 1\noom_kill {kills}\n")


def group_v1(root: Path, limit: int, peak: int, kills: int) -> None:
    write(root, V1 + "/memory.limit_in_bytes", str(limit))
    write(root, V1 + "/memory.max_usage_in_bytes", str(peak))
    write(root, V1 + "/memory.oom_control", f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n")


def test_the_limit_of_a_group_of_either_version(tmp_path: Path) -> None:
    assert memory(str(tmp_path)) == Memory(-1, -1, -1)
    group_v1(tmp_path, 2 * GIB, GIB, 0)
    assert memory(str(tmp_path)) == Memory(2 * GIB, GIB, 0)
    group_v2(tmp_path, str(GIB), GIB, 3)
    assert memory(str(tmp_path)) == Memory(GIB, GIB, 3)


def test_the_tightest_limit_above_a_group_counts(tmp_path: Path) -> None:
    write(tmp_path, "/proc/self/cgroup", "0::/pods.slice/pod1/main\n")
    group_v2(tmp_path, "max", GIB // 2, 1, V2 + "/pods.slice/pod1/main")
    group_v2(tmp_path, str(GIB), GIB, 0, V2 + "/pods.slice/pod1")
    assert memory(str(tmp_path)) == Memory(GIB, GIB, 1)


def test_no_limit_of_version_1_is_a_number(tmp_path: Path) -> None:
    group_v1(tmp_path, 0x7FFFFFFFFFFFF000, GIB, 0)
    assert memory(str(tmp_path)).limit == -1


@pytest.mark.parametrize(
    ("found", "ran_out"),
    [
        (Memory(GIB, GIB, 1), True),
        (Memory(-1, GIB, 1), True),
        (Memory(GIB, GIB, 0), False),  # pages of files, which the kernel takes back
        (Memory(GIB, GIB, -1), True),
        (Memory(GIB, GIB // 2, -1), False),
        (Memory(-1, -1, -1), False),
    ],
)
def test_when_memory_ran_out(found: Memory, *, ran_out: bool) -> None:
    assert found.ran_out is ran_out


def test_a_process_that_was_killed_for_memory(tmp_path: Path) -> None:
    group_v2(tmp_path, str(200 << 20), 200 << 20, 2)
    why = crashes.explain(situation(tmp_path), ended(9))
    assert why.cause == (
        "out of memory: the container may use 200 MiB, it has used 200 MiB, and the kernel ended 2 "
        "processes for want of it"
    )
    assert why.remedy.startswith("docker run --memory")


def test_a_process_that_was_killed_from_outside(tmp_path: Path) -> None:
    group_v2(tmp_path, "max", GIB, 0)
    write(tmp_path, "/proc/meminfo", "MemTotal: 9 kB\nMemAvailable: 2097152 kB\n")
    cause = crashes.explain(situation(tmp_path), ended(9)).cause
    assert cause.startswith("it was killed from outside")
    assert "the machine has 2 GiB free" in cause
    assert "out of memory" not in cause


@pytest.mark.parametrize("number", [4, 7, 11])
def test_a_truncated_library_is_named(tmp_path: Path, number: int) -> None:
    path = tmp_path / "liba.so.1"
    path.write_bytes(elf()[:512])
    why = crashes.explain(situation(tmp_path), ended(number, "x", str(path)))
    text = f"truncated or damaged file: {path} (it has 512 bytes, its headers describe 4096)"
    assert why.cause == text


def test_a_library_that_differs_from_its_package_is_named(tmp_path: Path) -> None:
    path = tmp_path / "usr/lib/liba.so.1"
    write(tmp_path, "/usr/lib/liba.so.1")
    path.write_bytes(elf())
    digest = hashlib.md5(b"the whole one").hexdigest()
    list_of = "/var/lib/dpkg/info/liba1:amd64.md5sums"
    write(tmp_path, list_of, f"{digest}  usr/lib/liba.so.1\n{'0' * 32}  usr/share/doc/x\n")
    why = crashes.explain(situation(tmp_path), ended(11, "x", str(path)))
    assert why.cause.startswith(f"truncated or damaged file: {path} (it is not what liba1 ")
    assert " liba1; rm -rf" in why.remedy
    whole = hashlib.md5(elf()).hexdigest()
    write(tmp_path, list_of, f"{whole}  usr/lib/liba.so.1\n")
    assert (
        "it crashed by itself" in crashes.explain(situation(tmp_path), ended(11, str(path))).cause
    )


def test_a_file_that_somebody_diverted_is_not_compared(tmp_path: Path) -> None:
    path = write(tmp_path, "/usr/lib/a.py", "patched")
    write(tmp_path, "/var/lib/dpkg/info/a.md5sums", f"{'0' * 32}  usr/lib/a.py\n")
    said = f'  File "{path}", line 3, in f'
    assert [one.owner for one in damage.damaged(situation(tmp_path), ["/x"], said)] == ["a"]
    write(tmp_path, "/var/lib/dpkg/diversions", "/usr/lib/a.py\n/usr/lib/a.py.distrib\n:\n")
    assert damage.damaged(situation(tmp_path), ["/x"], said) == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        (b"garbage", "it is no ELF file"),
        (b"/* GNU ld script */ INPUT(a)", ""),
        (elf()[:20], "it has 20 bytes, its headers describe 64"),
        (elf()[:100], "it has 100 bytes, its headers describe 120"),
        (elf(), ""),
        (b"\x7fELF\x01\x01" + bytes(80), ""),
    ],
)
def test_the_size_of_an_object_against_its_headers(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "liba.so"
    path.write_bytes(data)
    assert damage.not_whole(str(path)) == said


def test_a_small_stack_is_why_a_program_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "soft_limit", lambda _: 256 << 10)
    assert (
        crashes.explain(situation(tmp_path), ended(11)).cause == "the stack may have 256 KiB only"
    )


def test_a_full_shared_memory_is_why_a_mapped_file_ends_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crashes, "_share_used", lambda place: float("shm" in place))
    cause = crashes.explain(situation(tmp_path), ended(7)).cause
    assert cause.startswith("/dev/shm is full")


def test_an_instruction_that_the_processor_does_not_know(tmp_path: Path) -> None:
    write(tmp_path, "/proc/cpuinfo", "processor: 0\nmodel name\t: Old One\n")
    cause = crashes.explain(situation(tmp_path), ended(4)).cause
    assert cause == (
        "it was compiled for another processor: Old One does not know one of its instructions"
    )


@pytest.mark.parametrize(
    ("number", "words"),
    [(6, "it ended itself: terminate called"), (24, "its limit of processor time"),
     (25, "its limit of the size of a file"), (31, "seccomp"), (15, "something sent it signal 15")],
)  # fmt: skip
def test_other_signals(tmp_path: Path, number: int, words: str) -> None:
    why = crashes.explain(situation(tmp_path), ended(number, said="terminate called"))
    assert words in why.cause
    assert why.remedy or why.remedy.look


def test_messages_about_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group_v2(tmp_path, str(GIB), GIB, 0)
    said = "terminate called after throwing an instance of 'std::bad_alloc'"
    cause = crashes.explain(situation(tmp_path), ended(6, said=said)).cause
    assert cause == "out of memory: the container may use 1 GiB, it has used 1 GiB"
    monkeypatch.setattr(resource, "getrlimit", lambda _: (GIB, GIB))
    assert "ulimit -v" in crashes.out_of_memory(str(tmp_path), "MemoryError").cause
    assert crashes.out_of_memory(str(tmp_path), "CUDA out of memory") == ("", "")


def test_a_program_that_the_loader_cannot_start(tmp_path: Path) -> None:
    text = "x: error while loading shared libraries: {}: {}"
    gone = text.format("libopen-pal.so.40", "cannot open shared object file: No such file or d")
    why = crashes.explain(situation(tmp_path), Result(["/bin/x"], 127, "", gone))
    assert why.cause == "missing library: libopen-pal.so.40, which `/bin/x` needs"
    short = text.format("/lib/liba.so.1", "file too short")
    why = crashes.explain(situation(tmp_path), Result(["/bin/x"], 127, "", short))
    assert why.cause == "truncated or damaged file: /lib/liba.so.1 (file too short)"
