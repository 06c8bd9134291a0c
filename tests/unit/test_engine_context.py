"""Build contexts and the query of `/build`."""

from __future__ import annotations

import io
import tarfile

from hypothesis import given
from hypothesis import strategies as st

from imagegen.engine.buildkit import BuildRequest, StepError, pack_context, parameters
from imagegen.model import ContextFile

FILES = [
    ContextFile("z.txt", b"z"),
    ContextFile("files/ssh/sshd.conf", b"Port 2222\n"),
    ContextFile("files/entry", b"#!/bin/sh\n", 0o755),
]


def unpacked(context: bytes) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(context), mode="r:gz")


@given(st.permutations(FILES))
def test_the_order_of_files_does_not_change_a_byte(files: list[ContextFile]) -> None:
    assert pack_context("FROM x\n", files) == pack_context("FROM x\n", FILES)


def test_the_tar_holds_folders_files_and_modes_with_fixed_times_and_owners() -> None:
    with unpacked(pack_context("FROM x\n", FILES)) as tar:
        members = tar.getmembers()
    assert [m.name for m in members] == [
        "Dockerfile", "files", "files/ssh", "files/entry", "files/ssh/sshd.conf", "z.txt",
    ]  # fmt: skip
    assert {(m.uid, m.gid, m.mtime, m.pax_headers == {}) for m in members} == {(0, 0, 0, True)}
    modes = {m.name: m.mode for m in members}
    assert (modes["files"], modes["files/entry"], modes["z.txt"]) == (0o755, 0o755, 0o644)


def test_a_long_path_needs_no_pax_header() -> None:
    path = "/".join(["d" * 60] * 4)
    with unpacked(pack_context("FROM x\n", [ContextFile(path, b"1")])) as tar:
        assert tar.getmembers()[-1].name == path
        assert tar.getmembers()[-1].pax_headers == {}


def test_only_what_was_asked_for_is_in_the_query() -> None:
    assert parameters(BuildRequest(b"", "b1")) == {
        "version": "2",
        "buildid": "b1",
        "labels": "{}",
        "buildargs": "{}",
    }
    full = BuildRequest(b"", "b1", {"k": "v"}, {"a": "1"}, "final", True, "host", "x:y")
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
    assert (error.cause, error.cancelled) == ("disk", False)
    assert StepError("RUN x", "context canceled").cancelled
