"""Test settings that keep root out or make ssh go elsewhere, and the line that corrects each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.probes import ssh, ssh_rules

if TYPE_CHECKING:
    from pathlib import Path

SERVER = """
port 2222
permitrootlogin without-password
pubkeyauthentication yes
authenticationmethods any
forcecommand none
authorizedkeysfile .ssh/authorized_keys /run/imagegen/ssh/authorized_keys
x11forwarding no
allowagentforwarding no
"""
CLIENT = "port 2222\nstricthostkeychecking false\nuserknownhostsfile /dev/null\n"
CLIENT += "forwardx11 no\nforwardagent no\n"
HUP = "; [ ! -s /run/sshd.pid ] || kill -HUP $(cat /run/sshd.pid)"


def broken(root: Path, server: str = "", client: str = "") -> list[ssh_rules.WrongSetting]:
    """Return the wrong settings after some lines were put first, where they are in force."""
    said = [ssh.parse_settings(text) for text in (server + SERVER, client + CLIENT)]
    return ssh_rules.wrong_settings(said[0], said[1], "2222", str(root))


def test_what_an_image_sets_is_well(tmp_path: Path) -> None:
    assert broken(tmp_path) == []


@pytest.mark.parametrize(
    ("server", "seen", "mends"),
    [
        ("permitrootlogin no\n", "sshd PermitRootLogin no", "1i PermitRootLogin prohibit-password"),
        (
            "allowusers trainer\nallowusers me\n",
            "sshd AllowUsers trainer me",
            "s|^ *AllowUsers[ =]|# &|I",
        ),
        ("denyusers r*\n", "sshd DenyUsers r*", "s|^ *DenyUsers[ =]|# &|I"),
        ("allowgroups ssh\n", "sshd AllowGroups ssh", "s|^ *AllowGroups[ =]|# &|I"),
        ("denygroups root\n", "sshd DenyGroups root", "s|^ *DenyGroups[ =]|# &|I"),
        (
            "authenticationmethods publickey,password\n",
            "sshd AuthenticationMethods publickey,password",
            "1i AuthenticationMethods any",
        ),
        ("x11forwarding yes\n", "sshd X11Forwarding yes", "1i X11Forwarding no"),
        ("forcecommand internal-sftp\n", "sshd ForceCommand internal-sftp", "1i ForceCommand none"),
        (
            "authorizedkeysfile /etc/ssh/authorized/%u\n",
            "sshd AuthorizedKeysFile /etc/ssh/authorized/%u",
            "1i AuthorizedKeysFile .ssh/authorized_keys",
        ),
    ],
)
def test_what_keeps_root_out_is_named_with_the_line_that_mends_it(
    tmp_path: Path, server: str, seen: str, mends: str
) -> None:
    (one,) = broken(tmp_path, server)
    assert str(one) == seen
    line = ssh_rules.remedy(str(tmp_path), one)
    assert line.startswith(f"sed -i '{mends}")
    assert line.endswith(HUP)


@pytest.mark.parametrize(
    "server", ["allowusers root@10.0.*\n", "authorizedkeysfile /etc/keys/%u %h/.ssh/mine\n"]
)
def test_others_ways_of_letting_root_in_are_well(tmp_path: Path, server: str) -> None:
    trees.write(tmp_path, "/etc/keys/root", "ssh-ed25519 AAAA\n")
    assert broken(tmp_path, server) == []


@pytest.mark.parametrize("own", [True, False])
def test_a_detour_of_the_client_is_mended_in_the_file_that_asks_for_it(
    tmp_path: Path, own: bool
) -> None:
    if own:
        trees.write(tmp_path, "/root/.ssh/config", "Host *\n  ProxyJump bastion\n")
    (one,) = broken(tmp_path, client="proxyjump bastion\n")
    path = "/root/.ssh/config" if own else "/etc/ssh/ssh_config"
    assert ssh_rules.remedy(str(tmp_path), one) == f"sed -i '1i ProxyJump none' {path}"


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("ERROR: ld.so: object '/x.so' from LD_PRELOAD cannot be preloaded", ""),
        ("bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)", "sed -i -E 's/"),
        ("This account is currently not available.", "usermod --shell /bin/bash root"),
        ("welcome", "sed -i '1i case $- in *i*) ;; *) return ;; esac' /root/.bashrc"),
        ("", "sed -i '1i case $- in *i*) ;; *) return ;; esac' /root/.bashrc"),
    ],
)
def test_what_a_session_says_has_a_cause(tmp_path: Path, said: str, remedy: str) -> None:
    trees.write(tmp_path, "/root/.bashrc", "alias l=ls\nif true; then\n  echo hi\nfi\nexit 1\n")
    cause, line = ssh_rules.session_problem(said, str(tmp_path))
    assert cause
    assert line.startswith(remedy)
    assert line or line.look
    (tmp_path / "root/.bashrc").unlink()
    assert ssh_rules.session_problem("Connection refused", str(tmp_path)) == ("", "")
