"""Start ranks that do every collective of torch.distributed, and read what each of them says."""

import json
import os
import re
from shlex import quote
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from validate.fixtures import Situation
from validate.probes import mpi, peers, process_group, rank_interfaces
from validate.probes.interpreter import find_python
from validate.process import Result, RunningCommand, run

PROGRAM = os.path.join(os.path.dirname(process_group.PROGRAM), "collectives.py")
LARGEST, LARGEST_FAR = 1 << 18, 65537
"""The most elements of a message, between ranks of one host and between hosts."""
SECONDS = 100.0
LINE = re.compile(r"ddp-collectives (\{.*?\})\s*$", re.MULTILINE)
MOST_SAID = 3
FORWARDED = ("NCCL_", "GLOO_", "MASTER_", "TP_")
ALWAYS_FORWARDED = ("PATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS")
"""Variables that ranks on other hosts get, by how they begin or by their names."""
WRONG = re.compile(r" at \d+, not |: gradients ")
"""How a rank says that it got other numbers than it should."""
GLOO, NCCL = "gloo", "nccl"


class Exchange(NamedTuple):
    """Hold what the ranks of an exchange saw: in words, what is wrong, what the backend lacks."""

    measured: str
    problem: str
    hosts: Tuple[str, ...] = ()


def rank_command(python: str, backend: str, largest: int) -> List[str]:
    """Return the command of a rank."""
    return [python, PROGRAM, backend, str(largest)]


def on_this_host(image: Situation, backend: str, ranks: int) -> Exchange:
    """Exchange between ranks of this host, under mpirun where there is one, else torchrun.

    mpirun says to each rank which one it is; where they meet it does not say.
    """
    port = str(process_group.free_port())
    env = process_group.own_job(image.env)
    command = rank_command(find_python(image.env, image.expected), backend, LARGEST)
    if image.expected.has("openmpi"):
        env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        prefix = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
        argv = mpi.launch(prefix, ranks, command, env)
    else:
        own = ["--nproc_per_node", str(ranks), "--master_port", port]
        argv = [*process_group.TORCHRUN, *own, *command[1:]]
    return read_ranks(run(argv, SECONDS, env), ranks)


def between_hosts(image: Situation, hosts: Sequence[str], backend: str) -> Exchange:
    """Exchange between ranks on several hosts, one on each; the first host is this one.

    mpirun starts them where there is Open MPI, else torchrun on each host, over ssh.
    """
    command = rank_command(find_python(image.env, image.expected), backend, LARGEST_FAR)
    address, port = rendezvous(hosts), str(process_group.free_port())
    env = dict(process_group.own_job(image.env), MASTER_ADDR=address, MASTER_PORT=port)
    if image.expected.has("openmpi"):
        names = sorted(name for name in env if name.startswith(FORWARDED))
        prefix = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
        argv = mpi.launch(prefix, len(hosts), command, env, names)
        argv[1:1] = ["-H", ",".join(name + ":1" for name in hosts)]
        return read_ranks(run(argv, SECONDS, env), len(hosts))
    return read_ranks(torchrun_on_hosts(image, hosts, command[1:]), len(hosts))


def torchrun_on_hosts(image: Situation, hosts: Sequence[str], program: Sequence[str]) -> Result:
    """Start torchrun on every host at the same time, over ssh, and join what all of them say.

    As mpirun does, it gives the ranks of other hosts the PATH of this one.
    """
    meet = ["--master_addr", rendezvous(hosts), "--master_port", str(process_group.free_port())]
    env = process_group.own_job(image.env)
    started = []
    for number, host in enumerate(hosts):
        place = ["--nnodes", str(len(hosts)), "--node_rank", str(number), "--nproc_per_node", "1"]
        argv = [*process_group.TORCHRUN, *place, *meet, *program]
        if number:
            kept = [n for n in sorted(env) if n.startswith(FORWARDED) or n in ALWAYS_FORWARDED]
            line = ["env", *("{}={}".format(name, env[name]) for name in kept), *argv]
            argv = ["ssh", *peers.OPTIONS, host, " ".join(map(quote, line))]
        started.append(RunningCommand(argv, SECONDS, env))
    ended = [one.result() for one in started]
    worst = next((one for one in ended if not one.ok), ended[0])
    out, err = "\n".join(one.out for one in ended), "\n".join(one.err for one in ended)
    return worst._replace(out=out, err=err)


def rendezvous(hosts: Sequence[str]) -> str:
    """Return the address of this host, the first one, at which the others reach it."""
    ways = [rank_interfaces.address_towards(host) for host in hosts[1:]]
    found = list(dict.fromkeys(filter(None, ways)))
    if len(found) > 1:
        seen = rank_interfaces.seen_from(hosts[1:], found)
        found.sort(key=lambda one: sum(one not in peer.reached for peer in seen))
    return found[0] if found else hosts[0]


def read_ranks(result: Result, ranks: int) -> Exchange:
    """Read the line of each rank; every rank has to be there, and to have seen nothing wrong."""
    said = sorted(_lines(result.out), key=lambda one: int(one.get("rank", -1)))
    hosts = tuple(sorted({str(one["host"]) for one in said}))
    label = "rank {rank} on {host}: " if len(hosts) > 1 else "rank {rank}: "
    wrong = [label.format(**one) + text for one in said for text in one["wrong"]]
    if wrong:
        more = sum(int(one["count"]) for one in said) - MOST_SAID
        rest = ["and {} more".format(more)] if more > 0 else []
        return Exchange("", "; ".join([*_of_each_rank(wrong), *rest]), hosts)
    if not result.ok:
        return Exchange("", process_group.first_error(result), hosts)
    if [(one["rank"], one["ranks"]) for one in said] != [(r, ranks) for r in range(ranks)]:
        seen = ["rank {} of {}".format(one["rank"], one["ranks"]) for one in said]
        text = "{} ranks were started, these answered: {}"
        return Exchange("", text.format(ranks, ", ".join(seen) or "none"), hosts)
    return Exchange(_words(said), "", hosts)


def _lines(text: str) -> List[Dict[str, Any]]:
    found = []
    for line in LINE.findall(text):
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _of_each_rank(wrong: Sequence[str]) -> List[str]:
    """Choose what is said: the first finding of each rank, then others."""
    firsts = [one for i, one in enumerate(wrong) if one.split(":")[0] not in
              {before.split(":")[0] for before in wrong[:i]}]  # fmt: skip
    return [*firsts, *(one for one in wrong if one not in firsts)][:MOST_SAID]


def _words(said: Sequence[Dict[str, Any]]) -> str:
    first = said[0]
    lacks = "; {} lacks {}".format(first["backend"], ", ".join(first["lacks"]))
    text = "{}: {} exchanges right on each of {} ranks{}"
    return text.format(first["backend"], first["done"], len(said), lacks if first["lacks"] else "")
