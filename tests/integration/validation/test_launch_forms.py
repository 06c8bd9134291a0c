"""Test `validate` in healthy images that a launch gives less, or other variables."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from imagegen.engine.containers.containers import Container

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.engine.client import Engine

SECONDS = 300
SMALL = {"mem_limit": "200m", "memswap_limit": "200m"}


@contextmanager
def launched(
    engine: Engine, image: str, env: dict[str, str], **options: Any
) -> Iterator[Container]:
    host = engine.api.create_host_config(**options)
    made = engine.api.create_container(
        image, ["sleep", "infinity"], environment=env, host_config=host
    )
    try:
        engine.api.start(made["Id"])
        yield Container(engine, made["Id"], made["Id"])
    finally:
        engine.api.remove_container(made["Id"], force=True)


def verdicts(container: Container, suites: str) -> dict[str, dict[str, Any]]:
    result = container.exec(["validate", "--only", suites, "--json", "-"], SECONDS)
    return {check["id"]: check for check in json.loads(result.out)["checks"]}


@pytest.mark.parametrize(
    ("options", "suites", "check", "cause"),
    [
        pytest.param(
            {"cap_drop": ["SYS_CHROOT"]},
            "ssh",
            "ssh.login",
            "the container lacks capability SYS_CHROOT: sshd may not call chroot",
            id="a capability",
        ),
        pytest.param(
            {"cap_drop": ["ALL"]},
            "ssh",
            "ssh.login",
            "the container lacks capabilities SETGID, SYS_CHROOT, SETUID",
            id="all capabilities",
            marks=pytest.mark.long,
        ),
        pytest.param(
            SMALL,
            "openmpi,horovod",
            "hvd.size",
            "out of memory: the container may use 200 MiB, it has used ",
            id="little memory",
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_a_launch_takes_away_is_named(
    this_engine: Engine,
    cpu_family: dict[str, str],
    options: dict[str, Any],
    suites: str,
    check: str,
    cause: str,
) -> None:
    with launched(this_engine, cpu_family["debian12-none"], {}, **options) as container:
        found = verdicts(container, suites)
    assert [name for name, one in found.items() if one["outcome"] == "failed"] == [check]
    assert found[check]["cause"].startswith(cause)
    assert "--cap-add SYS_CHROOT" in found[check]["remedy"] or "--memory" in found[check]["remedy"]


def test_a_locale_that_does_not_decide_and_no_network_are_no_findings(
    this_engine: Engine, cpu_family: dict[str, str]
) -> None:
    image, env = cpu_family["debian12-none"], {"LANG": "C", "LD_PRELOAD": "/opt/gone.so"}
    with launched(this_engine, image, env, network_mode="none") as container:
        found = verdicts(container, "validate,os,ssh")
    assert found["env.contract"]["outcome"] == "passed"
    assert found["os.hostname"]["outcome"] == "skipped"
    assert found["ssh.login"]["outcome"] == found["ssh.quiet"]["outcome"] == "passed"
    findings = [one["id"] for one in found.values() if one["outcome"] in ("failed", "warned")]
    assert findings == ["os.preload"]
