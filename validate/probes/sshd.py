"""Ask sshd for its settings, and start one if a login is to be tried and none listens."""

import contextlib
import os
import shutil
import socket
import tempfile
import time
from typing import Dict, Iterator, List, Sequence, Tuple

from validate.probes.ssh import parse_settings
from validate.probes.ssh_user import User
from validate.probes.sshd_connections import Connection
from validate.process import Result, background, run

SSHD = "/usr/sbin/sshd"
START_SECONDS = 5.0
LOGIN_SECONDS = 20.0


@contextlib.contextmanager
def temporary_key() -> Iterator[str]:
    """Make a host key while the block lasts.

    sshd answers questions only if it has one, and an image has none before it starts.
    """
    folder = tempfile.mkdtemp()
    try:
        path = os.path.join(folder, "key")
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path])
        yield path
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def separation_folder(wanted: bool, path: str = "/run/sshd") -> Iterator[bool]:
    """Have the folder that sshd separates its privileges in while the block lasts, if `wanted`.

    The start script of the package makes it; `sshd` itself ends without it. Yield whether it was
    there.
    """
    if not wanted or os.path.isdir(path) or not os.access(os.path.dirname(path), os.W_OK):
        yield True
        return
    os.mkdir(path, 0o755)
    try:
        yield False
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(path)


def server_settings(connections: Sequence[Connection]) -> List[Tuple[str, Dict[str, str]]]:
    """Return sshd's settings in force for each connection, with the address that it comes from."""
    found = []
    with temporary_key() as key:
        for one in connections:
            said = run([SSHD, "-T", "-C", one.words, "-h", key])
            found.append((one.address, parse_settings(said.out)))
    return found


def client_settings(user: User) -> Dict[str, str]:
    """Return the settings of ssh in force for a login of this user to this container."""
    return parse_settings(run(["ssh", "-G", "{}@localhost".format(user.name)]).out)


def login(port: int, command: str, user: User) -> Result:
    """Run a command in a session of this container's own sshd, without any question."""
    options: List[str] = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-p", str(port)]
    return run(["ssh", *options, "{}@localhost".format(user.name), command], LOGIN_SECONDS)


@contextlib.contextmanager
def daemon(port: int) -> Iterator[bool]:
    """Run an sshd while the block lasts; yield whether one was running already.

    One that was running is left alone. Raises OSError if sshd does not start.
    """
    if _listens(port):
        yield True
        return
    with background([SSHD, "-D"]):
        deadline = time.monotonic() + START_SECONDS
        while not _listens(port) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield False


def _listens(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
