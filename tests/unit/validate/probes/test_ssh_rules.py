"""Test settings that keep root out or make ssh go elsewhere, and the line that corrects each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.probes import ssh, ssh_rules, ssh_user

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
    return ssh_rules.wrong_settings([("127.0.0.1", said[0])], said[1], "2222", str(root))


def test_what_an_image_sets_is_well(tmp_path: Path) -> None:
    assert broken(tmp_path) == []


@pytest.mark.parametrize(
    ("server", "seen", "mends"),
    [
        ("permitrootlogin no\n", "sshd PermitRootLogin no", "1i PermitRootLogin prohibit-password"),
        (
            "allowusers trainer\nallowusers me\n",
            "sshd AllowUsers trainer me",
            "s|^[[:space:]]*AllowUsers[[:space:]=]|# &|I",
        ),
        ("denyusers r*\n", "sshd DenyUsers r*", "s|^[[:space:]]*DenyUsers[[:space:]=]|# &|I"),
        (
            "allowgroups ssh\n",
            "sshd AllowGroups ssh",
            "s|^[[:space:]]*AllowGroups[[:space:]=]|# &|I",
        ),
        (
            "denygroups root\n",
            "sshd DenyGroups root",
            "s|^[[:space:]]*DenyGroups[[:space:]=]|# &|I",
        ),
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


MAIN = "/etc/ssh/sshd_config"
LISTENS = "listenaddress [::]:{0}\nlistenaddress 0.0.0.0:{0}\n"


def test_every_port_that_sshd_listens_on_counts(tmp_path: Path) -> None:
    trees.write(tmp_path, MAIN, "Port 22\n")
    trees.write(tmp_path, "/etc/ssh/sshd_config.d/more.conf", "\tPort = 2200\n")
    trees.write(tmp_path, "/etc/ssh/sshd_config.d/imagegen.conf", "Port 2222\n")
    server = "port 22\nport 2200\n" + "".join(map(LISTENS.format, (22, 2200, 2222)))
    (one,) = broken(tmp_path, server)
    assert str(one) == "sshd Port 22 2200 2222"
    line = ssh_rules.remedy(str(tmp_path), one)
    files = f"{MAIN} /etc/ssh/sshd_config.d/more.conf"
    away = f"sed -i 's|^[[:space:]]*Port[[:space:]=]|# &|I' {files}"
    assert line == f"{away}; sed -i '1i Port 2222' {MAIN}{HUP}"


@pytest.mark.parametrize(
    ("listens", "well"),
    [
        (LISTENS.format(2222), True),
        ("listenaddress 10.0.0.5:2222\n", True),
        ("listenaddress 10.0.0.5:22\n", False),
        ("listenaddress 10.0.0.5:2222\nlistenaddress 10.0.0.6:22\n", False),
        ("listenaddress 127.0.0.1:2222\nlistenaddress [::1]:2222\n", False),
    ],
)
def test_an_address_with_another_port_or_of_this_container_alone_is_wrong(
    tmp_path: Path, listens: str, well: bool
) -> None:
    trees.write(tmp_path, MAIN, "ListenAddress 10.0.0.5:22\n")
    found = broken(tmp_path, listens)
    assert [one.name for one in found] == ([] if well else ["ListenAddress"])
    for one in found:
        line = ssh_rules.remedy(str(tmp_path), one)
        assert line.startswith("sed -i 's|^[[:space:]]*ListenAddress[[:space:]=]|# &|I' ")


def test_what_holds_for_a_peer_alone_is_told_with_its_address(tmp_path: Path) -> None:
    trees.write(tmp_path, MAIN, "Match Address 10.0.0.0/8\n  PermitRootLogin no\n")
    first, other = (ssh.parse_settings(one + SERVER) for one in ("", "permitrootlogin no\n"))
    servers = [("127.0.0.1", first), ("10.0.0.1", other), ("10.0.0.2", other)]
    client = ssh.parse_settings(CLIENT)
    (one,) = ssh_rules.wrong_settings(servers, client, "2222", str(tmp_path))
    assert str(one) == "sshd PermitRootLogin no for 10.0.0.1"
    # What stands in a block is stronger than what stands first.
    assert ssh_rules.remedy(str(tmp_path), one).startswith("sed -i 's|^[[:space:]]*PermitRootLogin")


def test_the_rules_for_another_user_are_of_that_user(tmp_path: Path) -> None:
    user = ssh_user.User("mpiuser", 1000, "/home/mpiuser", ("mpiuser", "users"))
    server = SERVER.replace("permitrootlogin without-password", "permitrootlogin no")
    server = server.replace("forcecommand none", "forcecommand /usr/local/bin/imagegen-session")
    client = ssh.parse_settings(CLIENT)

    def wrong(more: str) -> list[str]:
        servers = [("127.0.0.1", ssh.parse_settings(more + server))]
        found = ssh_rules.wrong_settings(servers, client, "2222", str(tmp_path), user)
        line = ssh_rules.of_user(found, str(tmp_path), user)
        assert line.kind == "build"
        assert "/etc/ssh/imagegen-user.conf" in line
        return [str(one) for one in found]

    assert wrong("") == wrong("allowusers mpi*\nallowgroups users\n") == []
    assert wrong("denyusers mpiuser\n") == ["sshd DenyUsers mpiuser"]
    assert wrong("allowgroups root\n") == ["sshd AllowGroups root"]
    assert wrong("forcecommand /bin/date\n") == ["sshd ForceCommand /bin/date"]


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
