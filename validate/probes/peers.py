"""Visit the other containers of a job over ssh, as mpirun does."""

from concurrent.futures import ThreadPoolExecutor
from typing import Dict, List, NamedTuple, Sequence, Tuple

from validate.probes.ssh import answer_of
from validate.process import Result, run

SECONDS = 20.0
OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=5")
AT_A_TIME = 16

FACTS = """\
echo imagegen-answer
echo host=$(hostname)
echo image=$(sha256sum /etc/imagegen/image.json 2> /dev/null | cut -d' ' -f1)
echo PATH=$PATH
echo LD_LIBRARY_PATH=$LD_LIBRARY_PATH
echo memlock=$(ulimit -l)
echo nofile=$(ulimit -n)
echo daemon=$(command -v {daemon})
echo imagegen-answer
"""
"""Runs without a login shell, as mpirun's daemon does. The marks are those of ssh.answer_of."""

ALLREDUCE = """
import sys
import torch
import horovod.torch as hvd
hvd.init()
total = hvd.allreduce(torch.tensor([hvd.rank() + 1.0]), op=hvd.Sum, name="imagegen.peers")
sys.stdout.write("sum rank %d of %d is %.1f\\n" % (hvd.rank(), hvd.size(), float(total[0])))
sys.stdout.flush()
"""


class Peer(NamedTuple):
    """Hold how the visit to another container went, and what that container said."""

    name: str
    result: Result
    facts: Dict[str, str]


def ask_peer(name: str, script: str, seconds: float = SECONDS) -> Tuple[Result, Dict[str, str]]:
    """Log in to a peer and run a script there; the port is the one in the image's ssh_config.

    ssh may not ask for anything, such as a password. The facts are the lines `name=value` between
    the marks that the script prints.
    """
    result = run(["ssh", *OPTIONS, name, script], seconds)
    lines = [line.partition("=") for line in answer_of(result.out).splitlines()]
    return result, {key: value for key, equals, value in lines if equals}


def visit(name: str, daemon: str) -> Peer:
    """Log in to a peer and ask for its facts."""
    return Peer(name, *ask_peer(name, FACTS.format(daemon=daemon)))


def visit_all(names: Sequence[str], daemon: str) -> List[Peer]:
    """Visit every peer, several at a time: one that does not answer takes seconds."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(lambda name: visit(name, daemon), names))


def here(daemon: str) -> Dict[str, str]:
    """Return the same facts of this container, as its own processes see them."""
    result = run(["bash", "-c", FACTS.format(daemon=daemon)], SECONDS)
    lines = [line.partition("=") for line in answer_of(result.out).splitlines()]
    return {key: value for key, equals, value in lines if equals}


def differing(mine: Dict[str, str], peers: Sequence[Peer], names: Sequence[str]) -> List[str]:
    """Say in words which facts of the peers differ from those of this container."""
    found = []
    for peer in peers:
        for name in names:
            there = peer.facts.get(name, "")
            if there != mine.get(name, ""):
                text = "{} is `{}` on {}, `{}` here"
                found.append(text.format(name, there, peer.name, mine.get(name, "")))
    return found
