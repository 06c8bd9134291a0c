"""Test why root cannot log in, from what real daemons and clients said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate.trees import expected, write
from validate.fixtures import Situation
from validate.probes import account, ssh_login
from validate.process import Result

if TYPE_CHECKING:
    from pathlib import Path

ALL = "CapEff:\t00000000a80425fb\n"
NONE = "CapEff:\t0000000000000000\n"
NO_CHROOT = "CapEff:\t00000000a80025fb\n"
ROOT = "root:x:0:0:root:/root:/bin/bash\n"


@pytest.fixture
def image(tmp_path: Path) -> Situation:
    write(tmp_path, "/etc/passwd", ROOT)
    write(tmp_path, "/etc/shadow", "root:*:19000:0:99999:7:::\n")
    write(tmp_path, "/bin/bash").chmod(0o755)
    write(tmp_path, "/proc/self/status", ALL)
    write(tmp_path, "/etc/pam.d/sshd", "@include common-account\nsession optional pam_gone.so\n")
    write(tmp_path, "/etc/pam.d/common-account", "account required pam_unix.so\n")
    write(tmp_path, "/lib/x86_64-linux-gnu/security/pam_unix.so")
    return Situation(expected(tmp_path), {}, str(tmp_path), {})


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            'Load key "/home/m/.ssh/id_rsa": Permission denied\nm@localhost: Permission denied.',
            "user id 0 may not read /home/m/.ssh/id_rsa",
        ),
        ("debug1: x\nno more sessions\ndebug1: y", "MaxSessions of sshd allows no session"),
        ("sshd: no hostkeys available -- exiting.", "sshd has no host keys"),
        (
            (
                "Permissions 0644 for '/etc/ssh/ssh_host_rsa_key' are too open.\n"
                "sshd: no hostkeys available -- exiting."
            ),
            "host keys can be read by others, so sshd ignores them: /etc/ssh/ssh_host_rsa_key",
        ),
        ("Missing privilege separation directory: /run/sshd", "is missing: /run/sshd"),
        ("Privilege separation user sshd does not exist", "/etc/passwd has no account `sshd`"),
        ("debug1: Connection refused by tcp wrapper", "/etc/hosts.deny refuses"),
        (
            (
                "userauth_pubkey: signature algorithm ssh-ed25519 not in PubkeyAcceptedAlgorithms "
                "[preauth]"
            ),
            "does not accept keys of the kind ssh-ed25519",
        ),
        (
            (
                "Unable to negotiate with 127.0.0.1 port 51568: no matching cipher found. "
                "Their offer: aes256-cbc [preauth]"
            ),
            "ssh and sshd have no cipher in common: one of them is limited to aes256-cbc",
        ),
        (
            (
                "debug1: Server will not fork when running in debugging mode.\nFailed "
                "publickey for root from 127.0.0.1 port 50138 ssh2: ED25519 SHA256:x"
            ),
            "authorized_keys of root does not have the key",
        ),
        ('Load key "/root/.ssh/id_ed25519": error in libcrypto', "is no whole key"),
        (
            "ssh: Could not resolve hostname localhost: Name or service not known",
            "`localhost` has no address",
        ),
        (
            "/usr/lib/openssh/sshd-session does not exist or is not executable",
            "a file of OpenSSH is missing: /usr/lib/openssh/sshd-session",
        ),
        ("fork: Resource temporarily unavailable", "may start no more processes"),
        ("bad ownership or modes for directory /root/.ssh", "/root/.ssh can be written by others"),
        ("Access denied for user root by PAM account configuration", "PAM refuses the account"),
    ],
)
def test_a_line_of_a_failed_login_explains_it(image: Situation, said: str, cause: str) -> None:
    found = ssh_login.by_text(image, said)
    assert cause in found.cause
    assert found.remedy
    assert found.seen in said


CHROOT = 'chroot("/run/sshd"): Operation not permitted [preauth]'


@pytest.mark.parametrize(
    ("said", "has", "cause"),
    [
        (CHROOT, NO_CHROOT, "the container lacks capability SYS_CHROOT: sshd may not call chroot"),
        (
            "debug1: setgroups() failed: Operation not permitted\n" + CHROOT,
            NONE,
            (
                "the container lacks capabilities SETGID, SYS_CHROOT, SETUID: sshd may not call "
                "setgroups"
            ),
        ),
        (
            "setresuid 100: Operation not permitted [preauth]",
            "CapEff:\t00000000a804257b\n",
            "the container lacks capability SETUID: sshd may not call setresuid",
        ),
        (CHROOT, ALL, "sshd may not call chroot, though it has the capabilities: seccomp"),
    ],
)
def test_a_missing_capability(
    image: Situation, tmp_path: Path, said: str, has: str, cause: str
) -> None:
    write(tmp_path, "/proc/self/status", has)
    assert ssh_login.by_text(image, said).cause.startswith(cause)


DENIED = "Access denied for user root by PAM account configuration [preauth]"
LOCKED = "User root not allowed because account is locked"


@pytest.mark.parametrize(
    ("shadow", "said", "cause"),
    [
        ("root:*:19000:0:99999:7::0:", DENIED, "has expired (/etc/shadow, field 8)"),
        ("root:*:19000:0:99999:7::1:", DENIED, "has expired (/etc/shadow, field 8)"),
        ("root:*:0:0:99999:7:::", "Password change required but no TTY available.", "field 3"),
        ("root:*:10000:0:30:7:::", "your password has expired", "field 5"),
        ("root:!*:19000:0:99999:7:::", LOCKED, "is locked (/etc/shadow, field 2)"),
        ("daemon:*::::::", DENIED, "root has no line in /etc/shadow"),
    ],
)
def test_an_account_that_has_ended(
    image: Situation, tmp_path: Path, shadow: str, said: str, cause: str
) -> None:
    write(tmp_path, "/etc/shadow", shadow + "\n")
    assert cause in ssh_login.by_text(image, said).cause


def test_a_missing_module_of_pam(image: Situation, tmp_path: Path) -> None:
    write(tmp_path, "/etc/pam.d/common-account", "account required pam_lost.so\n")
    found = ssh_login.by_text(image, DENIED)
    assert found.cause == "PAM module missing: pam_lost.so (named in /etc/pam.d/sshd)"


def test_a_shell_that_is_not_there(image: Situation, tmp_path: Path) -> None:
    write(tmp_path, "/etc/passwd", ROOT.replace("/bin/bash", "/bin/gone"))
    said = "User root not allowed because shell /bin/gone does not exist"
    assert ssh_login.by_text(image, said).cause.startswith("the shell of root, /bin/gone, is miss")


def test_accounts_that_come_from_elsewhere(image: Situation, tmp_path: Path) -> None:
    write(tmp_path, "/etc/nsswitch.conf", "hosts: files dns\npasswd: ldap [NOTFOUND=return] # x\n")
    found = ssh_login.by_text(image, "No user exists for uid 0")
    assert found.seen == "/etc/nsswitch.conf takes accounts from ldap, not from /etc/passwd"
    write(tmp_path, "/etc/nsswitch.conf", "passwd: files systemd\n")
    assert account.root_missing(str(tmp_path)) == account.Problem()


@pytest.mark.parametrize(
    ("passwd", "seen"),
    [
        ("daemon:x:1:1::/:/bin/sh\n", "there is no account `root` in /etc/passwd"),
        ("root:x:1000:0::/root:/bin/sh\n", "/etc/passwd says `root:x:1000:0::/root:/bin/sh`"),
        (ROOT, ""),
    ],
)
def test_the_account_of_root(tmp_path: Path, passwd: str, seen: str) -> None:
    write(tmp_path, "/etc/passwd", passwd)
    assert account.root_missing(str(tmp_path)).seen == seen


def test_a_start_up_file_that_ends_the_session(image: Situation, tmp_path: Path) -> None:
    write(tmp_path, "/root/.bashrc", "exit 1\n")
    said = "debug1: Starting session: command for root\ndebug1: Exit status 1"
    assert ssh_login.by_text(image, said).cause.startswith("/root/.bashrc speaks, or ends")


def test_a_new_daemon_that_lets_root_in_accuses_the_running_one(
    image: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = ssh_login.Trial(Result(["ssh"], 0, "", ""), "")
    monkeypatch.setattr(ssh_login, "trial", lambda _: good)
    reset = Result(
        ["ssh"], 255, "", "kex_exchange_identification: Connection closed by remote host"
    )
    assert "MaxStartups" in ssh_login.refusal(image, reset).cause
    other = ssh_login.refusal(image, Result(["ssh"], 255, "", "x")).cause
    assert other.startswith("the sshd that runs has other settings")
