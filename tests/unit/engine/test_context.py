"""Test build contexts and the query of `/build`."""

from __future__ import annotations

import io
import tarfile
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imagegen.engine.builds.buildkit import BuildRequest, StepError, parameters
from imagegen.engine.builds.context import CHUNK_BYTES, HostFile, pack_context
from imagegen.errors import EngineError
from imagegen.model.recipe import ContextFile

if TYPE_CHECKING:
    from pathlib import Path

FILES = [
    ContextFile("z.txt", b"z"),
    ContextFile("files/ssh/sshd.conf", b"Port 2222\n"),
    ContextFile("files/entry", b"#!/bin/sh\n", 0o755),
]


def packed(files: list[ContextFile], *large: HostFile) -> bytes:
    return b"".join(pack_context("FROM x\n", files, large))


def unpacked(context: bytes) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(context), mode="r:gz")


@given(st.permutations(FILES))
def test_the_order_of_files_does_not_change_a_byte(files: list[ContextFile]) -> None:
    assert packed(files) == packed(FILES)


def test_the_tar_holds_folders_files_and_modes_with_fixed_times_and_owners() -> None:
    with unpacked(packed(FILES)) as tar:
        members = tar.getmembers()
    assert [m.name for m in members] == [
        "Dockerfile", "files", "files/ssh", "files/entry", "files/ssh/sshd.conf", "z.txt",
    ]  # fmt: skip
    assert {(m.uid, m.gid, m.mtime, m.pax_headers == {}) for m in members} == {(0, 0, 0, True)}
    modes = {m.name: m.mode for m in members}
    assert (modes["files"], modes["files/entry"], modes["z.txt"]) == (0o755, 0o755, 0o644)


def test_a_long_path_needs_no_pax_header() -> None:
    path = "/".join(["d" * 60] * 4)
    with unpacked(packed([ContextFile(path, b"1")])) as tar:
        assert tar.getmembers()[-1].name == path
        assert tar.getmembers()[-1].pax_headers == {}


def test_a_file_of_the_host_is_read_on_the_way_and_never_held(tmp_path: Path) -> None:
    source = tmp_path / "part.tgz"
    with source.open("wb") as file:
        file.truncate(24 * CHUNK_BYTES + 5)
    context = pack_context("FROM x\n", FILES, [HostFile("artifacts/ofed/5.4/part.tgz", source, "")])
    tracemalloc.start()
    total = sum(len(chunk) for chunk in context)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total > 24 * CHUNK_BYTES
    assert peak < 6 * CHUNK_BYTES


def test_a_file_of_the_host_lies_under_its_path_whatever_its_own_time(tmp_path: Path) -> None:
    source = tmp_path / "elsewhere"
    source.write_bytes(b"wheel" * 1000)
    large = HostFile("artifacts/lightcc/3.1.1/light.whl", source, "")
    first = packed(FILES, large)
    source.touch()
    assert packed(FILES, large) == first
    with unpacked(first) as tar:
        content = tar.extractfile("artifacts/lightcc/3.1.1/light.whl")
        assert content is not None
        assert content.read() == b"wheel" * 1000
        assert tar.getmember("artifacts/lightcc/3.1.1").isdir()
        assert {member.mtime for member in tar.getmembers()} == {0}


def test_a_file_of_the_host_that_is_gone_is_told(tmp_path: Path) -> None:
    gone = HostFile("artifacts/x/1/x", tmp_path / "gone", "")
    with pytest.raises(EngineError, match="gone` cannot be read"):
        packed(FILES, gone)


def test_only_what_was_asked_for_is_in_the_query() -> None:
    assert parameters(BuildRequest((), "b1")) == {
        "version": "2",
        "buildid": "b1",
        "labels": "{}",
        "buildargs": "{}",
    }
    full = BuildRequest((), "b1", {"k": "v"}, {"a": "1"}, "final", True, "host", "x:y")
    assert parameters(full) == {
        "version": "2",
        "buildid": "b1",
        "labels": '{"k": "v"}',
        "buildargs": '{"a": "1"}',
        "target": "final",
        "nocache": "1",
        "networkmode": "host",
        "t": "x:y",
    }


def test_a_step_error_reads_as_a_sentence_and_knows_its_cause() -> None:
    error = StepError("RUN pip", "exit code: 1", 1, ("OSError: No space left on device",))
    assert str(error) == "RUN pip: exit code: 1"
    assert (error.cause, error.cancelled) == ("disk full", False)
    assert StepError("RUN x", "context canceled").cancelled


def test_an_error_is_among_the_last_lines_whatever_output_came_after_it() -> None:
    log = tuple(f"out {number}" for number in range(30))
    errors = tuple(f"wrong {number}" for number in range(10))
    failed = StepError("RUN x", "exit code: 1", 1, log, ("no space left on device",))
    assert failed.last(4) == ("no space left on device", *log[-3:])
    assert failed.cause == "disk full"
    assert StepError("RUN x", "", 1, log, errors).last(6) == (*errors[-3:], *log[-3:])
    mixed = (*log[:5], "wrong 9", *log[5:8])
    assert StepError("RUN x", "", 1, mixed, errors).last(4) == (*errors[-2:], *log[6:8])
    assert StepError("RUN x", "", 1, mixed, errors[-1:]).last(4) == mixed[-4:]
    assert StepError("RUN x", "", 1, log[:2]).last(4) == log[:2]
