"""Test vendor parts: they are listed with their hash, and no file with another hash is used."""

from __future__ import annotations

import hashlib
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from imagegen.config.payload import Payload
from imagegen.errors import BuildError, ConfigError
from imagegen.sources.artifacts import Artifacts, artifact_for, read_artifacts
from imagegen.sources.supply import obtain, problem_of

if TYPE_CHECKING:
    from pathlib import Path

DATA = b"a vendor's wheel"
SHA256 = hashlib.sha256(DATA).hexdigest()
LIGHTCC = f"""\
artifacts:
  - name: lightcc
    version: 3.1.1
    file: light_horovod-3.1.1.whl
    path: vendor/light.whl
    sha256: {SHA256}
    licence: from the vendor's console, for its machines
    size: {len(DATA)}
"""


def read(root: Path, text: str) -> Artifacts:
    (root / "artifacts.yaml").write_text(text)
    return read_artifacts(Payload((root,), (root,)))


def put(root: Path, data: bytes = DATA) -> Path:
    path = root / "vendor/light.whl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_part_is_found_by_name_and_version(tmp_path: Path) -> None:
    part = artifact_for(read(tmp_path, LIGHTCC), "lightcc", "3.1.1", "ubuntu20.04")
    assert (part.file_name, part.sha256, part.size_bytes, part.line) == (
        "light_horovod-3.1.1.whl",
        SHA256,
        len(DATA),
        2,
    )
    path = put(tmp_path)
    assert problem_of(part) is None
    assert obtain(part, {}, tmp_path / "cache") == path


def test_an_absolute_path_stays(tmp_path: Path) -> None:
    text = LIGHTCC.replace("vendor/light.whl", "/srv/vendor/light.whl")
    assert str(artifact_for(read(tmp_path, text), "lightcc", "3.1.1", "ubuntu20.04").path) == (
        "/srv/vendor/light.whl"
    )


def test_an_earlier_root_wins(tmp_path: Path) -> None:
    (tmp_path / "overlay").mkdir()
    read(tmp_path, LIGHTCC)
    read(tmp_path / "overlay", LIGHTCC.replace("3.1.1\n", "3.2\n", 1))
    roots = (tmp_path / "overlay", tmp_path)
    assert [*read_artifacts(Payload(roots, roots)).parts] == [("lightcc", "3.2", "")]


def test_without_a_file_nothing_is_listed(tmp_path: Path) -> None:
    artifacts = read_artifacts(Payload((tmp_path,), ()))
    with pytest.raises(ConfigError, match=r"`harp` 1\.3 for debian12 is not listed") as caught:
        artifact_for(artifacts, "harp", "1.3", "debian12")
    (problem,) = caught.value.problems
    assert problem.file == "artifacts.yaml"
    assert "sha256, licence" in problem.hint


def test_another_version_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"it has `lightcc` in: 3\.1\.1"):
        artifact_for(read(tmp_path, LIGHTCC), "lightcc", "3.1", "debian12")


def test_a_part_may_be_for_one_os(tmp_path: Path) -> None:
    other = LIGHTCC.partition("artifacts:\n")[2].replace("light_horovod-3.1.1", "bionic")
    artifacts = read(tmp_path, LIGHTCC + other + "    os: ubuntu18.04\n")
    names = [
        artifact_for(artifacts, "lightcc", "3.1.1", os).file_name
        for os in ("ubuntu18.04", "ubuntu20.04")
    ]
    assert names == ["bionic.whl", "light_horovod-3.1.1.whl"]
    with pytest.raises(ConfigError, match=r"it has `lightcc` in: 3\.1\.1, 3\.1\.1 for ubuntu18"):
        artifact_for(artifacts, "lightcc", "3.1", "debian12")


def test_a_missing_file_is_told_with_place_hash_and_licence(tmp_path: Path) -> None:
    part = artifact_for(read(tmp_path, LIGHTCC), "lightcc", "3.1.1", "ubuntu20.04")
    with pytest.raises(ConfigError, match="is not there") as caught:
        obtain(part, {}, tmp_path / "cache")
    (problem,) = caught.value.problems
    assert problem.hint == (
        f"put light_horovod-3.1.1.whl with sha256 {SHA256} at `{tmp_path}/vendor/light.whl`"
    )
    assert "licence: from the vendor's console, for its machines" in problem.evidence
    assert (problem.file, problem.line) == (str(tmp_path / "artifacts.yaml"), 2)


def test_another_file_in_its_place_is_refused(tmp_path: Path) -> None:
    part = artifact_for(read(tmp_path, LIGHTCC), "lightcc", "3.1.1", "ubuntu20.04")
    put(tmp_path, b"<html>404</html>")
    with pytest.raises(ConfigError, match=f"wanted {SHA256}; 16 bytes"):
        obtain(part, {}, tmp_path / "cache")


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    part = artifact_for(read(tmp_path, LIGHTCC), "lightcc", "3.1.1", "ubuntu20.04")
    (tmp_path / "vendor/light.whl").mkdir(parents=True)
    problem = problem_of(part)
    assert problem is not None
    assert "cannot be read" in problem.text


def test_a_part_with_an_address_comes_through_its_mirror_into_the_cache(tmp_path: Path) -> None:
    put(tmp_path)
    text = LIGHTCC.replace("path: vendor/light.whl", "url: https://vendor.example/files/light.whl")
    part = artifact_for(read(tmp_path, text), "lightcc", "3.1.1", "ubuntu20.04")
    mirrors = {"https://vendor.example/files/": (tmp_path / "vendor").as_uri()}
    said: list[str] = []
    got = obtain(part, mirrors, tmp_path / "cache", on_line=said.append)
    assert (got.name, got.read_bytes()) == (SHA256, DATA)
    assert said[0].startswith("downloading `https://vendor.example/files/light.whl` (mirror `file:")
    put(tmp_path, b"other")
    assert obtain(part, mirrors, tmp_path / "cache") == got
    with pytest.raises(BuildError, match="there is no file"):
        obtain(part, {"https://vendor.example": "file:///nowhere"}, tmp_path / "elsewhere")


def test_all_problems_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    text = f"""\
    artifacts:
      - name: Light CC
        version: 3.1.1
        file: ../light.whl
        path: light.whl
        sha256: {SHA256.upper()}
        license: none
    """
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, dedent(text))
    found = {(problem.line, problem.key) for problem in caught.value.problems}
    assert found == {
        (2, "artifacts[0].name"),
        (4, "artifacts[0].file"),
        (6, "artifacts[0].sha256"),
        (7, "artifacts[0].license"),
        (2, "artifacts[0]"),
    }


def test_one_place_for_each_part_and_each_part_once(tmp_path: Path) -> None:
    again = LIGHTCC.removeprefix("artifacts:\n").replace("path: vendor/light.whl\n    ", "")
    both = again.replace("3.1.1\n", "3.2\n", 1) + "    path: a\n    url: https://a.example/b\n"
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, LIGHTCC + again + both)
    assert [(p.line, p.text) for p in caught.value.problems] == [
        (9, "has no `path` and no `url`"),
        (9, "`lightcc` 3.1.1 is there twice, first on line 2"),
        (15, "has both `path` and `url`"),
    ]
