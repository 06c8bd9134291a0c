"""Test keys of SSH, their modes, and settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unit.validate import trees
from validate.probes import peers, ssh, ssh_login
from validate.probes.ssh_user import ROOT, User

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_keys_are_baked_unless_made_at_start_or_mounted(tmp_path: Path) -> None:
    root = str(tmp_path)
    for name in ("id_rsa", "id_ed25519", "id_mounted"):
        trees.private_key(tmp_path, f"/root/.ssh/{name}")
    trees.write(tmp_path, "/root/.ssh/id_rsa.pub", "ssh-rsa AAAA\n")
    trees.write(tmp_path, ssh.MADE_AT_START[0], "here /root/.ssh/id_ed25519\n")
    mount = "30 20 0:5 / /root/.ssh/id_mounted ro - ext4 /dev/x ro\n"
    trees.write(tmp_path, "/proc/self/mountinfo", mount)
    keys = ssh.user_keys(root)
    assert keys == [f"/root/.ssh/{n}" for n in ("id_ed25519", "id_mounted", "id_rsa")]
    assert ssh.baked(root, keys, "here") == ["/root/.ssh/id_rsa"]


def test_keys_below_the_folders_of_ssh_count_too(tmp_path: Path) -> None:
    trees.private_key(tmp_path, "/etc/ssh/keys/host")
    trees.private_key(tmp_path, "/home/me/.ssh/jobs/id_rsa")
    trees.private_key(tmp_path, "/run/imagegen-user/ssh_host_rsa_key")
    trees.private_key(tmp_path, "/run/imagegen-user/ssh/id_rsa")
    root = str(tmp_path)
    of_user = "/run/imagegen-user/ssh_host_rsa_key"
    assert ssh.host_keys(root) == ["/etc/ssh/keys/host", of_user]
    trees.write(tmp_path, ssh.MADE_AT_START[1], f"here {of_user}\n")
    assert ssh.baked(root, ssh.host_keys(root), "here") == ["/etc/ssh/keys/host"]
    assert ssh.user_keys(root) == ["/home/me/.ssh/jobs/id_rsa"]


def test_a_marker_of_another_container_does_not_excuse_a_key(tmp_path: Path) -> None:
    trees.private_key(tmp_path, "/root/.ssh/id_ed25519")
    trees.write(tmp_path, ssh.MADE_AT_START[0], "there /root/.ssh/id_ed25519\n")
    root = str(tmp_path)
    assert ssh.baked(root, ssh.user_keys(root), "here") == ["/root/.ssh/id_ed25519"]


def test_modes_that_ssh_refuses_are_named(tmp_path: Path) -> None:
    trees.private_key(tmp_path, "/root/.ssh/id_rsa", 0o644)
    for folder in ("root", "root/.ssh"):
        (tmp_path / folder).chmod(0o700)
    owner = tmp_path.stat().st_uid
    found = ssh.mode_problems(str(tmp_path), ROOT._replace(number=owner))
    assert found == [f"/root/.ssh/id_rsa 0644 owner {owner} can be read by others"]
    (tmp_path / "root/.ssh").chmod(0o777)
    assert "/root/.ssh 0777" in ssh.mode_problems(str(tmp_path), ROOT._replace(number=owner))[0]


def test_keys_that_the_user_may_not_read_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("id_rsa", "authorized_keys", "config"):
        trees.write(tmp_path, f"/home/me/.ssh/{name}")
    user = User("me", 1000, "/home/me")
    assert ssh.closed_keys(str(tmp_path), user) == []
    monkeypatch.setattr(os, "access", lambda *_: False)
    wanted = ["/home/me/.ssh/id_rsa", "/home/me/.ssh/authorized_keys"]
    assert ssh.closed_keys(str(tmp_path), user) == wanted
    why = ssh_login.closed(user, wanted[0])
    assert "user id 1000 may not read /home/me/.ssh/id_rsa" in why.cause
    assert why.remedy.startswith("securityContext: {fsGroup: 1000}")


def test_private_copies_stand_in_for_keys_that_are_mounted_open(tmp_path: Path) -> None:
    trees.private_key(tmp_path, "/root/.ssh/id_rsa", 0o644)
    user = ROOT._replace(number=tmp_path.stat().st_uid)
    trees.private_key(tmp_path, f"{user.copies}/id_rsa")
    (tmp_path / user.copies.lstrip("/")).chmod(0o700)
    assert ssh.mode_problems(str(tmp_path), user) == []


def test_the_first_value_of_a_setting_counts_and_all_ports() -> None:
    text = "Port 2222\nPermitRootLogin no\npermitrootlogin yes\nport 22\n"
    assert ssh.parse_settings(text) == {"port": "2222 22", "permitrootlogin": "no"}


def test_what_start_up_files_print_is_no_answer() -> None:
    banner = "=== memlock=64 PATH=/x ===\n12 34\n"
    printed = f"{banner}{ssh.MARK}\nunlimited\n1048576\n{ssh.MARK}\nbye\n"
    assert ssh.answer_of(printed).split() == ["unlimited", "1048576"]
    assert ssh.answer_of(banner) == ""
    assert ssh.between_marks("ulimit -l") == f"echo {ssh.MARK}; ulimit -l; echo {ssh.MARK}"
    assert peers.FACTS.count(ssh.MARK) == 2
