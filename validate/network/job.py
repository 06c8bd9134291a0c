"""Open a job for a measurement: log in everywhere, choose the transport, count the ranks."""

import os
import shutil
from typing import Any, Dict, List, NamedTuple, Union

from validate.expected import Expected
from validate.network.cluster import Cluster, interpreters
from validate.network.refused import Refused
from validate.network.transport import MpiRuns, TorchRuns, choose_transport, library_of, load_torch
from validate.probes.interpreter import find_python

DEFAULT_PREFIX = "/usr/local/openmpi"
RANKS_ALONE = 2
"""Ranks on the processor where no number is given and there is only this host."""


class Job(NamedTuple):
    """Hold what a measurement needs; `lost` are hosts of the list that cannot be used, and why."""

    runs: Union[TorchRuns, MpiRuns]
    hosts: List[str]
    facts: Dict[str, Dict[str, Any]]
    lost: Dict[str, str]


def names_of(text: str) -> List[str]:
    """Return the names of a list that commas separate."""
    return [name.strip() for name in text.split(",") if name.strip()]


def start_agents(arguments: Any, expected: Expected) -> Cluster:
    """Start the agents of a job, here and on every peer."""
    env = dict(os.environ)
    python = find_python(env, expected)
    pythons = interpreters(python)
    if not shutil.which(python):
        pythons = pythons[1:]
    return Cluster(names_of(arguments.peers), pythons, env)


def open_job(cluster: Cluster, arguments: Any, expected: Expected) -> Job:
    """Choose what moves the data between the hosts that answered. Raises Refused."""
    prefix = str(expected.fact("openmpi", "prefix", DEFAULT_PREFIX))
    if arguments.over != "mpi":
        load_torch(cluster)
    _leave_launcher_out(cluster, arguments)
    facts = {name: cluster.facts(name) for name in cluster.names()}
    if not facts:
        raise Refused("no host can be used", "name others: validate --peers HOST1,HOST2")
    via = choose_transport(arguments.over, facts, os.access(prefix + "/bin/mpirun", os.X_OK))
    counts = {name: _ranks(name, arguments.ranks, via, facts) for name in facts}
    if via != "mpi":
        return Job(TorchRuns(cluster, via, counts), list(facts), facts, cluster.lost)
    pythons = {one["python"] for one in facts.values()}
    if len(pythons) > 1:
        text = "the Pythons of the hosts differ: {}".format(", ".join(sorted(pythons)))
        raise Refused(text, "start every host from one image, or use --over gloo")
    program = [pythons.pop(), "-I", "-S"]
    runs = MpiRuns(counts, program, prefix, library_of(prefix), dict(os.environ))
    return Job(runs, list(facts), facts, cluster.lost)


def _leave_launcher_out(cluster: Cluster, arguments: Any) -> None:
    """Use this host only to start the others, if they have GPUs and it has none."""
    others = [name for name in cluster.names() if name != cluster.me]
    named = cluster.me in names_of(arguments.peers)
    if named or not others or cluster.facts(cluster.me)["gpus"]:
        return
    if all(cluster.facts(name)["gpus"] for name in others):
        cluster.leave_out(cluster.me)


def _ranks(name: str, asked: int, via: str, facts: Dict[str, Dict[str, Any]]) -> int:
    """Return the ranks of a host: as many as were asked for, else one for each GPU."""
    if via != "nccl":
        return asked if asked > 1 or len(facts) > 1 else RANKS_ALONE
    gpus = int(facts[name]["loaded"]["gpus"])
    if asked > gpus:
        text = "{} ranks for the {} GPUs of {}: NCCL takes one GPU for each rank"
        raise Refused(text.format(asked, gpus, name), "validate --bandwidth --over gloo")
    return asked if asked > 1 else gpus


def described(job: Job) -> Dict[str, Any]:
    """Return what was measured on: hosts, machines, GPUs, NCCL, transport and ranks."""
    first = job.facts[job.hosts[0]]
    loaded = [one.get("loaded") or {} for one in job.facts.values()]
    on_gpu = job.runs.via == "nccl"
    return {
        "transport": job.runs.via,
        "hosts": list(job.hosts),
        "machines": sorted(one["machine"] for one in job.facts.values()),
        "ranks": sorted(job.runs.counts[name] for name in job.hosts),
        "gpus": sorted(model for one in loaded for model in one.get("models", ()))
        if on_gpu
        else [],
        "nccl": loaded[0].get("nccl", "") if on_gpu else "",
        "torch": "" if job.runs.via == "mpi" else loaded[0].get("version", ""),
        "processor": first["processor"],
    }
