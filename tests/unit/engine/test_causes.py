"""Test why builds fail and what engines refuse, with the messages that tools really print."""

from __future__ import annotations

import pytest

from imagegen.engine.builds.causes import CAUSES, cause_of
from imagegen.engine.builds.lines import Lines
from imagegen.engine.containers.refusals import relax, rlimit_name

SAID = {
    "disk full": [
        "failed to copy files: copy file range failed: no space left on device",
        "E: You don't have enough free space in /var/cache/apt/archives/.",
        "OSError: [Errno 28] No space left on device: '/usr/lib/x.so'",
    ],
    "network": [
        "dial tcp: lookup registry.invalid on 10.0.0.1:53: no such host",
        "W: Temporary failure resolving 'archive.invalid'",
        "ReadTimeoutError: HTTPSConnectionPool(host='x', port=443): Read timed out.",
        "curl: (56) Recv failure: Connection reset by peer",
    ],
    "certificate": ["SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed"],
    "version conflict": [
        "The following packages have unmet dependencies:",
        "ERROR: ResolutionImpossible: for help visit the manual",
        "ERROR: Cannot install a==1 and b==2 because these package versions have conflicting",
    ],
    "upstream gone": [
        "E: Unable to locate package libnope",
        "E: Version '9.9*' for 'python3-torch' was not found",
        "ERROR: No matching distribution found for torch==99",
        "  404  Not Found [IP: 203.0.113.1 80]",
        "manifest unknown",
        "curl: (22) The requested URL returned error: 404",
        "urllib.error.HTTPError: HTTP Error 410: Gone",
    ],
    "compile error": [
        "x.cc:1:10: fatal error: torch/extension.h: No such file or directory",
        "ERROR: Failed building wheel for horovod",
    ],
    "out of memory": [
        "c++: fatal error: Killed signal\nvirtual memory exhausted",
        "exit code: 137",
    ],
    "dockerfile": ["dockerfile parse error line 1: unknown instruction: FRM"],
    "cancelled": ["exit code: 137: context canceled: context canceled"],
    "command": ["executor failed running [/bin/sh -c false]: exit code: 1"],
}


@pytest.mark.parametrize(
    ("cause", "text"), [(cause, text) for cause, texts in SAID.items() for text in texts]
)
def test_the_cause_is_found_in_the_error_and_in_the_log(cause: str, text: str) -> None:
    assert cause in CAUSES
    assert cause_of(text) == cause
    assert cause_of("exit code: 100", ["Get:1 something", *text.splitlines()]) == cause


@pytest.mark.parametrize(
    "refusal",
    [
        "runc create failed: error setting rlimit type 8: operation not permitted: unknown",
        "crun: setrlimit `RLIMIT_MEMLOCK`: Operation not permitted: OCI permission denied",
    ],
)
def test_a_refused_limit_is_left_out_and_nothing_else(refusal: str) -> None:
    relaxed = relax(refusal, {"memlock": -1, "stack": 67108864}, ("/dev/fuse",))
    assert relaxed is not None
    assert (relaxed.ulimits, relaxed.devices) == ({"stack": 67108864}, ("/dev/fuse",))
    assert relaxed.note == "started without `--ulimit memlock=-1`: the engine may not set it"


def test_a_missing_device_is_left_out_and_nothing_else() -> None:
    refusal = (
        "error gathering device information while adding custom device "
        '"/dev/infiniband": no such file or directory'
    )
    relaxed = relax(refusal, {"memlock": -1}, ("/dev/infiniband", "/dev/fuse"))
    assert relaxed is not None
    assert (relaxed.ulimits, relaxed.devices) == ({"memlock": -1}, ("/dev/fuse",))
    assert "/dev/infiniband" in relaxed.note


@pytest.mark.parametrize(
    "refusal",
    [
        "error setting rlimit type 7: operation not permitted",
        'adding custom device "/dev/other": no such file or directory',
        "No such image: x",
    ],
)
def test_what_was_not_asked_for_is_not_relaxed(refusal: str) -> None:
    assert relax(refusal, {"memlock": -1}, ("/dev/infiniband",)) is None


def test_limits_have_the_names_that_the_engine_takes() -> None:
    assert [rlimit_name(n) for n in (3, 7, 8, 999)] == ["stack", "nofile", "memlock", ""]


def test_lines_survive_cuts_inside_a_character() -> None:
    lines, data = Lines(), "größe\r\nnext".encode()
    told = [line for index in range(len(data)) for line in lines.feed(data[index : index + 1])]
    assert (told, list(lines.rest()), list(lines.rest())) == (["größe"], ["next"], [])
