"""Test for which connections sshd is asked for its settings."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.probes.ssh_user import ROOT, User
from validate.probes.sshd_connections import Connection, connections, server_files

if TYPE_CHECKING:
    from pathlib import Path

MAIN = "/etc/ssh/sshd_config"


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "here")
    monkeypatch.setattr(socket, "gethostbyname", lambda _: "172.18.0.2")


def test_without_blocks_one_connection_tells_all(tmp_path: Path) -> None:
    trees.write(tmp_path, MAIN, "# Match User x\nPort 2222\n")
    (one,) = connections(str(tmp_path), ROOT, 2222)
    assert one == Connection("root")
    assert one.words == "user=root,host=localhost,addr=127.0.0.1,laddr=127.0.0.1,lport=2222"


@pytest.mark.parametrize(
    ("block", "address"),
    [
        ("Match Address 10.0.0.0/8", "10.0.0.1"),
        ("match user root address 192.168.7.3", "192.168.7.3"),
        ("Match Address 10.4.*,!10.4.5.6", "10.4.1.1"),
        ("Match Address fd00::/8", "fd00::1"),
        ("Match Address 10.1.2.3/32", "10.1.2.3"),
    ],
)
def test_an_address_that_a_block_names_is_asked_for(
    tmp_path: Path, block: str, address: str
) -> None:
    trees.write(tmp_path, "/etc/ssh/sshd_config.d/site.conf", f"{block}\n  PermitRootLogin no\n")
    found = connections(str(tmp_path), ROOT, 2222)
    assert [one.address for one in found] == ["127.0.0.1", "172.18.0.2", address]


def test_a_block_of_a_host_is_asked_for_by_a_name(tmp_path: Path) -> None:
    trees.write(tmp_path, MAIN, "Match Host gpu*.site\n  PermitRootLogin no\n")
    assert connections(str(tmp_path), ROOT, 2222)[-1].host == "gpua.site"


def test_what_the_main_file_includes_is_read_too(tmp_path: Path) -> None:
    trees.write(tmp_path, MAIN, "Include /etc/ssh/sshd_config.d/*.conf site/*\n")
    trees.write(tmp_path, "/etc/ssh/sshd_config.d/a.conf")
    trees.write(tmp_path, "/etc/ssh/sshd_config.d/a.bak")
    trees.write(tmp_path, "/etc/ssh/site/b")
    wanted = [MAIN, "/etc/ssh/sshd_config.d/a.conf", "/etc/ssh/site/b"]
    assert server_files(str(tmp_path), ROOT) == wanted
    assert server_files(str(tmp_path), User("me", 5)) == ["/etc/ssh/imagegen-user.conf"]
