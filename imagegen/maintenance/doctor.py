"""Find what this machine lacks for building images, and set it up (`imagegen doctor`).

`engine.host` gathers the facts; pure functions here turn them into findings, and findings into a
plan. Only `apply` changes something, and it announces each command first.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from imagegen.config.network import pip_config_files, read_build_env
from imagegen.engine.host import host as machine
from imagegen.errors import ConfigError, EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from imagegen.engine.client import EngineFacts
    from imagegen.engine.host.host import Host, HostFacts
    from imagegen.model.catalog import Catalog

MINIMUM_PYTHON = (3, 10)
GIB = 2**30
FIX_HINT = "imagegen doctor --fix"
OLD_DAYS = 120
_DAY = re.compile(r"\b20\d\d-\d\d-\d\d\b")
_COPYING_DRIVERS = ("vfs",)

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Facts:
    """Hold the facts of the machine, and what its network settings mean for a build.

    `needed_bytes` is what the selected images need on the engine's disk, 0 where it is unknown.
    """

    machine: HostFacts
    needed_bytes: int
    network: tuple[str, ...] = ()
    network_problem: str = ""


@dataclass(frozen=True)
class Finding:
    """Hold one line of the report; `fix` names what `--fix` would set up, if it can."""

    name: str
    level: Level
    detail: str
    hint: str = ""
    fix: Literal["", "engine", "mmdebstrap", "soft-roce"] = ""


@dataclass(frozen=True)
class Command:
    """Hold one command of a set-up; `how` is `detach` for one that keeps running."""

    argv: tuple[str, ...]
    how: Literal["run", "detach"] = "run"

    def shell(self, sudo: bool = False) -> str:
        """Return the command as a person would type it."""
        line = shlex.join(self.argv)
        if self.how == "detach":
            line = shlex.join(["sh", "-c", f"setsid {line} >>{machine.DAEMON_LOG} 2>&1 &"])
        return f"sudo {line}" if sudo else line


def look(needed_bytes: int, image: str) -> Facts:
    """Gather the facts; `image` is a base image whose registry is tried."""
    found = machine.host_facts(image)
    try:
        env = read_build_env(os.environ, None, pip_config_files(Path.home()))
    except ConfigError as error:
        return Facts(found, needed_bytes, network_problem=error.problems[0].text)
    return Facts(found, needed_bytes, env.notes)


def findings(facts: Facts) -> list[Finding]:
    """Judge the facts, in the order in which a user would fix them."""
    found = [_python(facts.machine.python), _engine(facts.machine)]
    if facts.machine.engine:
        found += _engine_details(facts.machine.engine)
        found.append(_disk(facts.machine.free_bytes, facts.needed_bytes))
    found += _network(facts)
    if facts.machine.engine:
        found.append(_nvidia(facts.machine.engine, facts.machine.host))
    found.append(_registry(facts.machine))
    found.append(_mmdebstrap(facts.machine))
    found.append(_soft_roce(facts.machine.host))
    return found


def catalog_age(catalog: Catalog, today: date) -> Finding:
    """Say how old the newest facts of the catalog are: the dates on which sources were read."""
    days = [
        date.fromisoformat(found)
        for component in catalog.components.values()
        for release in component.releases
        for found in _DAY.findall(release.source)
    ]
    if not days:
        return Finding("catalog", "ok", "no source in it has a date")
    age = (today - max(days)).days
    detail = f"its newest facts are of {max(days).isoformat()}, {age} days old"
    if age <= OLD_DAYS:
        return Finding("catalog", "ok", detail)
    return Finding("catalog", "warn", detail, "imagegen catalog refresh --all")


def fix_plan(found: Sequence[Finding], host: Host) -> list[Command]:
    """List the commands that set up what is missing; empty where nothing is."""
    wanted = {finding.fix for finding in found} - {""}
    packages = []
    if "engine" in wanted and not host.dockerd:
        packages += ["docker.io", "iptables", *(["apparmor"] if host.apparmor else [])]
    if "mmdebstrap" in wanted:
        # mmdebstrap on Ubuntu needs the keyring, because Debian's keys are not on Ubuntu.
        packages += ["mmdebstrap", "debian-archive-keyring"]
    if "soft-roce" in wanted:
        packages += host.soft_roce_lacks
    plan = []
    if packages:
        install = ("apt-get", "install", "-y", "--no-install-recommends", *packages)
        plan += [Command(("apt-get", "update")), Command(install)]
    if "engine" in wanted:
        systemd = Command(("systemctl", "enable", "--now", "docker"))
        plan.append(systemd if host.systemd else Command(("dockerd",), "detach"))
    return plan


def apply(
    plan: Sequence[Command],
    host: Host,
    announce: Callable[[str], None],
    on_line: Callable[[str], None] = lambda _: None,
) -> None:
    """Run a plan; announce each command, and call `on_line` with the lines that it prints.

    Raises EngineError where a command fails, where this user may not run them (with the commands to
    run instead), and on hosts that are not of the Debian family.
    """
    _check_able(plan, host)
    for command in plan:
        announce(command.shell())
        if command.how == "detach":
            machine.start_daemon(command.argv)
        else:
            machine.perform(command.argv, on_line)
        if command.argv[0] in ("systemctl", "dockerd"):
            machine.await_engine()


def _check_able(plan: Sequence[Command], host: Host) -> None:
    if plan and not host.debian_family:
        text = f"`--fix` sets up Debian-family hosts, this is {host.name}"
        hint = "install Docker 19.03 or later and mmdebstrap the way this host does"
        raise EngineError.of(text, hint=hint)
    if plan and not host.root:
        text = "only root can set this machine up"
        commands = [command.shell(sudo=True) for command in plan]
        raise EngineError.of(text, evidence=commands, hint="run these commands")


def _python(version: tuple[int, int, int]) -> Finding:
    text = ".".join(map(str, version))
    if version[:2] >= MINIMUM_PYTHON:
        return Finding("python", "ok", text)
    return Finding("python", "fail", f"{text} is too old", "install Python 3.10 or later")


def _engine(facts: HostFacts) -> Finding:
    if facts.engine:
        engine = facts.engine
        detail = f"{engine.product} {engine.version}, API {engine.api_version}, {engine.arch}"
        return Finding("engine", "ok", detail)
    problem = facts.no_engine.problems[0] if facts.no_engine else None
    detail = "; ".join([problem.text, *problem.evidence]) if problem else "none answers"
    if facts.engine_is_ours:
        return Finding("engine", "fail", detail, FIX_HINT, "engine")
    hint = problem.hint if problem else ""
    if hint == FIX_HINT:
        hint = "start the engine that DOCKER_HOST, the context or the socket names"
    return Finding("engine", "fail", detail, hint)


def _engine_details(engine: EngineFacts) -> list[Finding]:
    buildkit = Finding("buildkit", "ok", "answers through the Engine API")
    if engine.lack:
        buildkit = Finding("buildkit", "fail", engine.lack.text, engine.lack.hint)
    if engine.storage_driver not in _COPYING_DRIVERS:
        return [buildkit, Finding("storage", "ok", engine.storage_driver)]
    detail = f"{engine.storage_driver} copies every layer: slow, and several times the disk"
    hint = f"put {engine.root_dir} on a file system that overlay2 works on, such as ext4"
    return [buildkit, Finding("storage", "warn", detail, hint)]


def _disk(free: int | None, needed: int) -> Finding:
    if free is None:
        return Finding("disk", "warn", "the engine's disk is not visible from here")
    if free >= needed:
        wants = f", {needed / GIB:.0f} GiB needed" if needed else ""
        return Finding("disk", "ok", f"{free / GIB:.0f} GiB free{wants}")
    detail = f"{free / GIB:.0f} GiB free, {needed / GIB:.0f} GiB needed"
    return Finding("disk", "fail", detail, "free disk at the engine's root, or build fewer cells")


def _network(facts: Facts) -> list[Finding]:
    if facts.network_problem:
        hint = "correct the variable or the pip configuration that names it"
        return [Finding("network", "fail", facts.network_problem, hint)]
    if not facts.network:
        return [Finding("network", "ok", "no CA bundle, proxy or pip index of this host's own")]
    return [Finding("network", "ok", f"builds use {note}") for note in facts.network]


def _nvidia(engine: EngineFacts, host: Host) -> Finding:
    if "nvidia" in engine.runtimes:
        return Finding("nvidia", "ok", "the engine has the NVIDIA runtime")
    if host.nvidia_gpu:
        hint = "install the NVIDIA container toolkit and register it with the engine"
        return Finding("nvidia", "warn", "a GPU, but no NVIDIA runtime in the engine", hint)
    return Finding("nvidia", "ok", "no GPU here: images build without one")


def _registry(facts: HostFacts) -> Finding:
    if not facts.out_of_reach:
        return Finding("registry", "ok", f"{facts.image} is in reach")
    detail = f"{facts.image} is not in reach, bases will be bootstrapped: {facts.out_of_reach}"
    return Finding("registry", "warn", detail)


def _mmdebstrap(facts: HostFacts) -> Finding:
    if facts.host.mmdebstrap:
        return Finding("mmdebstrap", "ok", "installed")
    level: Level = "fail" if facts.out_of_reach else "warn"
    detail = "missing: bases cannot be bootstrapped"
    return Finding("mmdebstrap", level, detail, FIX_HINT, "mmdebstrap")


def _soft_roce(host: Host) -> Finding:
    if not host.soft_roce_lacks:
        return Finding("soft-roce", "ok", "QEMU is installed")
    detail = f"`validate --soft-roce` lacks {', '.join(host.soft_roce_lacks)}"
    return Finding("soft-roce", "warn", detail, FIX_HINT, "soft-roce")
