"""Test `imagegen --version`: the commit is that of the build, else that of the checkout."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from imagegen import __version__
from imagegen.config import payload
from imagegen.engine.host import process
from imagegen.workflow import version
from imagegen.workflow.version import COMMIT, commit_of
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unit.conftest import Ended


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a test", "-c", "user.email=test@test.example"]
    ended = subprocess.run(
        ["git", "-C", str(folder), *who, *arguments], capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with a commit of one file."""
    (tmp_path / "file").write_text("one")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-q", "-m", "one")
    return tmp_path


def test_a_checkout_names_its_commit_and_whether_it_was_edited(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")[:12]
    git(checkout, "tag", "-a", "v9", "-m", "a tag is not what is asked for")
    assert commit_of(checkout) == commit
    (checkout / "file").write_text("two")
    assert commit_of(checkout) == f"{commit}-dirty"


def test_what_the_build_wrote_comes_first(checkout: Path) -> None:
    (checkout / "COMMIT").write_text("0123456789ab\n")
    assert commit_of(checkout) == "0123456789ab"


def test_a_folder_inside_another_repository_is_not_of_its_commit(checkout: Path) -> None:
    """Such a folder is a virtual environment in the checkout of another project."""
    inside = checkout / "site-packages"
    inside.mkdir()
    assert commit_of(inside) == "unknown"


@pytest.mark.parametrize("broken", ["no git", "no commit"])
def test_what_git_cannot_say_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    (tmp_path / ".git").mkdir()
    if broken == "no git":
        monkeypatch.setattr(process, "run", lambda *_: (_ for _ in ()).throw(FileNotFoundError()))
    assert commit_of(tmp_path) == "unknown"


def test_the_option_says_version_commit_and_payload(run: Callable[..., Ended]) -> None:
    ended = run("--version")
    first, second = ended.out.splitlines()
    named, commit = first.split(", commit ")
    assert (ended.code, named) == (0, f"imagegen {__version__}")
    assert COMMIT.fullmatch(commit) or commit == "unknown"
    assert second == f"payload: {REPOSITORY}"


def test_the_option_shows_the_payload_of_a_wheel(
    run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "COMMIT").write_text("0123456789ab-dirty\n")
    monkeypatch.setattr(version, "shipped_root", lambda: tmp_path)
    assert run("--version").out == (
        f"imagegen {__version__}, commit 0123456789ab-dirty\npayload: {tmp_path}\n"
    )
    assert payload.shipped_root() == REPOSITORY
