"""Start ranks that do every collective of torch.distributed, and read what each of them says."""

import json
import os
import re
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from validate.fixtures import Situation
from validate.probes import mpi, process_group
from validate.probes.interpreter import find_python
from validate.process import Result, run

PROGRAM = os.path.join(os.path.dirname(process_group.PROGRAM), "collectives.py")
LARGEST, LARGEST_FAR = 1 << 18, 65537
"""The most elements of a message, between ranks of one host and between hosts."""
SECONDS = 100.0
LINE = re.compile(r"ddp-collectives (\{.*?\})\s*$", re.MULTILINE)
MOST_SAID = 3
GLOO, NCCL = "gloo", "nccl"


class Exchange(NamedTuple):
    """Hold what the ranks of an exchange saw: in words, what is wrong, what the backend lacks."""

    measured: str
    problem: str
    hosts: Tuple[str, ...] = ()


def program(python: str, backend: str, largest: int) -> List[str]:
    """Return the command of a rank."""
    return [python, PROGRAM, backend, str(largest)]


def on_this_host(image: Situation, backend: str, ranks: int) -> Exchange:
    """Exchange between ranks of this host, under mpirun where there is one, else torchrun.

    mpirun says to each rank which one it is; where they meet it does not say.
    """
    port = str(process_group.free_port())
    env = process_group.own_job(image.env)
    command = program(find_python(image.env, image.expected), backend, LARGEST)
    if image.expected.has("openmpi"):
        env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        prefix = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
        argv = mpi.launch(prefix, ranks, command, env)
    else:
        own = ["--nproc_per_node", str(ranks), "--master_port", port]
        argv = [*process_group.TORCHRUN, *own, *command[1:]]
    return read(run(argv, SECONDS, env), ranks)


def read(result: Result, ranks: int) -> Exchange:
    """Read the line of each rank; every rank has to be there, and to have seen nothing wrong."""
    said = sorted(_lines(result.out), key=lambda one: int(one.get("rank", -1)))
    wrong = ["rank {}: {}".format(one["rank"], text) for one in said for text in one["wrong"]]
    hosts = tuple(sorted({str(one["host"]) for one in said}))
    if wrong:
        more = sum(int(one["count"]) for one in said) - MOST_SAID
        rest = ["and {} more".format(more)] if more > 0 else []
        return Exchange("", "; ".join([*_of_each_rank(wrong), *rest]), hosts)
    if not result.ok:
        return Exchange("", process_group.why(result), hosts)
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
