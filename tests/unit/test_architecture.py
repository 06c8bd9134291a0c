"""Test the rules of the architecture from the source: who imports whom, how large things get."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from imagegen import __version__
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.workflow.project import Project

PACKAGE = REPOSITORY / "imagegen"
FLOORS = (
    ("model",),
    ("events", "config"),
    ("catalog", "journal", "console", "engine"),
    ("matrix", "resolver", "planner", "renderer", "sources", "validation", "inspection"),
    ("builder", "publisher", "launcher", "request", "maintenance"),
    ("workflow",),
    ("cli",),
)
"""The rooms, the lowest floor first: a module imports its own room and those of lower floors."""

VALIDATE_FLOORS = (
    ("remedy", "endings", "growing_file", "run_options", "sessions", "streams", "unnamed"),
    ("restrictions",),
    ("check", "components", "expected", "process"),
    ("fixtures", "preflight"),
    ("probes", "host_checks"),
    ("discovery",),
    ("expectation",),
    ("suites", "benchmark", "network"),
    ("catalogue",),
    ("requirements",),
    ("report",),
    ("outside", "prefetch", "pytest_plugin", "testinfra_timeout"),
    ("arguments", "pytest_run"),
    ("cli",),
    ("__main__", "pyz_main"),
)
"""The packages and modules of validate, the lowest floor first."""

SEEN_BY_THE_CLI = {"cli", "workflow", "console", "model", "config", "events", "errors", "text"}
"""The only packages that the command line imports; it reaches all others through a verb's page."""

LOOSE = {"__init__", "__main__", "errors", "text"}
"""The only modules outside a room; every room may import `errors` and `text`."""

TYPED_ROOMS = {
    *("model", "events", "config", "catalog", "journal", "console"),
    *("matrix", "resolver", "planner", "renderer", "sources", "validation"),
    *("builder", "launcher", "request"),
}
"""Rooms in which nothing is `Any`."""

ENGINE_ROOM_ONLY = {"docker", "requests", "socket", "subprocess", "multiprocessing", "pty"}
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 300, 60
MOST_MODULES = 12
"""Limit for a room, except those that have a file for each verb."""


def room_of(path: Path) -> str:
    """Return the room of a file: `builder` for imagegen/builder/cell.py, `errors` for errors.py."""
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


def imports(path: Path) -> Iterator[str]:
    """Yield the dotted names that a module imports, also those for type checking."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")


@cache
def arrows(package: str) -> dict[str, set[str]]:
    """Map each module to the modules of the same package that it imports."""
    modules = {module_of(path): path for path in sources(REPOSITORY / package)}
    return {name: {*imports(path)} & {*modules} - {name} for name, path in modules.items()}


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return the modules that a module imports, directly or through others."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return each circle of modules that import one another, once.

    These are the strongly connected components with more than one module.
    """
    reach = {name: reachable(graph, name) for name in graph}
    return {
        frozenset(other for other in reach[name] if name in reach[other])
        for name in graph
        if name in reach[name]
    }


def shown(path: Path, line: int = 0) -> str:
    name = path.relative_to(REPOSITORY).as_posix()
    return f"{name}:{line}" if line else name


def test_every_module_is_in_a_room() -> None:
    rooms = {room for floor in FLOORS for room in floor}
    assert {room_of(path) for path in sources(PACKAGE)} - rooms - LOOSE == set()
    assert {path.stem for path in PACKAGE.glob("*.py")} == LOOSE


@pytest.mark.parametrize(
    ("package", "floors"), [("imagegen", FLOORS), ("validate", VALIDATE_FLOORS)]
)
def test_a_module_imports_its_own_room_and_lower_floors(
    package: str, floors: tuple[tuple[str, ...], ...]
) -> None:
    floor_of = {room: number for number, floor in enumerate(floors) for room in floor}
    found = []
    for name, others in arrows(package).items():
        for other in others:
            one, two = (dotted.split(".")[1:2] for dotted in (name, other))
            if one and two and one != two and one[0] not in LOOSE and two[0] not in LOOSE:
                down = floor_of[two[0]] < floor_of[one[0]]
                found += [] if down else [f"{name} imports {other}"]
    assert found == []


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(graph) == {frozenset("abc"), frozenset("de")}


@pytest.mark.parametrize("package", ["imagegen", "validate"])
def test_no_modules_import_one_another_in_a_circle(package: str) -> None:
    assert circles(arrows(package)) == set()


def test_reports_of_validate_need_neither_suites_nor_probes() -> None:
    graph = arrows("validate")
    for name in graph:
        if name.startswith("validate.report."):
            parts = {other.split(".")[1] for other in reachable(graph, name) if "." in other}
            assert not parts & {"suites", "probes"}, name


def test_the_command_line_imports_pages_and_what_it_prints_with() -> None:
    found = {
        f"{name} imports {other}"
        for name, others in arrows("imagegen").items()
        for other in others
        if name.startswith("imagegen.cli.") and {*other.split(".")[1:2]} - SEEN_BY_THE_CLI
    }
    assert found == set()


def test_a_page_imports_at_its_top() -> None:
    """A page imports at its head all that the verb needs; the rooms load heavy libraries later.

    `project` is no page: if the last run kept its results, it needs none of the stages that it can
    call.
    """
    functions = [
        (path, node)
        for path in sources(PACKAGE / "workflow")
        if path.stem != "project"
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    assert [
        shown(path, inner.lineno)
        for path, function in functions
        for inner in ast.walk(function)
        if isinstance(inner, (ast.Import, ast.ImportFrom))
    ] == []


def test_what_stands_in_no_room_imports_no_room() -> None:
    assert arrows("imagegen")["imagegen.errors"] == set()
    assert arrows("imagegen")["imagegen.text"] == set()


def test_the_front_of_a_room_imports_nothing() -> None:
    for path in sources(PACKAGE):
        if path.name == "__init__.py" and path.parent != PACKAGE:
            assert list(imports(path)) == [], shown(path)


def test_only_the_engine_room_imports_docker_or_starts_processes() -> None:
    found = []
    for path in sources(PACKAGE):
        if room_of(path) == "engine":
            continue
        roots = {name.split(".")[0] for name in imports(path)}
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
        if room_of(path) != "console"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and prints(ast.unparse(node.func))
    ] == []


def test_every_value_on_the_path_of_a_build_has_a_type() -> None:
    """Data of another program is `object`, or has a type that is cast where the data is checked."""
    assert [
        shown(path, getattr(node, "lineno", 0))
        for path in sources(PACKAGE)
        if room_of(path) in TYPED_ROOMS
        for node in ast.walk(parsed(path))
        if names_any(node)
    ] == []


def names_any(node: ast.AST) -> bool:
    """Return whether `typing.Any` is imported or used here, also in an annotation that is text."""
    match node:
        case ast.Name(id="Any") | ast.Attribute(attr="Any") | ast.alias(name="Any"):
            return True
        case ast.Constant(value=str(text)):
            return bool(re.search(r"(^|\[|, )Any(,|\]|$)", text))
    return False


def test_rooms_stay_small() -> None:
    rooms = Counter(path.parent for path in sources(PACKAGE) if path.name != "__init__.py")
    a_file_a_verb = {PACKAGE / "cli", PACKAGE / "workflow"}
    large = {shown(room) for room, count in rooms.items() if count > MOST_MODULES}
    assert large == {shown(room) for room in a_file_a_verb}


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


def test_a_public_name_of_validate_is_defined_once() -> None:
    """A name has one meaning there: a second definition is the same thing or needs another name."""
    homes: dict[str, list[str]] = {}
    for path in sources(REPOSITORY / "validate"):
        for node in parsed(path).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                homes.setdefault(node.name, []).append(shown(path))
    entries = ("_", "test_", "main")
    assert {
        name: files
        for name, files in homes.items()
        if len(files) > 1 and not name.startswith(entries)
    } == {}


def test_every_component_has_a_suite_and_names_only_suites_that_exist(project: Project) -> None:
    suites = REPOSITORY / "validate/suites"
    components = project.catalog.components.values()
    named = {suite for component in components for suite in component.suites}
    wanted = {f"test_{name}.py" for name in {*named, *project.catalog.components}}
    assert wanted <= {path.name for path in suites.glob("test_*.py")}


def test_every_component_is_proved_by_the_suite_of_its_name(project: Project) -> None:
    for component in project.catalog.components.values():
        assert component.name in component.suites


def test_every_release_and_every_os_says_where_the_fact_stands(project: Project) -> None:
    for component in project.catalog.components.values():
        for release in component.releases:
            assert len(release.source) > 10, f"{release.file}:{release.line}"
            assert release.origin
    for os_release in project.catalog.os.values():
        assert len(os_release.source) > 10, os_release.file


def test_the_checks_in_an_image_are_of_this_version(project: Project) -> None:
    releases = project.catalog.components["validate"].releases
    assert {release.version for release in releases} == {__version__}
    pyproject = (REPOSITORY / "pyproject.toml").read_text()
    assert f'\nversion = "{__version__}"\n' in pyproject


def registry_hosts() -> set[str]:
    """Return the hosts that pip (by default and as set here) and apt of this machine ask."""
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
    """They differ from network to network, and come from the host's own settings at run time."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    hosts = registry_hosts()
    assert hosts
    for name in filter(None, listed.stdout.split("\0")):
        path = REPOSITORY / name
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        assert not [host for host in hosts if host in text], name
