"""Test `validate` in containers that may do little: a table in the end, and words for each lack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from imagegen.engine.client import Engine

LITTLE: dict[str, Any] = {"mem_limit": "128m", "memswap_limit": "128m", "pids_limit": 15}
NOTHING: dict[str, Any] = {
    **LITTLE,
    "read_only": True,
    "network_mode": "none",
    "cap_drop": ["ALL"],
}
SECONDS = 300


def table(engine: Engine, image: str, command: str, limits: dict[str, Any], user: str) -> str:
    """Return what a command prints in a container; one that is killed or breaks prints no table."""
    api = engine.api
    made = api.create_container(
        image, ["sh", "-c", command], user=user, host_config=api.create_host_config(**limits)
    )
    try:
        api.start(made["Id"])
        api.wait(made["Id"], timeout=SECONDS)
        text: str = api.logs(made["Id"]).decode()
    finally:
        api.remove_container(made["Id"], force=True)
    assert "Traceback" not in text
    assert "the check itself broke" not in text
    assert " passed, " in text.splitlines()[-1]
    return text


def long(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.long)


@pytest.mark.parametrize(
    ("limits", "user", "command", "words"),
    [
        (NOTHING, "123456", "validate --static", ["os.tmp", "read-only", "out of memory"]),
        long(NOTHING, "123456", "validate", ["lim.root", "lim.home", "lim.user", "lim.nproc"]),
        long({"read_only": True}, "0", "validate", ["os.tmp", "lim.root", "(blocked-by) os.tmp"]),
        long({"read_only": True, "tmpfs": {"/tmp": ""}}, "0", "validate", ["lim.root: / is"]),
        long({}, "0", "rm -rf /tmp /var/tmp; validate", ["os.tmp", "not a folder of mode 1777"]),
        long(LITTLE, "0", "validate", ["lim.memory", "lim.nproc", "out of memory"]),
        long({"pids_limit": 4}, "0", "validate --static", ["may not start more processes"]),
        long({"network_mode": "none"}, "0", "validate", ["os.hostname", "ddp.torchrun"]),
        long({"ipc_mode": "none"}, "0", "validate --only limits", ["there is no /dev/shm"]),
        long({}, "0", "unset HOME; validate --only limits <&- 2>&-", ["HOME: not set"]),
        long({}, "0", "mkdir /x; cd /x; rmdir /x; validate --only os", ["os.tmp"]),
    ],
)
def test_a_table_comes_whatever_is_missing(
    this_engine: Engine,
    cpu_family: dict[str, str],
    limits: dict[str, Any],
    user: str,
    command: str,
    words: list[str],
) -> None:
    text = table(this_engine, cpu_family["debian13-none"], command, limits, user)
    assert [one for one in words if one not in text] == []
