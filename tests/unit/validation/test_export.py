"""Test `validate.pyz`: which packages each Python gets, the same bytes, and words for a user."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from imagegen.catalog.reader import read_catalog
from imagegen.config.payload import Payload
from imagegen.errors import BuildError, ConfigError
from imagegen.validation import export
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.catalog import Catalog

PAYLOAD = Payload((REPOSITORY,), (REPOSITORY,))


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return read_catalog(PAYLOAD)


def wheel(name: str) -> bytes:
    """Make a wheel of one module, with a licence."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr(f"{name}.py", "")
        packed.writestr(f"{name}-1.dist-info/LICENSE", "free")
        packed.writestr(f"{name}-1.dist-info/RECORD", "")
    return buffer.getvalue()


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a made-up wheel in the place of each real one, with its sha256."""
    monkeypatch.setenv("IMAGEGEN_STATE", str(tmp_path))
    folder = tmp_path / "wheels"
    folder.mkdir()
    sums = {}
    for key, (file, _) in export._sums(PAYLOAD, "validate").items():
        data = wheel(key.replace("-", "_"))
        (folder / file).write_bytes(data)
        sums[key] = (file, hashlib.sha256(data).hexdigest())
    monkeypatch.setattr(export, "_sums", lambda *_: sums)
    return folder


def test_each_python_gets_the_packages_that_images_of_it_have(catalog: Catalog) -> None:
    sets = export.packages_by_python(catalog.components["validate"], "python")
    assert [*sets] == [str(minor) for minor in range(6, 16)]
    assert {"pytest-7.0.1", "pytest-testinfra-6.8.0"} < {*sets["6"]}
    assert {"pytest-7.4.4"} < {*sets["7"]}
    assert {"pytest-8.3.5", "pytest-testinfra-10.2.2"} < {*sets["14"]}


def test_every_package_has_a_sha256(catalog: Catalog) -> None:
    sets = export.packages_by_python(catalog.components["validate"], "python")
    sums = export._sums(PAYLOAD, "validate")
    assert {one for names in sets.values() for one in names} == {*sums}
    assert all(file.endswith("-none-any.whl") for file, _ in sums.values())


def test_the_same_tool_writes_the_same_bytes(
    catalog: Catalog, wheels: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    export.export(tmp_path / "validate.pyz", PAYLOAD, catalog, said.append)
    first = (tmp_path / "validate.pyz").read_bytes()
    assert export.pyz(PAYLOAD, catalog, said.append) == first
    digest = hashlib.sha256(first).hexdigest()
    size = f"{len(first) / 1e6:.1f} MB"
    assert said == [f"wrote {tmp_path}/validate.pyz: {size}, sha256 {digest}"]
    assert (tmp_path / "validate.pyz").stat().st_mode & 0o777 == 0o755
    assert wheels.is_dir()


def test_it_has_the_checks_the_packages_and_the_licences(catalog: Catalog, wheels: Path) -> None:
    assert wheels.is_dir()
    with zipfile.ZipFile(io.BytesIO(export.pyz(PAYLOAD, catalog, print))) as packed:
        names = {*packed.namelist()}
        assert packed.infolist()[0].date_time == (1980, 1, 1, 0, 0, 0)
    assert {"__main__.py", "LICENSE", "pythons.json", "validate/cli.py"} < names
    assert "validate/suites/test_torch.py" in names
    assert "wheels/pytest-8.3.5/pytest_8.3.5-1.dist-info/LICENSE" in names
    assert not [name for name in names if name.endswith((".pyc", "/RECORD"))]


def test_a_wheel_that_cannot_be_had_is_named(
    catalog: Catalog, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    next(wheels.glob("pytest-8.3.5*")).write_bytes(b"another")
    monkeypatch.setattr(export, "pip_download", lambda *_: ("No matching distribution",))
    with pytest.raises(BuildError, match=r"`pytest-8.3.5-py3-none-any.whl` cannot be had"):
        export.pyz(PAYLOAD, catalog, lambda _: None)


def test_a_file_that_cannot_be_written_is_named(
    catalog: Catalog, wheels: Path, tmp_path: Path
) -> None:
    assert wheels.is_dir()
    with pytest.raises(ConfigError, match="cannot write"):
        export.export(tmp_path / "none/validate.pyz", PAYLOAD, catalog, lambda _: None)


def test_the_file_starts_and_says_why_it_cannot_run(
    catalog: Catalog, wheels: Path, tmp_path: Path
) -> None:
    """A question about a check needs none of the packages, which are made up here."""
    assert wheels.is_dir()
    export.export(tmp_path / "validate.pyz", PAYLOAD, catalog, lambda _: None)
    argv = [sys.executable, str(tmp_path / "validate.pyz"), "--explain", "no.such"]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert ended.returncode == 2
    assert "error: there is no check `no.such`" in ended.stderr


@pytest.mark.parametrize("without", ["shutil", "_ctypes"])
def test_a_python_with_a_part_of_its_library_is_named(
    catalog: Catalog, wheels: Path, tmp_path: Path, without: str
) -> None:
    """python3-minimal of Debian has no shutil, for which zipfile asks; others have no _ctypes."""
    assert wheels.is_dir()
    export.export(tmp_path / "validate.pyz", PAYLOAD, catalog, lambda _: None)
    starts = f"""
import sys, importlib.machinery as m, zipimport
class Without(m.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == {without!r} else m.PathFinder.find_spec(name, path, target)
sys.meta_path[-1] = Without
sys.modules.pop({without!r}, None)
sys.argv[:] = ["validate.pyz", "--list"]
exec(zipimport.zipimporter("validate.pyz").get_code("__main__"))
"""
    argv = [sys.executable, "-I", "-S", "-c", starts]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: this Python has only a part of its standard library")
    assert f"lacks {without}" in ended.stderr
    assert "hint: apt-get update && apt-get install -y python3 " in ended.stderr
