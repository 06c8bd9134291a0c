"""Test the wheel, installed elsewhere: it brings all data, and renders the same bytes."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import yaml
from command_line import SCRIPT, CommandLine

from imagegen import __version__

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as any user builds it."""
    out = tmp_path_factory.mktemp("wheel")
    argv = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out)]
    subprocess.run([*argv, str(ROOT)], check=True, timeout=300)
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """Install the wheel in an environment of its own, far from the checkout.

    Its dependencies come from the environment of the tests, without the editable install.
    """
    home = tmp_path_factory.mktemp("elsewhere")
    venv.create(home / "env", with_pip=False)
    python = home / "env/bin/python"
    (site,) = (home / "env/lib").glob("python*/site-packages")
    argv = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*argv, str(wheel)], check=True, timeout=300)
    # Python does not run .pth files in a folder that a .pth names: the editable install stays out.
    (site / "dependencies.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    (home / "cwd").mkdir()
    return CommandLine(home / "cwd", home / "state", home / "env/bin/imagegen")


def test_it_holds_the_data_and_no_module_validate(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    top = {name.partition("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"imagegen"}
    payload = {name.removeprefix("imagegen/payload/") for name in names if "/payload/" in name}
    assert {"matrices/cpu.yaml", "dockerfiles/Dockerfile.j2", "validate/__main__.py"} <= payload
    assert {"dockerfiles/components/torch/releases.csv", "dockerfiles/virtual/gpu.csv"} <= payload
    assert "dockerfiles/rules/two-nccls.yaml" in payload
    assert not [name for name in names if name.endswith(".pyc") or "/tests/" in name]


def test_it_runs_its_own_code(installed: CommandLine) -> None:
    python = installed.script.with_name("python")
    code = "import imagegen; print(imagegen.__file__)"
    done = subprocess.run(
        [python, "-c", code], cwd=installed.cwd, capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()).is_relative_to(installed.script.parents[1])
    code = "import importlib.util as u; print(u.find_spec('validate'))"
    done = subprocess.run(
        [python, "-c", code], cwd=installed.cwd, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"


def test_it_names_its_version_its_commit_and_its_data(installed: CommandLine) -> None:
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    first, second = installed("--version").out.splitlines()
    assert first.removesuffix("-dirty") == f"imagegen {__version__}, commit {commit}"
    payload = Path(second.removeprefix("payload: "))
    assert payload.name == "payload"
    assert payload.is_relative_to(installed.script.parents[1])


def test_it_runs_as_a_module(installed: CommandLine) -> None:
    python = installed.script.with_name("python")
    done = subprocess.run(
        [python, "-m", "imagegen", "--help"],
        cwd=installed.cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Usage: imagegen ")


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_it_lists_and_renders_the_same_bytes(installed: CommandLine, tmp_path: Path) -> None:
    checkout = CommandLine(ROOT, tmp_path / "state", SCRIPT)
    assert (
        installed("list", "--format", "json").result == checkout("list", "--format", "json").result
    )
    for name, run in (("wheel", installed), ("checkout", checkout)):
        run("render", "--matrix", "cpu", "--out", str(tmp_path / name))
    rendered = files(tmp_path / "wheel")
    assert len([name for name in rendered if name.endswith("/Dockerfile")]) == 4
    assert rendered == files(tmp_path / "checkout")
    assert str(ROOT).encode() not in b"".join(data for data, _ in rendered.values())


def test_an_overlay_wins_and_the_current_directory_counts(
    installed: CommandLine, tmp_path: Path
) -> None:
    overlay = tmp_path / "overlay"
    for root, name in ((overlay, "mine"), (installed.cwd, "ours")):
        (root / "matrices").mkdir(parents=True)
        matrix = {"name": name, "tag": f"test-{name}:{{os}}", "axes": {"os": ["debian12"]}}
        matrix["components"] = {"ssh": "any"}
        (root / "matrices" / f"{name}.yaml").write_text(yaml.safe_dump(matrix))
    template = overlay / "dockerfiles/components/ssh/install.j2"
    template.parent.mkdir(parents=True)
    template.write_text("RUN echo from the overlay\n")
    with_overlay = ("--overlay", str(overlay))
    rows = installed("list", *with_overlay, "--format", "json").result
    assert {"cpu", "mine", "ours"} <= {row["matrix"] for row in rows}
    rows = installed("list", "--format", "json").result
    matrices = {row["matrix"] for row in rows}
    assert {"cpu", "ours"} <= matrices
    assert "mine" not in matrices
    for name in ("mine", "ours"):
        installed("render", "-m", name, *with_overlay, "--out", str(tmp_path / name))
        assert "RUN echo from the overlay" in (tmp_path / name / "debian12/Dockerfile").read_text()
    installed("render", "-m", "ours", "--out", str(tmp_path / "plain"))
    assert "from the overlay" not in (tmp_path / "plain/debian12/Dockerfile").read_text()
