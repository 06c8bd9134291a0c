"""Test how credentials and leftovers of a build are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unit.validate import trees
from validate.probes import (
    files,
    secrets,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_secrets_are_found_by_kind_and_never_shown(tmp_path: Path) -> None:
    trees.private_key(tmp_path, "/opt/deploy_key")
    trees.private_key(tmp_path, "/data/site/key.pem")
    trees.private_key(tmp_path, "/key-in-the-root")
    trees.private_key(tmp_path, "/usr/share/doc/an-example.pem")
    trees.write(tmp_path, "/root/.aws/credentials", "[default]\n")
    trees.write(tmp_path, "/home/me/note", "key AKIA" + "A" * 16 + "\n")
    trees.write(tmp_path, "/etc/ssl/private/x.key", "-----BEGIN PRIVATE KEY-----\nMIIE\n")
    trees.write(tmp_path, "/etc/script", 'grep "-----BEGIN PRIVATE KEY-----" file\n')
    found = [str(one) for one in secrets.secrets(str(tmp_path), ())]
    assert found == [
        "private key in /data/site/key.pem",
        "AWS access key in /home/me/note",
        "private key in /key-in-the-root",
        "private key in /opt/deploy_key",
        "credentials in /root/.aws/credentials",
    ]


def test_what_is_mounted_is_not_the_image_s(tmp_path: Path) -> None:
    trees.private_key(tmp_path, "/root/job/key")
    trees.write(tmp_path, "/proc/self/mountinfo", "30 20 0:5 / /root/job rw - ext4 /dev/x rw\n")
    assert secrets.secrets(str(tmp_path), ()) == []
    assert files.is_mounted("/root/job/key", {"/root/job"})


def test_litter_is_what_is_older_than_the_container(tmp_path: Path) -> None:
    old = trees.write(tmp_path, "/tmp/ofed.tgz")
    trees.write(tmp_path, "/var/lib/apt/lists/lock")
    root = str(tmp_path)
    assert secrets.leftovers(root, old.stat().st_mtime - 10) == []
    assert secrets.leftovers(root, old.stat().st_mtime + 10) == ["/tmp/ofed.tgz"]
