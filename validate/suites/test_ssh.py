"""Check SSH between the containers of a job: sshd, login by key, environment, limits.

The user is the one that the checks run as: root, or the user that the image was made for.
"""

import os
from typing import Any, ContextManager, Dict, List

from validate.check import check, fail, skip, warn
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes import ssh, ssh_login, ssh_rules
from validate.probes.dpkg import lost_program
from validate.probes.entrypoint import environment_at_start
from validate.probes.files import under
from validate.probes.programs import absence, find_program
from validate.probes.ssh_user import User, current, has_sshd
from validate.probes.sshd import (
    client_settings,
    daemon,
    login,
    separation_folder,
    server_settings,
    temporary_key,
)
from validate.probes.sshd_connections import Connection, connections
from validate.probes.sysfs import rdma_devices
from validate.probes.writable import is_read_only
from validate.process import run
from validate.remedy import in_image, in_shell, only_look

PROGRAMS = ("sshd", "ssh", "ssh-keygen")
PROGRAM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PARITY = ("PATH", "LD_LIBRARY_PATH", "OPAL_PREFIX")
PARITY_PREFIXES = ("NVIDIA_", "CUDA_", "NCCL_", "OMPI_", "HOROVOD_")


def _port(image: Situation) -> int:
    return int(image.expected.fact("ssh", "port", 22))


def _user(image: Situation) -> User:
    """Return who logs in; skip the check where the image has no sshd for this user."""
    user = current(image.root)
    if not has_sshd(image.root, user):
        text = "the image is for root: its sshd shows settings and host keys to root alone"
        skip("needs-root", text)
    return user


@check(
    "ssh.sshd",
    "sshd is the version of the recipe and accepts its own settings",
    cause="the settings are wrong, or the folder that sshd separates its privileges in is missing",
    remedy=in_image("imagegen build", look="/usr/sbin/sshd -t"),
    needs=("os.account",),
)
def test_sshd(image: Situation, measure: Measure) -> None:
    """`sshd -t` with a temporary host key, `ssh -V`"""
    _user(image)
    lost = [one for one in PROGRAMS if not find_program(one, PROGRAM_PATH)]
    if lost:
        places = [one for one in ssh.PROGRAMS if os.path.basename(one) in lost]
        seen = "; ".join(absence(under(image.root, one)) for one in places)
        cause = "it was removed after the installation, or is no program any more"
        fail(seen, cause, lost_program(image.root, *lost))
    banner = run(["ssh", "-V"]).err.strip()
    version = banner.partition("OpenSSH_")[2].partition("p")[0]
    measure("OpenSSH {}".format(version))
    with temporary_key() as key, _start_script(image) as was_there:
        result = run(["/usr/sbin/sshd", "-t", "-h", key])
    if not result.ok:
        said = result.out + result.err
        known = ssh_login.by_text(image, said)
        fail(result.says(), known.cause, known.remedy or ssh_rules.starts_again(said))
    if not same_version(image.expected.version("ssh"), version):
        text = "OpenSSH {}, the recipe says {}".format(version, image.expected.version("ssh"))
        fail(text, "another OpenSSH was installed over it", in_image("imagegen build"))
    if not was_there:
        cause = "`sshd -D` alone ends without it; `service ssh start` makes it"
        warn("there is no /run/sshd", cause, in_shell("mkdir -p /run/sshd"))


def _start_script(image: Situation) -> ContextManager[bool]:
    """Do as the start script of the package does, in an image that may use that one."""
    return separation_folder(image.expected.inferred)


@check(
    "ssh.hostkeys-baked",
    "host keys are not the same in every container of the image",
    cause=(
        "they were made when the package was installed: whoever has the image can pose "
        "as any container"
    ),
)
def test_hostkeys_baked(image: Situation, measure: Measure) -> None:
    """private keys in /etc/ssh and /run/imagegen-user that were neither made by this container's
    entrypoint nor mounted"""
    _baked(image, ssh.host_keys(image.root), measure)


@check(
    "ssh.userkeys-baked",
    "no user's private key travels in the image",
    cause=(
        "it was made or copied while the image was built: whoever pulls the image can "
        "log in everywhere"
    ),
)
def test_userkeys_baked(image: Situation, measure: Measure) -> None:
    """private keys in ~/.ssh of all users that were neither made by this container's entrypoint nor
    mounted"""
    _baked(image, ssh.user_keys(image.root), measure)


def _baked(image: Situation, keys: List[str], measure: Measure) -> None:
    baked = ssh.baked(image.root, keys, os.uname().nodename)
    measure("{} keys, made at start or mounted".format(len(keys)) if keys else "no key")
    if baked:
        text = "came with the image: {}".format(", ".join(baked))
        judge = warn if image.expected.inferred and keys[0].startswith("/etc/ssh/") else fail
        judge(text, remedy=ssh_rules.made_anew(image.root, baked))


@check(
    "ssh.perms",
    "sshd and ssh accept the modes of folders and keys",
    cause="StrictModes refuses what others can write, ssh refuses keys that others can read",
)
def test_perms(image: Situation, measure: Measure) -> None:
    """mode and owner of ~, ~/.ssh, authorized_keys and private keys"""
    user = current(image.root)
    closed = ssh.closed_keys(image.root, user)
    if closed:
        why = ssh_login.closed(user, closed[0])
        fail("closed: {}".format(", ".join(closed)), why.cause, why.remedy)
    problems = ssh.mode_problems(image.root, user)
    measure("{}/.ssh is private".format(user.home))
    if problems:
        fail("; ".join(problems[:3]), remedy=ssh_rules.private(image.root, user))


@check(
    "ssh.conf",
    "the user logs in by key, without a question, and both sides use one port",
    cause="a setting of the image, or one that comes before it, forbids what MPI needs",
    needs=("ssh.sshd",),
)
def test_conf(image: Situation, measure: Measure) -> None:
    """`sshd -T -C user=root,host=localhost,addr=127.0.0.1` and `ssh -G root@localhost`: every port
    and address that sshd listens on, who may log in and how, where keys are looked for, which
    command is forced; ssh may not ask anything and may not go through another host. With `Match` in
    sshd's files: the same for this container's address, and for an address that each of them
    names"""
    user, port = _user(image), _port(image)
    with _start_script(image):
        servers = server_settings(connections(image.root, user, port))
    wrong = ssh_rules.wrong_settings(servers, client_settings(user), str(port), image.root, user)
    if image.expected.inferred:
        wrong = [one for one in wrong if one.name not in ssh_rules.OWN_CHOICES]
    measure("{} by key, port {}, no questions".format(user.name, port))
    if wrong and not user.is_root:
        fail("; ".join(map(str, wrong)), remedy=ssh_rules.of_user(wrong, image.root, user))
    if wrong:
        lines = [ssh_rules.remedy(image.root, one) for one in wrong]
        fail("; ".join(map(str, wrong)), remedy=in_shell("; ".join(dict.fromkeys(lines))))


def _session(image: Situation, command: str, measure: Measure) -> Any:
    """Log in to this container itself; start sshd for it if none listens."""
    user = _user(image)
    if not ssh.any_user_key(image.root, user) and not os.path.isdir(user.copies):
        if is_read_only(image.root, os.path.join(user.home, ".ssh")):
            skip("blocked-by", "lim.root: / is read-only, so the entrypoint could make no key")
        skip("needs-start", "no key: keys are made by the entrypoint, and it did not run")
    with daemon(_port(image)) as was_there:
        result = login(_port(image), command, user)
    measure("port {}{}".format(_port(image), "" if was_there else ", sshd started for the check"))
    return result


def _answer(image: Situation, command: str, measure: Measure) -> str:
    """Return what a command prints in a session; what start-up files print is left out."""
    return ssh.answer_of(_session(image, ssh.between_marks(command), measure).out)


@check(
    "ssh.login",
    "the user logs in to this container without a password",
    tier="live",
    cause="keys, modes or settings do not let the user in",
    needs=("ssh.sshd", "ssh.userkeys-baked", "ssh.perms", "ssh.conf"),
)
def test_login(image: Situation, measure: Measure) -> None:
    """`ssh -o BatchMode=yes -o ConnectTimeout=5 -p PORT root@localhost true`; an sshd is started
    where none listens. If it fails: the same with `sshd -d -e` on a spare port, which says why"""
    result = _session(image, "true", measure)
    if not result.ok:
        found = ssh_login.refusal(image, result)
        seen = "; ".join(filter(None, (result.says(), found.seen)))
        fail(seen, found.cause, found.remedy)


@check(
    "ssh.quiet",
    "a session says nothing on its own",
    severity="warn",
    tier="live",
    cause="a start-up file or banner prints, and mpirun takes it for the daemon's answer",
    remedy=only_look("grep -n -e echo -e printf ~/.bashrc /etc/bash.bashrc /etc/ssh/sshrc"),
    needs=("ssh.login",),
)
def test_quiet(image: Situation, measure: Measure) -> None:
    """`ssh localhost true` prints nothing"""
    result = _session(image, "true", measure)
    if result.out or result.err:
        home = current(image.root).home
        why = ssh_rules.session_problem(result.out + result.err, image.root, home)
        fail("a session prints `{}`".format(result.tail(1)), *why)


@check(
    "ssh.env-parity",
    "ranks that SSH starts see the environment of the container",
    severity="warn",
    tier="live",
    cause="sshd starts sessions with an environment of its own, from /etc/environment",
    needs=("ssh.login",),
)
def test_env_parity(image: Situation, measure: Measure) -> None:
    """PATH, LD_LIBRARY_PATH, OPAL_PREFIX, NVIDIA_*, CUDA_*, NCCL_*, OMPI_*, HOROVOD_* of
    /proc/1/environ against `ssh localhost env -0`; with the host's processes in sight (--pid host),
    the environment of `validate` in its place"""
    lines = _answer(image, "env -0", measure).split("\0")
    here = _of_interest(environment_at_start(image.root) or image.env)
    there = _of_interest(dict(line.partition("=")[::2] for line in lines))
    differ = sorted(name for name in set(here) | set(there) if here.get(name) != there.get(name))
    measure("{} variables the same".format(len(here)))
    if differ:
        seen = [
            "{} is `{}` over ssh, `{}` in the container".format(n, there.get(n), here.get(n))
            for n in differ
        ]
        values = {name: here.get(name) for name in differ}
        fail("; ".join(seen[:2]), remedy=ssh_rules.carried(image.root, values, current(image.root)))


def _of_interest(env: Dict[str, str]) -> Dict[str, str]:
    return {n: v for n, v in env.items() if n in PARITY or n.startswith(PARITY_PREFIXES)}


@check(
    "ssh.limits-parity",
    "ranks that SSH starts have the limits of the container",
    tier="live",
    cause="pam_limits sets limits of its own for sessions, or sshd was started with lower ones",
    needs=("ssh.login",),
)
def test_limits_parity(image: Situation, measure: Measure) -> None:
    """`ulimit -l; ulimit -n` here and over ssh"""
    command = ssh.between_marks("ulimit -l; ulimit -n")
    here = ssh.answer_of(run(["bash", "-c", command]).out).split()
    there = _answer(image, "ulimit -l; ulimit -n", measure).split()
    measure("memlock {}, nofile {}".format(*(here + ["?", "?"])[:2]))
    if here != there:
        text = "memlock and nofile are {} over ssh, {} here".format(" ".join(there), " ".join(here))
        judge = fail if rdma_devices(image.root) else warn
        judge(text, remedy=ssh_rules.limits_kept(image.root))


@check("ssh.maxstartups", "how many sessions may begin at one moment", severity="info")
def test_maxstartups(image: Situation, measure: Measure) -> None:
    """`sshd -T`: maxstartups start:rate:full; a launch to more nodes than `start` may be refused"""
    ((_, server),) = server_settings([Connection(_user(image).name)])
    value = server.get("maxstartups", "")
    unknown = "unknown: sshd does not tell its settings"
    measure("{} (start:rate:full)".format(value) if value else unknown)
