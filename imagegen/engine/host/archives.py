"""Ask package archives which versions they have, through their own clients: apt and pip."""

from __future__ import annotations

import json
import platform
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.engine.builds.causes import cause_of
from imagegen.engine.containers.containers import LaunchSpec, running
from imagegen.engine.host import process
from imagegen.engine.host.file_lock import one_at_a_time
from imagegen.engine.host.probe import Probe
from imagegen.engine.images import bases, local_images
from imagegen.errors import EngineError
from imagegen.model.image import base_alias
from imagegen.model.labels import LABEL_HOW

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from imagegen.engine.client import Engine
    from imagegen.model.recipe import ContextFile
    from imagegen.model.release import OsRelease

UPDATE_SECONDS = 180
MOUNT = "/mnt"
"""The folder where build steps find the files of the build environment."""

_APT = Path("/etc/apt")
_OPTIONS = {
    "Acquire::Languages": "none",
    "Acquire::Retries": "1",
    "Acquire::http::Timeout": "15",
    "Acquire::https::Timeout": "15",
    "APT::Update::Error-Mode": "any",
}
_MAIN_ALONE = re.compile(r"(deb .* main|Components: main)$")
_SOURCES = "ls -d /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null"
_CLEARED = ("Pre-Invoke", "Post-Invoke", "Post-Invoke-Success")
"""Hooks of the host's own apt; they are not for lists in a folder of this tool."""


@dataclass(frozen=True)
class Listing:
    """Hold the versions that an archive has of each package.

    `problem` says what did not answer, so that a package that is not listed may exist all the same.
    `suite_missing` says that the suite itself does not exist. `asked` names the archive.
    """

    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problem: str = ""
    suite_missing: bool = False
    asked: str = ""


def local_base(engine: Engine | None, os: OsRelease) -> str:
    """Return the reference of the base on the engine; empty where the engine does not have it."""
    refs = (base_alias(os), os.image) if engine else ()
    return next((ref for ref in refs if engine and local_images.find(engine, ref)), "")


def probe_base(engine: Engine | None, os: OsRelease, mode: str) -> Probe | None:
    """Ask whether the engine or a registry has a base; None where it has to be bootstrapped."""
    if engine is None:
        return None if os.bootstrap else Probe("unknown", "no engine to ask")
    present = local_images.find(engine, base_alias(os))
    how = present.labels.get(LABEL_HOW, "registry") if present else ""
    if present and mode in ("auto", how):
        return Probe("ok", f"on this engine, from {how}")
    if mode == "bootstrap":
        return None
    if local_images.find(engine, os.image):
        return Probe("ok", "on this engine")
    why = bases.why_out_of_reach(engine, os.image)
    if not why:
        return Probe("ok", "its registry has it")
    if mode == "auto" and os.bootstrap:
        return None
    missing = re.search(r"not found|unknown|denied", why) and cause_of(why) != "network"
    return Probe("missing" if missing else "unknown", why)


def apt_in_base(
    engine: Engine,
    ref: str,
    names: Iterable[str],
    files: Sequence[ContextFile],
    environ: Mapping[str, str],
    areas: Sequence[str] = (),
) -> Listing:
    """Ask apt in a container of the base, with the base's own sources.

    `areas` (`contrib`, `non-free`) are read too, beside `main`. `files` are those of the build
    environment; they are where the build steps find them.
    """
    spec = LaunchSpec(ref, ("sleep", str(UPDATE_SECONDS * 2)), env=dict(environ))
    placed = {file.path.rpartition("/")[2]: file.data for file in files}
    env = {"APT_CONFIG": f"{MOUNT}/apt.conf"} if "apt.conf" in placed else {}
    options = [part for item in _OPTIONS.items() for part in ("-o", "=".join(item))]
    try:
        with running(engine, spec) as container:
            for name, data in placed.items():
                container.write_file(f"{MOUNT}/{name}", data)
            for path in container.exec(["sh", "-c", _SOURCES], UPDATE_SECONDS).out.split():
                text = container.read_file(path).decode(errors="replace")
                container.write_file(path, with_areas(text, areas).encode())
            update = container.exec(["apt-get", "-q", *options, "update"], UPDATE_SECONDS, env)
            listed = container.exec(["apt-cache", "madison", *names], UPDATE_SECONDS, env)
    except EngineError as error:
        return Listing(problem="; ".join(error.problems[0].evidence) or error.problems[0].text)
    output = (update.out + update.err).splitlines()
    return _listing(update.code, output, listed.out.splitlines(), f"apt in {ref}")


def apt_on_host(
    os: OsRelease, names: Iterable[str], folder: Path, areas: Sequence[str] = ()
) -> Listing:
    """Ask this host's apt for the suite, with the host's archive settings and these `areas`.

    Lists and state are in `folder`: those of the host stay as they are, and the next call is
    faster.
    """
    release = _os_release()
    if shutil.which("apt-get") is None or release.get("ID") != os.os_id:
        return Listing(problem=f"the base is not on this engine, and this host is no {os.os_id}")
    folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(folder / "lock"):
        config = _private_apt(folder, release.get("VERSION_CODENAME", ""), os.suite, areas)
        output: list[str] = []
        ended = process.run(["apt-get", "-q", "-c", str(config), "update"], output.append)
        lines: list[str] = []
        process.run(["apt-cache", "-c", str(config), "madison", *names], lines.append)
    return _listing(ended.code, output, lines, f"{os.suite} in this host's archive")


def _os_release() -> Mapping[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def _private_apt(folder: Path, own: str, suite: str, areas: Sequence[str]) -> Path:
    """Write an apt.conf with lists, state and sources of the suite, all inside the folder."""
    for name in ("state/lists/partial", "cache/archives/partial", "sources.list.d"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    for old in (folder / "sources.list.d").iterdir():
        old.unlink()
    (folder / "sources.list").write_text("")
    for path in (_APT / "sources.list", *sorted((_APT / "sources.list.d").glob("*"))):
        if path.is_file() and path.suffix in (".list", ".sources"):
            text = path.read_text(errors="replace")
            text = with_areas(for_suite(text, own, suite), areas)
            (folder / path.relative_to(_APT)).write_text(text)
    settings = _OPTIONS | {
        "Dir::State": f"{folder}/state",
        "Dir::State::status": f"{folder}/status",
        "Dir::Cache": f"{folder}/cache",
        "Dir::Etc::sourcelist": f"{folder}/sources.list",
        "Dir::Etc::sourceparts": f"{folder}/sources.list.d",
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "root",
    }
    config = folder / "apt.conf"
    cleared = [f"#clear APT::Update::{name};\n" for name in _CLEARED]
    config.write_text("".join([*cleared, *(f'{k} "{v}";\n' for k, v in settings.items())]))
    return config


def for_suite(sources: str, own: str, wanted: str) -> str:
    """Change apt sources from the host's release to another one.

    This includes suites such as `bookworm-security` of the release `bookworm`.
    """
    return re.sub(rf"(?<![\w-]){re.escape(own)}(?![\w.])", wanted, sources) if own else sources


def with_areas(sources: str, areas: Sequence[str]) -> str:
    """Add these areas, beside `main`, to apt sources.

    Security archives are left as they are: they list packages of other areas that they do not have.
    """
    if not areas:
        return sources
    more = " ".join(areas)
    lines = [
        f"{line} {more}" if _MAIN_ALONE.match(line) and "-security" not in line else line
        for line in sources.split("\n")
    ]
    return "\n".join(lines)


def _listing(code: int, output: Sequence[str], madison: Sequence[str], asked: str) -> Listing:
    errors = [line for line in output if line.startswith(("E:", "W: Failed", "Err:"))]
    problem = (errors or [f"apt-get update ended with {code}"])[0] if code or errors else ""
    lost = any(re.search(r"does not have a Release file|404 +Not Found", line) for line in errors)
    return Listing(versions_of(madison), problem, lost, asked)


def versions_of(madison: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Map each package to its versions, from the lines of `apt-cache madison`.

    A line is `package | version | where`.
    """
    found: dict[str, dict[str, None]] = {}
    for line in madison:
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) == 3 and cells[2].endswith("Packages"):
            found.setdefault(cells[0], {})[cells[1]] = None
    return {name: tuple(versions) for name, versions in found.items()}


def pip_says(project: str, environ: Mapping[str, str]) -> list[str]:
    """Return the lines that pip prints about every file of a project in its indexes.

    `environ` overrides this process's environment. Raises EngineError where there is no pip.
    """
    asked = ["index", "versions", project, "-vv", "--retries", "1", "--timeout", "15", "--no-input"]
    lines: list[str] = []
    process.run([*_pip(), *asked, "--disable-pip-version-check"], lines.append, environ)
    return lines


def pip_metadata(project: str, version: str, python: str, tag: str) -> Mapping[str, object]:
    """Read the metadata of a wheel for a Python (`3.12`) that may differ from this host's.

    It is empty where pip finds no such wheel. pip before 23.3 downloads the whole wheel for it. The
    settings of this host's pip are used. Raises EngineError where there is no pip.
    """
    with tempfile.TemporaryDirectory(prefix="imagegen-metadata-") as folder:
        report = Path(folder, "report.json")
        asked = ["install", "--dry-run", "--ignore-installed", "--no-deps", "--no-input", "--quiet"]
        asked += ["--only-binary", ":all:", "--python-version", python, "--platform", tag]
        asked += ["--target", f"{folder}/target", "--report", str(report), f"{project}=={version}"]
        ended = process.run([*_pip(), *asked, "--disable-pip-version-check"], lambda _: None)
        if ended.code != 0 or not report.is_file():
            return {}
        found: Mapping[str, object] = json.loads(report.read_text())["install"][0]["metadata"]
        return found


def pip_download(project: str, version: str, folder: Path) -> tuple[str, ...]:
    """Download a wheel of pure Python into a folder; return the last lines that pip printed.

    The wheel may be for another Python than this host's. Raises EngineError where there is no pip.
    """
    asked = ["download", "--no-deps", "--no-input", "--quiet", "--dest", str(folder)]
    asked += ["--only-binary", ":all:", "--platform", "any", "--implementation", "py"]
    asked += ["--ignore-requires-python", f"{project}=={version}", "--disable-pip-version-check"]
    return process.run([*_pip(), *asked], lambda _: None).tail


def _pip() -> list[str]:
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    found = shutil.which("pip3") or shutil.which("pip")
    if found is None:
        raise EngineError.of("this host has no pip to ask", hint="install pip")
    return [found]
