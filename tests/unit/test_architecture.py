"""The rules of the house, read from its own source: who imports whom, how large things get."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from imagegen import __version__
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.family import House

PACKAGE = REPOSITORY / "imagegen"
STAGES = {
    "catalog": {"catalog"},
    "matrix": {"matrix", "matrix_cells", "matrix_checks"},
    "resolve": {"resolve"},
    "plan": {"plan", "forecast", "time_left"},
    "render": {"render", "templates", "expectation", "replay"},
    "build": {"build", "build_log", "cell_build", "cell_request", "packing", "staleness", "until"},
    "validation": {"validation", "soft_roce", "passed", "basis"},
    "publish": {"publish"},
}
COMPOSERS = {"family", "workflow", "planning", "nightly", "request", "wishes", "doctor"}
"""The modules that may know other stages, beside the verbs under `cli`: `wishes` holds a value of a
request against the catalog as a matrix does."""

ENGINE_ROOM_ONLY = {"docker", "requests", "socket", "subprocess", "multiprocessing", "pty"}
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 300, 60


def name_of(path: Path) -> str:
    """`build` for imagegen/build.py, `cli` and `engine` for all that is below those."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def sources(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


EVERYWHERE = sources(PACKAGE, REPOSITORY / "validate")


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Dotted names that a module imports, and whether only for type checking."""
    tree = parsed(path)
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in for_types) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, id(node) in for_types
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from ((name, id(node) in for_types) for name in names)


@cache
def rooms_of(path: Path) -> set[str]:
    """The modules of imagegen that a module needs when it runs."""
    found = {
        name.split(".")[1]
        for name, for_types in imports(path)
        if name.startswith("imagegen.") and not for_types
    }
    return found & {name_of(other) for other in sources(PACKAGE)}


def stage_of(room: str) -> str:
    return next((stage for stage, rooms in STAGES.items() if room in rooms), "")


def shown(path: Path, line: int = 0) -> str:
    name = path.relative_to(REPOSITORY).as_posix()
    return f"{name}:{line}" if line else name


def test_no_stage_imports_another_stage() -> None:
    found = []
    for path in sources(PACKAGE):
        room = name_of(path)
        if room not in COMPOSERS | {"cli"}:
            others = {stage_of(other) for other in rooms_of(path)} - {"", stage_of(room)}
            found += [f"{shown(path)} imports {other}" for other in others]
    assert found == []


def allowed(room: str) -> set[str] | None:
    """What the lowest rooms may know; None for those that the stages decide."""
    low = {"model": set(), "errors": set(), "engine": {"engine", "errors", "model"}}
    return low.get(room)


def test_nothing_below_knows_what_it_serves() -> None:
    found = []
    for path in sources(PACKAGE):
        room, needs = name_of(path), rooms_of(path)
        limit = allowed(room)
        if room != "cli" and "cli" in needs:
            found.append(f"{shown(path)} imports cli")
        if limit is not None and needs - limit:
            found.append(f"{shown(path)} imports {needs - limit}")
    assert found == []


def test_only_the_engine_room_imports_docker_or_starts_processes() -> None:
    found = []
    for path in sources(PACKAGE):
        if name_of(path) == "engine":
            continue
        roots = {name.split(".")[0] for name, _ in imports(path)}
        found += [f"{shown(path)} imports {name}" for name in roots & ENGINE_ROOM_ONLY]
        if re.search(r"\bos\.(system|popen|fork|exec\w+|spawn\w+|posix_spawn\w*)\(", text_of(path)):
            found.append(f"{shown(path)} starts a process")
    assert found == []


def prints(called: str) -> bool:
    return called in ("print", "click.echo", "click.secho") or called.startswith(
        ("sys.stdout.", "sys.stderr.write")
    )


def test_only_the_console_prints() -> None:
    assert [
        shown(path, node.lineno)
        for path in sources(PACKAGE)
        if name_of(path) != "console"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and prints(ast.unparse(node.func))
    ] == []


def test_modules_stay_small() -> None:
    lines = {shown(path): len(text_of(path).splitlines()) for path in EVERYWHERE}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_functions_stay_small() -> None:
    functions = [
        (shown(path, node.lineno), (node.end_lineno or node.lineno) - node.lineno + 1)
        for path in EVERYWHERE
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    assert [one for one in functions if one[1] > MOST_LINES_OF_A_FUNCTION] == []
    assert median(count for _, count in functions) < 12


def test_every_module_says_what_it_is_for() -> None:
    assert [
        shown(path)
        for path in EVERYWHERE
        if parsed(path).body and not ast.get_docstring(parsed(path))
    ] == []


def test_every_component_has_a_suite_and_names_only_suites_that_exist(house: House) -> None:
    suites = REPOSITORY / "validate/suites"
    components = house.catalog.components.values()
    named = {suite for component in components for suite in component.suites}
    wanted = {f"test_{name}.py" for name in {*named, *house.catalog.components}}
    assert wanted <= {path.name for path in suites.glob("test_*.py")}


def test_every_component_is_proved_by_the_suite_of_its_name(house: House) -> None:
    for component in house.catalog.components.values():
        assert component.name in component.suites


def test_every_release_and_every_os_says_where_the_fact_stands(house: House) -> None:
    for component in house.catalog.components.values():
        for release in component.releases:
            assert len(release.source) > 10, f"{release.file}:{release.line}"
            assert release.origin
    for os_release in house.catalog.os.values():
        assert len(os_release.source) > 10, os_release.file


def test_the_checks_in_an_image_are_of_this_version(house: House) -> None:
    releases = house.catalog.components["validate"].releases
    assert {release.version for release in releases} == {__version__}
    pyproject = (REPOSITORY / "pyproject.toml").read_text()
    assert f'\nversion = "{__version__}"\n' in pyproject


def registry_hosts() -> set[str]:
    """The hosts that pip, as it comes and as it is set here, and apt of this machine ask."""
    texts = []
    for asked in (["config", "list"], ["download", "--help"]):
        pip = [sys.executable, "-m", "pip", *asked]
        ended = subprocess.run(pip, capture_output=True, text=True, check=True)
        texts.append(" ".join(re.findall(r"https?://[^\s'\")]+/simple\S*", ended.stdout)))
    for pattern in ("sources.list", "sources.list.d/*.list", "sources.list.d/*.sources"):
        texts += [path.read_text(errors="replace") for path in Path("/etc/apt").glob(pattern)]
    urls = [url for text in texts for url in re.findall(r"https?://[^\s'\"\])]+", text)]
    return {host for host in map(hostname, urls) if host not in ("", "localhost", "127.0.0.1")}


def hostname(url: str) -> str:
    return urlsplit(url).hostname or ""


def test_no_file_names_the_host_of_a_package_registry() -> None:
    """They differ from network to network: they come from the host's own settings at run time."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    hosts = registry_hosts()
    assert hosts
    for name in filter(None, listed.stdout.split("\0")):
        path = REPOSITORY / name
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        assert not [host for host in hosts if host in text], name
