"""Check what a launch takes away: places to write, a name and a home of the user, memory."""

import os
import pwd

from validate.check import check, fail, warn
from validate.fixtures import Measure, Situation
from validate.probes import limits, ports
from validate.probes.writable import is_read_only, why_not_writable
from validate.remedy import at_launch, in_shell, on_host
from validate.restrictions import DISK, READ_ONLY

OF_THE_ENTRYPOINT = ("/etc/ssh", "/run", "/root/.ssh")
"""Where the entrypoint makes SSH keys and notes what it made."""
MEMORY_LEAST = 2 << 30
ANOTHER_HOME = "export HOME=$(mktemp -d)"
HOME_THERE = at_launch(
    "docker run --tmpfs /tmp:mode=1777 -e HOME=/tmp IMAGE   # a pod: an emptyDir, and HOME there"
)
READ_ONLY_WORD = "read-only"
CAUSES = {READ_ONLY_WORD: READ_ONLY.cause, "full": DISK.cause}


@check(
    "lim.root",
    "the root file system can be written: keys and caches are made when a container starts",
    severity="warn",
    tier="live",
    cause="the container was started with --read-only, or a pod with readOnlyRootFilesystem",
    remedy=at_launch("docker run IMAGE   # without --read-only; or give each folder a --tmpfs"),
)
def test_root(image: Situation, measure: Measure) -> None:
    """statvfs(/): ST_RDONLY; if it is set, also of the folders in which SSH keys are made"""
    measure("can be written")
    if is_read_only(image.root, "/"):
        lost = [one for one in OF_THE_ENTRYPOINT if is_read_only(image.root, one)]
        no_keys = "; no SSH keys can be made in {}".format(", ".join(lost)) if lost else ""
        fail("/ is read-only" + no_keys)


@check(
    "lim.home",
    "the user has a home for caches and settings: pip, PyTorch and ssh use it",
    severity="warn",
    tier="live",
    cause="the container runs as a user that the image does not know, or without HOME",
)
def test_home(image: Situation, measure: Measure) -> None:
    """$HOME is a folder in which this user can make files"""
    home = image.env.get("HOME", "")
    measure(home)
    why = why_not_writable(image.root, home) if home else "not set"
    if why:
        remedy = HOME_THERE if why == READ_ONLY_WORD else in_shell(ANOTHER_HOME)
        text = "HOME{}: {}".format("=" + home if home else "", why)
        fail(text, CAUSES.get(why, ""), remedy)


@check(
    "lim.user",
    "the user has a name: ssh, mpirun over ssh and Python's getpass ask for it",
    severity="warn",
    tier="live",
    cause="the container was started with a user id that /etc/passwd does not have",
    remedy=at_launch("docker run --user 0 IMAGE   # or -v /etc/passwd:/etc/passwd:ro"),
)
def test_user(image: Situation, measure: Measure) -> None:
    """getpwuid(geteuid())"""
    number = os.geteuid()
    try:
        measure("{}, user id {}".format(pwd.getpwuid(number).pw_name, number))
    except KeyError:
        seen = "user id {} has no name".format(number)
        if not image.expected.user:
            fail(seen)
        text = (
            "docker run --user {}:0 IMAGE   # group 0, and the image's entrypoint (a pod: `args`)"
        )
        cause = "the entrypoint did not run, or not in group 0: it gives the account to the number"
        fail(seen, cause, at_launch(text.format(number)))


@check(
    "lim.memory",
    "the container may use the memory that frameworks need to start",
    severity="warn",
    tier="live",
    cause="the container was started with --memory, or the pod has a limit of memory",
    remedy=at_launch("docker run --memory 16g IMAGE   # a pod: resources.limits.memory"),
)
def test_memory(image: Situation, measure: Measure) -> None:
    """memory.max of the control group, or its v1 name; at least 2 GiB"""
    limit = limits.control_group(image.root).get("memory", "")
    measure(limits.bytes_in_words(int(limit)) if limit.isdigit() else "unlimited")
    if limit.isdigit() and int(limit) < MEMORY_LEAST:
        has, least = map(limits.bytes_in_words, (int(limit), MEMORY_LEAST))
        fail("{} of memory, {} are the least".format(has, least))


RENDEZVOUS = 29500
"""The port of torchrun and of MASTER_PORT, unless a launch names another one."""
PORTS_LEAST = 10000
"""Ports for connections: each pair of ranks takes several."""


@check(
    "lim.ports",
    "the port at which ranks meet is free, and there are ports for their connections",
    tier="live",
    cause="a job that ended left a process behind, or another container shares this network",
    remedy=at_launch("MASTER_PORT=29501 torchrun --rdzv-endpoint=HOST:29501 …", look="ss -tlnp"),
)
def test_ports(image: Situation, measure: Measure) -> None:
    """MASTER_PORT, else 29500, among the listening ports of /proc/net/tcp and tcp6: taken where
    this container has rank 0; /proc/sys/net/ipv4/ip_local_port_range, at least 10000"""
    said = image.env.get("MASTER_PORT") or str(RENDEZVOUS)
    if not said.isdigit():
        fail("MASTER_PORT={} is no number".format(said), "the launch sets it so")
    port = int(said)
    first, last = ports.for_clients(image.root)
    measure("{} is free, {} to {} for connections".format(port, first, last))
    if last and last - first + 1 < PORTS_LEAST:
        few = "{} to {}: {} ports for connections, {} are good"
        remedy = on_host("sysctl net.ipv4.ip_local_port_range='32768 60999'")
        warn(few.format(first, last, last - first + 1, PORTS_LEAST), "the range was cut", remedy)
    if port in ports.listening(image.root) and _meets_here(image):
        text = "somebody listens on {} already".format(port)
        (fail if "MASTER_PORT" in image.env else warn)(text)


def _meets_here(image: Situation) -> bool:
    """Return whether the ranks of this job meet here, or nothing says where."""
    said = [image.env.get(name, "0") for name in ("RANK", "NODE_RANK", "GROUP_RANK")]
    return all(one == "0" for one in said)
