"""Start ranks that make a gloo group, with `torchrun` and without, and read what they say."""

import os
import re
import socket
from typing import Dict, List, NamedTuple, Tuple

from validate.fixtures import Situation
from validate.probes.interpreter import find_python
from validate.process import Result, run

PROGRAM = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "ranks", "all_reduce.py"
)
SECONDS = 100.0
"""Time limit of a launch. PyTorch was imported before, so the disk is not what takes long."""

TORCHRUN = ("torchrun",)
RANKS = 2
RENDEZVOUS = ("MASTER_ADDR", "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT")
"""Variables that name the host where the ranks of a job meet; the last one has a port too."""
FIRST_TORCHRUN = (1, 10)
"""The release of PyTorch that brought `torchrun`."""

OF_A_JOB = re.compile(
    r"(PET|TORCHELASTIC)_|(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE|ROLE_NAME)$|MASTER_(ADDR|PORT)$"
)
"""Variables that place a rank in a job. The ranks here are a job of their own."""

LINE = re.compile(r"ddp rank (\d+) of (\d+) sum (\S+) torch (.+)")
ERROR = re.compile(
    r"^(?:\[\S+\]:?\s*)*(?:[\w.]+\.)?(\w+(?:Error|Exception|Interrupt): \S.*)", re.MULTILINE
)
ONLY_REPORTS = ("ChildFailedError", "RendezvousConnectionError")
"""Errors in which `torchrun` reports another one, which it printed before."""


class Group(NamedTuple):
    """Hold what the ranks of a group said: its line for each, and why there is not one of each."""

    ranks: Tuple[str, ...]
    torch: Tuple[str, ...]
    problem: str

    @property
    def ok(self) -> bool:
        """Return whether each rank got the right sum."""
        return not self.problem


def by_torchrun(image: Situation) -> Group:
    """Start ranks as a user does, once in a run: `torchrun --nproc_per_node 2 FILE`."""
    argv = [*TORCHRUN, "--nproc_per_node", str(RANKS), "--master_port", str(free_port())]
    env = own_job(image.env)
    found: Group = image.once("torchrun", lambda: _read(run([*argv, PROGRAM], SECONDS, env), RANKS))
    return found


def alone(image: Situation) -> Group:
    """Start one rank without a launcher, once in a run."""
    python = find_python(image.env, image.expected)
    own = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    env = dict(own_job(image.env), MASTER_PORT=str(free_port()), **own)
    found: Group = image.once(
        "one rank", lambda: _read(run([python, PROGRAM], SECONDS, env), ranks=1)
    )
    return found


def has_torchrun(version: str) -> bool:
    """Return whether a release of PyTorch brings `torchrun`."""
    parts = re.match(r"(\d+)\.(\d+)", version)
    return parts is None or (int(parts.group(1)), int(parts.group(2))) >= FIRST_TORCHRUN


def own_job(env: Dict[str, str], threads: str = "1") -> Dict[str, str]:
    """Return an environment without what places a rank in the job that the container belongs to.

    `threads` is for each rank, if the environment does not say; empty leaves it open.
    """
    kept = {name: value for name, value in env.items() if not OF_A_JOB.match(name)}
    if threads:
        kept.setdefault("OMP_NUM_THREADS", threads)
    return kept


def unresolved(env: Dict[str, str]) -> List[Tuple[str, str]]:
    """List what names a host of the rendezvous that leads to no address, with that host.

    `torchrun --standalone` meets at localhost.
    """
    asked = [("", "localhost"), *((name, _host(env.get(name, ""))) for name in RENDEZVOUS)]
    return [(name, host) for name, host in asked if host and not _resolves(host)]


def _host(endpoint: str) -> str:
    """Return the host of `host`, `host:29400`, `[::1]:29400` or `::1`."""
    bracketed = re.match(r"\[(.+)\]", endpoint)
    if bracketed:
        return bracketed.group(1)
    return endpoint if endpoint.count(":") > 1 else endpoint.partition(":")[0]


def _resolves(host: str) -> bool:
    try:
        return bool(socket.getaddrinfo(host, None))
    except OSError:
        return False


def free_port() -> int:
    """Return a port on which nobody listens: another job may have the usual one."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _read(result: Result, ranks: int) -> Group:
    lines = [match.groups() for match in LINE.finditer(result.out)]
    said = tuple("rank {} of {}: sum {}".format(*one[:3]) for one in sorted(lines))
    torch = tuple(sorted({one[3].strip() for one in lines}))
    total = str(ranks * (ranks + 1) // 2)
    right = sorted(one[:3] for one in lines) == [(str(r), str(ranks), total) for r in range(ranks)]
    if not result.ok:
        return Group(said, torch, first_error(result))
    return Group(said, torch, "" if right else "; ".join(said) or "the ranks said nothing")


def first_error(result: Result) -> str:
    """Return the first error that a rank or the launcher printed, else how it ended."""
    if result.timed_out:
        return result.says()
    errors: List[str] = ERROR.findall(result.out + "\n" + result.err)
    first = [one for one in errors if not one.startswith(ONLY_REPORTS)]
    return first[0] if first else result.says()
