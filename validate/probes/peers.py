"""The other containers of a job, over ssh as mpirun reaches them."""

from concurrent.futures import ThreadPoolExecutor
from typing import Dict, List, NamedTuple, Sequence

from validate.process import Result, run

SECONDS = 20.0
AT_A_TIME = 16

FACTS = """\
echo host=$(hostname)
echo image=$(sha256sum /etc/imagegen/image.json 2> /dev/null | cut -d' ' -f1)
echo PATH=$PATH
echo LD_LIBRARY_PATH=$LD_LIBRARY_PATH
echo memlock=$(ulimit -l)
echo nofile=$(ulimit -n)
echo daemon=$(command -v {daemon})
"""
"""Asked without a login shell, as the daemon of mpirun is started."""

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
    """One other container: how the session went, and what it said of itself."""

    name: str
    result: Result
    facts: Dict[str, str]


def visit(name: str, daemon: str) -> Peer:
    """Log in without any question and ask. The port is that of the image's ssh_config."""
    options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=5"]
    result = run(["ssh", *options, name, FACTS.format(daemon=daemon)], SECONDS)
    lines = [line.partition("=") for line in result.out.splitlines()]
    return Peer(name, result, {key: value for key, equals, value in lines if equals})


def visit_all(names: Sequence[str], daemon: str) -> List[Peer]:
    """Every peer, several at a time: one that does not answer takes seconds, and there are many."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(lambda name: visit(name, daemon), names))


def here(daemon: str) -> Dict[str, str]:
    """The same facts of this container, as its own processes see them."""
    result = run(["bash", "-c", FACTS.format(daemon=daemon)], SECONDS)
    lines = [line.partition("=") for line in result.out.splitlines()]
    return {key: value for key, equals, value in lines if equals}


def differing(mine: Dict[str, str], peers: Sequence[Peer], names: Sequence[str]) -> List[str]:
    """In words what of some facts is another there than here."""
    found = []
    for peer in peers:
        for name in names:
            there = peer.facts.get(name, "")
            if there != mine.get(name, ""):
                text = "{} is `{}` on {}, `{}` here"
                found.append(text.format(name, there, peer.name, mine.get(name, "")))
    return found
