"""Test the findings that follow from facts, the plans from findings, and `apply` with fakes."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from imagegen.engine.client import EngineFacts
from imagegen.engine.host import host as machine
from imagegen.engine.host.host import Host, HostFacts
from imagegen.errors import EngineError, Problem
from imagegen.maintenance import doctor
from imagegen.maintenance.doctor import (
    Command,
    Facts,
    Finding,
    findings,
    fix_plan,
)

if TYPE_CHECKING:
    from imagegen.workflow.project import Project

ENGINE = EngineFacts("20.10.24", "1.41", "overlay2", "/var/lib/docker", ("runc",), "amd64")
HOST = Host("Debian 12", True, True, False, False, True, True, False)
READY = HostFacts(HOST, (3, 11, 2), ENGINE, None, False, 80 * 2**30, "debian:12", "")
NONE = EngineError.of(
    "no container engine answers", evidence=["unix:///x: refused"], hint="imagegen doctor --fix"
)
BARE_HOST = replace(HOST, dockerd=False, mmdebstrap=False)
BARE = replace(
    READY, host=BARE_HOST, engine=None, no_engine=NONE, engine_is_ours=True, free_bytes=None,
    out_of_reach="no engine to ask",
)  # fmt: skip


def judge(facts: HostFacts, needed: int = 0, **more: object) -> dict[str, Finding]:
    return {f.name: f for f in findings(replace(Facts(facts, needed), **more))}  # type: ignore[arg-type]


def test_a_ready_machine_is_ok_throughout_and_has_nothing_to_fix() -> None:
    found = findings(Facts(READY, 30 * 2**30))
    assert {f.level for f in found} == {"ok"}
    assert [f.name for f in found] == [
        "python", "engine", "buildkit", "storage", "disk", "network", "nvidia", "registry",
        "mmdebstrap", "soft-roce",
    ]  # fmt: skip
    assert fix_plan(found, HOST) == []


def test_a_bare_machine_gets_engine_and_mmdebstrap_in_one_install() -> None:
    plan = [c.shell() for c in fix_plan(findings(Facts(BARE, 0)), BARE_HOST)]
    assert plan == [
        "apt-get update",
        (
            "apt-get install -y --no-install-recommends docker.io iptables mmdebstrap "
            "debian-archive-keyring"
        ),
        "sh -c 'setsid dockerd >>/var/log/imagegen-dockerd.log 2>&1 &'",
    ]


def test_what_boots_an_image_is_installed_and_its_lack_is_no_failure() -> None:
    host = replace(HOST, soft_roce_lacks=("qemu-system-x86", "squashfs-tools"))
    found = findings(Facts(replace(READY, host=host), 0))
    assert [f.name for f in found if f.level == "warn"] == ["soft-roce"]
    assert fix_plan(found, host)[-1].argv[-2:] == ("qemu-system-x86", "squashfs-tools")


def test_systemd_starts_the_engine_where_it_rules() -> None:
    host = replace(BARE_HOST, systemd=True, apparmor=True)
    plan = fix_plan(findings(Facts(replace(BARE, host=host), 0)), host)
    assert plan[-1] == Command(("systemctl", "enable", "--now", "docker"))
    assert "apparmor" in plan[1].argv


def test_an_engine_that_is_installed_is_only_started() -> None:
    facts = replace(BARE, host=HOST)
    assert fix_plan(findings(Facts(facts, 0)), HOST) == [Command(("dockerd",), "detach")]


def test_an_engine_that_somebody_named_is_never_set_up() -> None:
    found = judge(replace(BARE, host=HOST, engine_is_ours=False))
    assert (found["engine"].level, found["engine"].fix) == ("fail", "")
    assert "--fix" not in found["engine"].hint


def test_disk_is_held_against_what_is_needed() -> None:
    disk = judge(READY, 200 * 2**30)["disk"]
    assert (disk.level, disk.detail) == ("fail", "80 GiB free, 200 GiB needed")
    assert judge(replace(READY, free_bytes=None))["disk"].level == "warn"


def test_what_an_engine_may_lack() -> None:
    engine = replace(ENGINE, lack=Problem("no BuildKit", hint="another"), storage_driver="vfs")
    found = judge(replace(READY, engine=engine, host=replace(HOST, nvidia_gpu=True)))
    assert [found[n].level for n in ("buildkit", "storage", "nvidia")] == ["fail", "warn", "warn"]
    assert (found["buildkit"].detail, found["buildkit"].hint) == ("no BuildKit", "another")
    assert (
        judge(replace(READY, engine=replace(ENGINE, runtimes=("nvidia",))))["nvidia"].level == "ok"
    )


def test_no_registry_is_a_warning_until_bootstrap_is_impossible_too() -> None:
    far = replace(READY, out_of_reach="no such host")
    assert judge(far)["registry"].level == "warn"
    without = replace(far, host=replace(HOST, mmdebstrap=False))
    assert judge(without)["mmdebstrap"].level == "fail"
    near = replace(without, out_of_reach="")
    assert judge(near)["mmdebstrap"].level == "warn"


def test_network_settings_are_told_and_a_broken_one_fails() -> None:
    noted = findings(Facts(READY, 0, ("CA bundle /ca.crt (PIP_CERT)", "HTTPS_PROXY of this host")))
    assert [f.detail for f in noted if f.name == "network"] == [
        "builds use CA bundle /ca.crt (PIP_CERT)",
        "builds use HTTPS_PROXY of this host",
    ]
    assert (
        judge(READY, network_problem="the CA bundle `/x` cannot be read")["network"].level == "fail"
    )


def test_an_old_python_fails() -> None:
    assert judge(replace(READY, python=(3, 9, 2)))["python"].level == "fail"


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what would have been done to the machine, in order."""
    log: list[str] = []
    monkeypatch.setattr(machine, "perform", lambda argv, _: log.append(f"run {argv[0]}"))
    monkeypatch.setattr(machine, "start_daemon", lambda argv: log.append(f"detach {argv[0]}"))
    monkeypatch.setattr(machine, "await_engine", lambda: log.append("await"))
    return log


def test_each_command_is_announced_before_it_runs(done: list[str]) -> None:
    plan = fix_plan(findings(Facts(BARE, 0)), BARE_HOST)
    doctor.apply(plan, BARE_HOST, lambda line: done.append(f"say {line.split()[0]}"))
    assert done == [
        "say apt-get", "run apt-get", "say apt-get", "run apt-get", "say sh", "detach dockerd",
        "await",
    ]  # fmt: skip


def test_without_root_the_commands_are_shown_and_none_runs(done: list[str]) -> None:
    plan = fix_plan(findings(Facts(BARE, 0)), BARE_HOST)
    with pytest.raises(EngineError) as caught:
        doctor.apply(plan, replace(BARE_HOST, root=False), print)
    assert caught.value.exit_code == 9
    assert caught.value.problems[0].evidence[0] == "sudo apt-get update"
    assert done == []


def test_other_families_are_told_what_they_need(done: list[str]) -> None:
    host = replace(BARE_HOST, debian_family=False, name="Fedora 40")
    with pytest.raises(EngineError, match="this is Fedora 40"):
        doctor.apply(fix_plan(findings(Facts(BARE, 0)), host), host, print)
    doctor.apply([], host, print)
    assert done == []


def test_a_command_that_fails_says_what_it_printed() -> None:
    seen: list[str] = []
    with pytest.raises(EngineError, match="exit code 7") as caught:
        machine.perform(["sh", "-c", "echo broken; exit 7"], seen.append)
    assert seen == ["broken"]
    assert caught.value.problems[0].evidence == ("broken",)
    with pytest.raises(EngineError, match="cannot be run"):
        machine.perform(["imagegen-no-such-program"], seen.append)


def test_this_machine_can_be_looked_at() -> None:
    assert machine.here().name


@pytest.mark.parametrize(("days", "level"), [(1, "ok"), (200, "warn")])
def test_the_age_of_the_catalog_is_told(project: Project, days: int, level: str) -> None:
    words = doctor.catalog_age(project.catalog, date.max).detail.split()
    newest = date.fromisoformat(words[5].rstrip(","))
    found = doctor.catalog_age(project.catalog, newest + timedelta(days=days))
    assert (found.level, found.name) == (level, "catalog")
    assert found.detail == f"its newest facts are of {newest.isoformat()}, {days} days old"
    assert found.hint == ("" if level == "ok" else "imagegen catalog refresh --all")
