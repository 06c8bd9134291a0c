"""Test whether an image starts with sshd itself, on made-up machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.validate import trees
from validate.check import CheckFailed
from validate.fixtures import Measure, Situation
from validate.suites.test_ssh_start import test_start as start

SSHD, OWN = "/usr/sbin/sshd", "/usr/lib/imagegen/sshd"
PATCHED = [{"path": SSHD, "reason": "it makes keys"}]
DIVERSIONS = "/var/lib/dpkg/diversions"
PROGRAM = f'#!/bin/sh\nreal={OWN}\nexec "$real" "$@"\n'


@pytest.fixture
def image(tmp_path: Path) -> Situation:
    trees.write(tmp_path, DIVERSIONS, f"{SSHD}\n{OWN}\n:\n")
    trees.write(tmp_path, SSHD, PROGRAM).chmod(0o755)
    trees.write(tmp_path, OWN, "\x7fELF").chmod(0o755)
    return Situation(trees.expected(tmp_path, patched=PATCHED), {}, str(tmp_path), {})


def test_the_program_of_the_recipe_starts_that_of_the_package(image: Situation) -> None:
    seen = Measure()
    start(image, seen)
    assert seen.text == f"{SSHD} makes keys and starts {OWN}"


def test_an_image_with_the_sshd_of_the_package_rests(tmp_path: Path) -> None:
    image = Situation(trees.expected(tmp_path), {}, str(tmp_path), {})
    with pytest.raises(
        pytest.skip.Exception, match="the recipe leaves /usr/sbin/sshd as the package has"
    ):
        start(image, Measure())


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        (DIVERSIONS, "", "dpkg diverts no /usr/sbin/sshd"),
        (SSHD, "\x7fELF", "/usr/sbin/sshd does not start /usr/lib/imagegen/sshd"),
        (SSHD, "#!/bin/sh\n", "/usr/sbin/sshd does not start /usr/lib/imagegen/sshd"),
        (OWN, None, "/usr/lib/imagegen/sshd is no program"),
    ],
)
def test_a_program_that_is_gone_is_named(
    image: Situation, path: str, text: str | None, says: str
) -> None:
    if text is None:
        (Path(image.root) / path.lstrip("/")).unlink()
    else:
        trees.write(Path(image.root), path, text)
    with pytest.raises(CheckFailed, match=says):
        start(image, Measure())


def test_a_program_that_may_not_be_run_is_named(image: Situation) -> None:
    (Path(image.root) / SSHD.lstrip("/")).chmod(0o644)
    with pytest.raises(CheckFailed, match="/usr/sbin/sshd cannot be run"):
        start(image, Measure())
