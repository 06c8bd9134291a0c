"""Find out why a user cannot log in: run one sshd that tells what it does, and read what it says.

The sshd listens on a spare port, serves one connection and ends. Each line that explains a failure
was recorded from a real one.
"""

import contextlib
import re
import socket
import time
from typing import Callable, List, NamedTuple, Tuple

from validate.fixtures import Situation
from validate.probes import account, limits, ssh_rules
from validate.probes.account import Problem
from validate.probes.dpkg import install_again
from validate.probes.files import names, read
from validate.probes.ssh import PACKAGES
from validate.probes.ssh_user import User, current
from validate.process import Result, RunningCommand, run
from validate.remedy import at_launch, in_shell, only_look

SSHD = "/usr/sbin/sshd"
SECONDS = 15.0
START_SECONDS = 2.0
NEEDED = ("SYS_CHROOT", "SETUID", "SETGID")
"""Capabilities without which sshd of OpenSSH closes every connection."""
LISTENS = "0A"


class Trial(NamedTuple):
    """Hold how a login went, with what both sides said."""

    login: Result
    server: str

    @property
    def text(self) -> str:
        """Return what both sides said, the server first."""
        return self.server + "\n" + self.login.err + "\n" + self.login.out


def trial(user: User) -> Trial:
    """Log in once to an sshd of our own that tells what it does."""
    port = _spare_port()
    options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-p", str(port)]
    daemon = RunningCommand([SSHD, "-d", "-e", "-p", str(port)], SECONDS)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _listens(port) and time.monotonic() < deadline:
            time.sleep(0.05)
        login = run(["ssh", "-v", *options, user.name + "@localhost", "true"], SECONDS)
        if _listens(port):  # ssh did not get as far: end the sshd, which serves one connection
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
        return Trial(login, daemon.result().err)
    finally:
        daemon.end()


def _spare_port() -> int:
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _listens(port: int) -> bool:
    """Return whether somebody listens on a port, without a connection: sshd would serve that one.

    Source: proc_net_tcp in the kernel's documentation.
    """
    wanted = ":{:04X}".format(port)
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in read(table).splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(wanted) and fields[3] == LISTENS:
                return True
    return False


class Known(NamedTuple):
    """Hold a line that explains a failure. `why` gets what the groups of the pattern matched."""

    pattern: str
    why: Callable[[Situation, Tuple[str, ...]], Problem]


def _fixed(cause: str, remedy: str) -> Callable[[Situation, Tuple[str, ...]], Problem]:
    """Explain a line by one cause and a line for the container's shell, both with its groups."""

    def why(_: Situation, groups: Tuple[str, ...]) -> Problem:
        return Problem("", cause.format(*groups), in_shell(remedy.format(*groups)))

    return why


def _capability(image: Situation, groups: Tuple[str, ...]) -> Problem:
    """Name the capabilities that sshd lacks: first the one of the call that was refused."""
    has = limits.capabilities_of_services(image.root)
    call = groups[0].lower()  # as in `setresuid 100`
    by_call = (
        ("chroot", "SYS_CHROOT"), ("setgroups", "SETGID"), ("initgroups", "SETGID"),
        ("gid", "SETGID"), ("uid", "SETUID"), ("audit", "AUDIT_WRITE"), ("chown", "CHOWN"),
        ("setrlimit", "SYS_RESOURCE"), ("bind", "NET_BIND_SERVICE"),
    )  # fmt: skip
    first = [name for words, name in by_call if words in call][:1]
    lost = [name for name in dict.fromkeys([*first, *NEEDED]) if name not in has]
    if not lost:
        text = "sshd may not call {}, though it has the capabilities: seccomp or another policy"
        unfiltered = at_launch("docker run --security-opt seccomp=unconfined IMAGE")
        return Problem("", text.format(groups[0]), unfiltered)
    text = "the container lacks {}: sshd may not call {}"
    words = "capability " + lost[0] if len(lost) == 1 else "capabilities " + ", ".join(lost)
    line = "docker run {} IMAGE   # a pod: securityContext.capabilities.add [{}]"
    adds = " ".join("--cap-add " + name for name in lost)
    return Problem("", text.format(words, groups[0]), at_launch(line.format(adds, ", ".join(lost))))


def _account(image: Situation, groups: Tuple[str, ...]) -> Problem:
    found = account.root_missing(image.root)
    found = found if found.seen else account.login_refused(image.root)
    return found if found.seen else Problem("", "sshd refuses root: {}".format(groups[0]), LOOK)


def closed(user: User, path: str) -> Problem:
    """Explain that the user may not read a key."""
    text = "securityContext: {{fsGroup: {}}}   # of the pod; or defaultMode: 0644 for the Secret"
    cause = "user id {} may not read {}, which is for another one alone".format(user.number, path)
    return Problem("", cause, at_launch(text.format(user.number)))


def _closed(image: Situation, groups: Tuple[str, ...]) -> Problem:
    return closed(current(image.root), groups[0])


def _no_process(_: Situation, __: Tuple[str, ...]) -> Problem:
    remedy = at_launch("docker run --pids-limit -1 IMAGE")
    return Problem("", "the container may start no more processes", remedy)


def _pam(image: Situation, _: Tuple[str, ...]) -> Problem:
    return account.by_pam(image.root)


def _no_user(image: Situation, groups: Tuple[str, ...]) -> Problem:
    found = account.root_missing(image.root)
    if found.seen:
        return found
    line = "useradd --system --no-create-home --home-dir /run/sshd --shell /usr/sbin/nologin {}"
    cause = "/etc/passwd has no account `{}`".format(groups[0])
    return Problem("", cause, in_shell(line.format(groups[0])))


LOOK = only_look("ssh -v -p 2222 localhost true   # says at which step")
SETTINGS = "/etc/ssh/sshd_config /etc/ssh/sshd_config.d/*.conf"
AGAIN = "; kill -HUP $(cat /run/sshd.pid)"
KNOWN = (
    Known(r"no (?:more sessions)|no_more_sessions", _fixed(
        "MaxSessions of sshd allows no session on a connection",
        "sed -i 's/^ *MaxSessions/# &/I' " + SETTINGS + AGAIN)),
    Known(r"Permissions \d+ for '(/etc/ssh/[^']+)' are too open", _fixed(
        "host keys can be read by others, so sshd ignores them: {0} is one",
        "chmod 600 /etc/ssh/ssh_host_*_key; /usr/sbin/sshd")),
    Known(r"no hostkeys available", _fixed(
        "sshd has no host keys: they are missing, or sshd cannot read them",
        "ssh-keygen -A && /usr/sbin/sshd")),
    Known(r"Missing privilege separation directory: (\S+)", _fixed(
        "the folder in which sshd separates its privileges is missing: {0}",
        "mkdir -p {0}; /usr/sbin/sshd")),
    Known(r"Privilege separation user (\S+) does not exist", _no_user),
    Known(r"No user exists for uid (\d+)|[Ii]nvalid user (root)\b(?! 127)", _no_user),
    Known(r"(linux_audit_write_entry) failed", _capability),
    Known(r"(chroot|setgroups|initgroups|setres[ug]id|permanently_set_uid|set[eg]?[ug]id)"
          r"\b[^\n]*: Operation not permitted", _capability),
    Known(r"(Bind) to port \d+ on \S+ failed: Permission denied", _capability),
    Known(r"Access denied for user root by PAM account configuration", _pam),
    Known(r"PAM: pam_open_session\(\): ([^\n]*)", _pam),
    Known(r"[Pp]assword (?:change required|has expired|expired)"
          r"|required to change your password", _pam),
    Known(r"User root (?:from \S+ )?not allowed because ([^\n]*)", _account),
    Known(r"bad ownership or modes for (?:file|directory) ([^\s]+)", _fixed(
        "{0} can be written by others or has another owner: sshd trusts no key there",
        "chown root:root {0}; chmod go-w {0}")),
    Known(r"(?:refused by tcp wrapper|refused connect from)", _fixed(
        "/etc/hosts.deny refuses connections to sshd",
        "sed -i 's/^[^#]/# &/' /etc/hosts.deny")),
    Known(r"algorithm (\S+) not in PubkeyAcceptedAlgorithms", _fixed(
        "sshd does not accept keys of the kind {0}: PubkeyAcceptedAlgorithms",
        "sed -i 's/^ *PubkeyAccepted/# &/I' " + SETTINGS
        + AGAIN)),
    Known(r"no matching ([^\n.]+) found\. Their offer: ([^\n]*?)(?: \[|\n|$)", _fixed(
        "ssh and sshd have no {0} in common: one of them is limited to {1}",
        "sed -i -E 's/^ *(Ciphers|MACs|KexAlgorithms|HostKeyAlgorithms)/# &/I' "
        "/etc/ssh/ssh*_config /etc/ssh/ssh*_config.d/*.conf" + AGAIN)),
    Known(r"Permissions \d+ for '([^']+)' are too open", _fixed(
        "{0} can be read by others, so ssh does not use it", "chmod 600 {0}")),
    Known(r"Load key \"([^\"]+)\": Permission denied", _closed),
    Known(r"Load key \"([^\"]+)\": (?!No such)([^\n]*)", _fixed(
        "{0} is no whole key: {1}",
        "mv {0} {0}.off && IMAGEGEN_SSHD=off imagegen-entrypoint true")),
    Known(r"Bad owner or permissions on (\S+)", _fixed(
        "ssh refuses its own settings: others may write {0}",
        "chown root:root {0}; chmod go-w {0}")),
    Known(r"Could not resolve hostname (\S+):", _fixed(
        "`{0}` has no address: it is not in /etc/hosts",
        "echo 127.0.0.1 {0} >> /etc/hosts")),
    Known(r"(Host key verification failed)", _fixed(
        "ssh knows another host key of this name, or asks",
        "rm -f ~/.ssh/known_hosts; sed -i '1i StrictHostKeyChecking no' /etc/ssh/ssh_config")),
    Known(r"error while loading shared libraries: (\S+): ([^\n]*)", _fixed(
        "ssh or sshd does not start: {0}: {1}",
        install_again(*PACKAGES))),
    Known(r"(\S+) does not exist or is not executable", _fixed(
        "a file of OpenSSH is missing: {0}",
        install_again(*PACKAGES))),
    Known(r"(?:fork|clone)[^\n]*: Resource temporarily unavailable|fork of \S+ child failed",
          _no_process),
    Known(r"Failed publickey for (\S+)", _fixed(
        "authorized_keys of {0} does not have the key that ssh offers",
        "cat ~/.ssh/id_*.pub >> ~/.ssh/authorized_keys; chmod 600 ~/.ssh/authorized_keys")),
)  # fmt: skip


def refusal(image: Situation, failed: Result) -> Problem:
    """Return why a login failed; `seen` is the decisive line of a trial. Empty if unknown."""
    user = current(image.root)
    try_ = trial(user)
    if try_.login.ok:
        return _by_running_daemon(failed)
    return by_text(image, try_.text)


def by_text(image: Situation, text: str) -> Problem:
    """Explain what the two sides of a failed login said; empty if no line is known."""
    text = text.replace("\r", "")
    for known in KNOWN:
        found = re.search(known.pattern, text)
        if found:
            line = text[: found.end()].rpartition("\n")[2] + text[found.end() :].partition("\n")[0]
            groups = tuple(one for one in found.groups() if one)
            why = known.why(image, groups)
            return why if why.seen.startswith("/") else why._replace(seen=line.strip())
    return Problem(
        *(
            "",
            *ssh_rules.session_problem(_without_debug(text), image.root, current(image.root).home),
        )
    )


def _without_debug(text: str) -> str:
    lines: List[str] = [line for line in text.splitlines() if not line.startswith("debug")]
    return "\n".join(lines)


def _options_of_running() -> str:
    """Return the options that the running sshd was started with, in words; empty without any."""
    for pid in names("/proc"):
        title = read("/proc/{}/cmdline".format(pid)).replace("\0", " ") if pid.isdigit() else ""
        options = re.match(r"(?:sshd: )?\S*/sshd ([^\[]*)", title)
        if options and options.group(1).strip() not in ("", "-D"):
            return " ({})".format(options.group(1).strip())
    return ""


def _by_running_daemon(failed: Result) -> Problem:
    """Explain that a new sshd lets root in: the one that runs is another one, or is full."""
    full = re.search(r"kex_exchange_identification|Connection (closed|reset)", failed.err)
    if full:
        cause = "the sshd that runs closes new connections: it has as many as MaxStartups allows, "
        cause += "or it punishes this address (PerSourcePenalties); a new one lets root in"
    else:
        cause = "the sshd that runs has other settings{}, or is no sshd: a new one lets root in"
        cause = cause.format(_options_of_running())
    return Problem("", cause, in_shell("kill $(cat /run/sshd.pid); /usr/sbin/sshd"))
