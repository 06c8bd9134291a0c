"""Test the real command line on bad input: `error:` with file, line and key, `hint:`, exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from imagegen import __version__
from imagegen.cli import list as listing
from imagegen.cli.main import VERBS, cli
from imagegen.errors import EXIT_CODES
from unit.conftest import REPOSITORY, SMALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.conftest import Ended, Overlay

    Run = Callable[..., Ended]

pytestmark = pytest.mark.usefixtures("small")

HERE = "matrices/small.yaml"


def matrix(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


BAD_MATRICES: dict[str, tuple[str | bytes, int, str]] = {
    "unknown key": (SMALL + "colour: red\n", 2, f"error: {HERE}:14: `colour`: unknown key"),
    "misspelt axis": (
        matrix("  delta: [", "  dleta: ["),
        2,
        f"error: {HERE}:5: `axes.dleta`: axis `dleta` is neither `os` nor a component",
    ),
    "duplicate key": (SMALL + "name: small\n", 2, f"error: {HERE}:14: `name`: is there twice"),
    "not YAML": ("name: [small\n", 2, f"error: {HERE}:2: is not YAML"),
    "empty": ("", 2, f"error: {HERE}: is empty"),
    "only a comment": ("# nothing\n", 2, f"error: {HERE}: is empty"),
    "a list": ("- a\n", 2, f"error: {HERE}:1: the top level is a list, not a mapping"),
    "not UTF-8": (b"name: \xff\n", 2, f"error: {HERE}:1: is not UTF-8"),
    "unknown OS": (
        matrix("[debian12, ", "[debian11, "),
        2,
        (
            f"error: {HERE}:4: `axes.os[0]`: `debian11` is not an OS of the catalog\n"
            "  known: debian12, debian13\n"
        ),
    ),
    "unknown component": (
        SMALL + "  zeta: any\n",
        2,
        (
            f"error: {HERE}:14: `components.zeta`: component `zeta` is neither `os` nor a "
            "component of the catalog\n  known: os, alpha, beta, delta, gamma\n"
        ),
    ),
    "unknown version": (
        matrix("beta: any", "beta: 9.9"),
        2,
        (
            f"error: {HERE}:8: `components.beta`: `9.9` is not a release of component `beta`\n"
            "  known releases: 1.13.1, 2.6.0\n"
        ),
    ),
    "exclude that matches nothing": (
        SMALL + "exclude:\n  - {os: debian12, delta: '44.0', reason: x}\n",
        2,
        f"error: {HERE}:15: `exclude[0]`: this exclude matches no cell",
    ),
    "two cells with one tag": (
        matrix("-{delta}", ""),
        2,
        f"error: {HERE}:3: `tag`: cells `debian12-core` and `debian12-none` have one tag",
    ),
    "no combination": (
        SMALL[: SMALL.index("  gamma:")] + "  gamma: 0.28.1\n",
        4,
        f"error: {HERE}:3: cell `debian13-core` cannot be resolved",
    ),
}


@pytest.mark.parametrize("case", BAD_MATRICES)
@pytest.mark.parametrize("verb", ["list", "render"])
def test_a_bad_matrix_is_told_with_file_line_and_key(
    small: Overlay, run: Run, case: str, verb: str
) -> None:
    text, code, expected = BAD_MATRICES[case]
    small.write(HERE, text)
    ended = run(verb, "--matrix", "small", *(["--out", "out"] if verb == "render" else []))
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith(expected)
    assert "\nhint: " in ended.err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "value", ['"zz\\nRUN b"', '"zz\\n"', "'zz\"'", '"zz\'"', "$zz", "'`zz`'", "zz;b"]
)
@pytest.mark.parametrize("place", ["axis", "component", "tag", "reason"])
def test_no_value_becomes_a_command(
    small: Overlay, run: Run, place: str, value: str, tmp_path: Path
) -> None:
    """The value is refused or, where prose is allowed, appears nowhere in a Dockerfile."""
    text, key = {
        "axis": (matrix("[core,", f"[{value},"), "axes.delta[0]"),
        "component": (matrix("beta: any", f"beta: {value}"), "components.beta"),
        "tag": (matrix('"imagegen/small:{os}-{beta}-{delta}"', value), "tag"),
        "reason": (matrix("gamma does not compile there", value), "components.gamma"),
    }[place]
    small.write(HERE, text)
    ended = run("render", "--matrix", "small", "--out", str(tmp_path / "out"))
    if place == "reason" and ended.code == 0:
        found = [path.read_text() for path in (tmp_path / "out").rglob("Dockerfile")]
        assert len(found) == 4
        assert not any("zz" in text for text in found)
    else:
        assert ended.code == 2
        assert f"`{key}" in ended.err
        assert "\nhint: " in ended.err


def test_two_errors_of_one_file_are_told_in_one_run(small: Overlay, run: Run) -> None:
    small.write(HERE, matrix("beta: any", "beta: 9.9").replace("debian12,", "debian10,"))
    ended = run("list", "-m", "small")
    assert f"error: {HERE}:4: `axes.os[0]`" in ended.err
    assert f"error: {HERE}:8: `components.beta`" in ended.err


def test_errors_of_two_files_are_told_in_one_run(small: Overlay, run: Run) -> None:
    small.write(HERE, SMALL + "colour: red\n")
    small.matrix(SMALL.replace("name: small", "name: other") + "size: 1\n", "other")
    ended = run("list")
    assert ended.code == 2
    assert "error: matrices/other.yaml:14: `size`: unknown key" in ended.err
    assert "error: matrices/small.yaml:14: `colour`: unknown key" in ended.err


def test_errors_of_two_catalog_files_are_told_in_one_run(small: Overlay, run: Run) -> None:
    small.os("debian14", "14", extra="colour: red\n")
    small.component("zeta", "name: zeta\n")
    ended = run("list")
    assert "dockerfiles/os/debian14.yaml:10: `colour`: unknown key" in ended.err
    assert "dockerfiles/components/zeta/component.yaml:1: key `releases` is missing" in ended.err


def test_a_missing_matrix_is_told_with_the_known_ones(run: Run) -> None:
    ended = run("list", "--matrix", "smol")
    assert (ended.code, ended.err) == (
        3,
        (
            "error: there is no matrix `smol`\n"
            "  known matrices: small\n"
            "\n"
            "hint: did you mean `small`?\n"
        ),
    )


def test_a_missing_path_is_told_with_its_neighbours(run: Run) -> None:
    ended = run("list", "--matrix", "matrices/smal.yaml")
    assert ended.code == 3
    assert ended.err == (
        "error: matrices/smal.yaml: no such file\n"
        "  `matrices` has: small.yaml\n"
        "\n"
        "hint: did you mean `small.yaml`?\n"
    )


def test_an_unreadable_file_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "small.yaml":
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    ended = run("list", "--matrix", "small")
    assert ended.code == 2
    assert ended.err == (
        f"error: {HERE}: cannot be read: permission denied\n"
        "\n"
        "hint: make it readable for this user\n"
    )


def test_a_matrix_that_is_a_folder_is_told(small: Overlay, run: Run) -> None:
    (small.root / "matrices/folder.yaml").mkdir()
    ended = run("list", "--matrix", "folder")
    assert (ended.code, ended.err.splitlines()[0]) == (
        2,
        "error: matrices/folder.yaml: is a directory, not a file",
    )


def test_an_overlay_that_is_no_directory_is_told(run: Run) -> None:
    ended = run("list", "--overlay", HERE)
    assert ended.code == 2
    assert ended.err.startswith(f"error: overlay `{HERE}` is not a directory\n")


def test_a_selection_that_matches_nothing_shows_the_near_misses(run: Run) -> None:
    ended = run("render", "-m", "small", "--out", "out", "debian12-coer")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith(
        "error: `debian12-coer` matches no cell\n"
        "  cells: debian12-core, debian12-none, debian13-core, debian13-none\n"
        "\n"
        "hint: did you mean `debian12-core`"
    )


def test_a_template_that_fails_ends_in_5(small: Overlay, run: Run) -> None:
    small.template("alpha", "RUN {{ nothing }}\n")
    ended = run("render", "-m", "small", "--out", "out")
    assert ended.code == 5
    assert ended.err.startswith(
        "error: dockerfiles/components/alpha/install.j2:1: 'nothing' is undefined"
    ) or ended.err.startswith(
        f"error: {small.root}/dockerfiles/components/alpha/install.j2:1: 'nothing' is undefined"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--colour"),
        ("lisst",),
        ("render", "-m", "small"),
        ("build", "-m", "small", "--jobs", "0"),
        ("list", "--format", "yaml"),
        ("show",),
    ],
)
def test_bad_usage_is_an_error_like_any_other(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert "\nhint: `imagegen" in ended.err


def test_an_error_in_the_json_format_is_one_document(small: Overlay, run: Run) -> None:
    small.write(HERE, SMALL + "colour: red\n")
    for arguments in (["--format", "json"], ["--format=json"]):
        ended = run("list", "-m", "small", *arguments)
        assert (ended.code, ended.err) == (2, "")
        assert json.loads(ended.out) == {
            "exit_code": 2,
            "errors": [
                {
                    "text": "unknown key",
                    "file": HERE,
                    "line": 14,
                    "key": "colour",
                    "evidence": [
                        (
                            "known: allow_unknown, axes, base, components, defaults, env, "
                            "exclude, expires, include, name, notes, owner, profile, "
                            "size_budget, tag, title, user"
                        )
                    ],
                    "hint": "remove `colour`",
                }
            ],
        }


def test_a_defect_is_no_traceback_but_says_how_to_see_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(listing.command, "callback", broken)
    ended = run("list")
    assert ended.code == 1
    assert ended.err.splitlines()[:2] == [
        "error: this is a defect in imagegen, not in your files",
        "  ZeroDivisionError: oh",
    ]
    monkeypatch.setenv("IMAGEGEN_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["list"], standalone_mode=False)


def test_ctrl_c_ends_in_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(listing.command, "callback", interrupted)
    ended = run("list")
    assert (ended.code, ended.err.strip()) == (130, "error: interrupted")


def test_list_shows_every_cell_and_its_image(run: Run) -> None:
    ended = run("list", "--format", "json", "-m", "small", "*-none")
    rows = json.loads(ended.out)
    assert [(row["cell"], row["image"]) for row in rows] == [
        ("debian12-none", "imagegen/small:debian12-1.13.1-none"),
        ("debian13-none", "imagegen/small:debian13-2.6.0-none"),
    ]
    assert rows[1]["omitted"]["gamma"] == "gamma does not compile there"


def test_show_names_version_origin_and_who_asked(run: Run) -> None:
    ended = run("show", "small/debian12-core")
    assert ended.code == 0
    row = next(line for line in ended.out.splitlines() if line.startswith("gamma"))
    assert row.split() == ["gamma", "0.28.1", "gamma's", "archive"]
    why = run("show", "small/debian12-core", "--why").out
    row = next(line for line in why.splitlines() if line.startswith("gamma"))
    assert "components `gamma`" in row
    assert row.endswith("  dockerfiles/components/gamma/component.yaml:7")


def test_render_writes_a_folder_a_cell_and_replaces_it_whole(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "debian12-core").mkdir(parents=True)
    (out / "debian12-core/stale").touch()
    ended = run("render", "-m", "small", "--out", str(out))
    assert ended.code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "debian12-core",
        "debian12-none",
        "debian13-core",
        "debian13-none",
    ]
    assert not (out / "debian12-core/stale").exists()
    assert (out / "debian12-core/image/etc/imagegen/image.json").exists()


def test_render_to_where_nothing_can_be_written_is_told(run: Run) -> None:
    ended = run("render", "-m", "small", "--out", f"{HERE}/out")
    assert ended.code == 5
    assert ended.err.startswith(f"error: cannot write below `{HERE}/out`")


def test_help_names_every_verb_and_every_exit_code(run: Run) -> None:
    ended = run("--help")
    assert ended.code == 0
    assert all(f"  {verb} " in ended.out for verb in VERBS)
    assert all(text.split()[0] in ended.out for _, text in EXIT_CODES)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_a_module_of_its_own(run: Run, verb: str) -> None:
    ended = run(verb, "--help")
    assert ended.code == 0
    assert ended.out.startswith(f"Usage: imagegen {verb}")
    assert isinstance(cli.get_command(click.Context(cli), verb), click.Command)


def test_the_module_runs_as_a_program_without_what_it_does_not_need(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom imagegen.cli.main import main\n"
        "try: main(['--version'])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'docker', 'jinja2', 'rich', 'yaml'} & set(sys.modules)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert __version__ in ended.stdout


def test_the_console_script_ends_with_the_code_of_its_error(tmp_path: Path) -> None:
    script = "import sys; from imagegen.cli.main import main; sys.exit(main())"
    ended = subprocess.run(
        [sys.executable, "-c", script, "list", "--matrix", "nowhere"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith("error: there is no matrix `nowhere`\n")
