"""Test who logs in: the user that the checks run as, and the image's sshd for that user."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.fixtures import Situation
from validate.probes import ssh_user
from validate.probes.ssh_user import ROOT, User
from validate.suites import test_ssh

if TYPE_CHECKING:
    from pathlib import Path

PASSWD = "root:x:0:0:root:/root:/bin/bash\nmpiuser:x:1000:1000::/home/mpiuser:/bin/bash\n"
GROUP = "root:x:0:\nmpiuser:x:1000:\nvideo:x:44:me,mpiuser\nothers:x:2000:me\n"


@pytest.mark.parametrize(
    ("number", "user"),
    [
        (0, ROOT),
        (1000, User("mpiuser", 1000, "/home/mpiuser", ("mpiuser", "video"))),
        (123456, User("123456", 123456, "/", ())),
    ],
)
def test_the_user_is_the_one_that_the_checks_run_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, user: User
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: number)
    trees.write(tmp_path, "/etc/passwd", PASSWD)
    trees.write(tmp_path, "/etc/group", GROUP)
    assert ssh_user.current(str(tmp_path)) == user


def test_each_user_has_copies_of_its_own() -> None:
    assert ROOT.copies == "/run/imagegen/ssh"
    assert ROOT._replace(number=1000).copies == "/run/imagegen-user/ssh"


def test_what_needs_root_is_skipped_in_an_image_for_root_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    trees.write(tmp_path, "/etc/passwd", PASSWD)
    image = Situation(trees.expected(tmp_path), {}, str(tmp_path), {})
    with pytest.raises(pytest.skip.Exception, match="needs-root: the image is for root"):
        test_ssh._user(image)
    trees.write(tmp_path, ssh_user.SETTINGS)
    assert test_ssh._user(image).name == "mpiuser"
