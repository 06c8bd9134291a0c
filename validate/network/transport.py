"""Choose what moves the data, NCCL, gloo or MPI, and run groups of hosts over it."""

import contextlib
import json
import os
import re
import tempfile
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from validate.network import sweep
from validate.network.cluster import Cluster, variables_of_ranks
from validate.network.measured import Gathered, Row, Run
from validate.network.options import TRANSPORTS
from validate.network.refused import Refused
from validate.probes.mpi import launch
from validate.process import RunningCommand

LOAD_SECONDS, PORT_SECONDS, MORE_SECONDS = 200.0, 10.0, 10.0

Group = Tuple[str, ...]
OnRow = Callable[[Group, Row], None]


class Effort(NamedTuple):
    """Hold how much is measured.

    `pace` are the seconds for all sizes and for one of them; a run is ended at the `limit`.
    """

    sizes: Sequence[int]
    pace: Tuple[float, float]
    limit: float


class TorchRuns:
    """Run groups with the agents; `counts` are the ranks of each host."""

    def __init__(self, cluster: Cluster, via: str, counts: Dict[str, int]) -> None:
        self.cluster, self.via, self.counts = cluster, via, counts
        self._number = 0

    def measure(self, groups: Sequence[Group], effort: Effort, on_row: OnRow) -> List[Run]:
        """Run groups at once: no host is in two of them."""
        self._number += 1
        heads = [group[0] for group in groups]
        ports = self.cluster.ask(
            heads, {name: {"do": "port"} for name in heads}, _is("port"), PORT_SECONDS
        )
        collectors, commands, group_of = [], {}, {}
        for group in groups:
            collector = Gathered(group, [self.counts[name] for name in group])
            collectors.append(collector)
            if group[0] not in ports:
                collector.fault(group[0], self.cluster.lost[group[0]])
                continue
            first = 0
            for name in group:
                commands[name] = self._command(name, group[0], ports, collector, first, effort)
                group_of[name] = collector
                first += self.counts[name]

        def take(name: str, said: Dict[str, Any]) -> None:
            if said.get("run") == self._number and name in group_of:
                for row in group_of[name].take(said):
                    on_row(group_of[name].hosts, row)

        self._ask(commands, group_of, effort, take)
        return [one.run(effort.sizes) for one in collectors]

    def _ask(
        self, commands: Dict[str, Any], group_of: Dict[str, Gathered], effort: Effort, take: Any
    ) -> None:
        number = self._number
        answers = self.cluster.ask(
            list(commands),
            commands,
            lambda said: bool(said.get("ended")) and said.get("run") == number,
            effort.limit + MORE_SECONDS,
            take,
        )
        for name in commands:
            problem = answers.get(name, {}).get("problem") or self.cluster.lost.get(name, "")
            if problem:
                group_of[name].fault(name, problem)

    def _command(
        self,
        name: str,
        head: str,
        ports: Dict[str, Any],
        collector: Gathered,
        first: int,
        effort: Effort,
    ) -> Dict[str, Any]:
        return {
            "do": "run",
            "run": self._number,
            "via": self.via,
            "first": first,
            "ranks": self.counts[name],
            "world": collector.world,
            "address": self.cluster.address(head),
            "port": ports[head]["port"],
            "sizes": list(effort.sizes),
            "pace": effort.pace,
            "limit": effort.limit,
        }


class MpiRuns:
    """Run groups with mpirun; `program` is the Python that every host has."""

    via = "mpi"

    def __init__(
        self,
        counts: Dict[str, int],
        program: Sequence[str],
        prefix: str,
        library: str,
        env: Dict[str, str],
    ) -> None:
        self.counts, self._program, self._prefix = counts, program, prefix
        self._library, self._env = library, env

    def measure(self, groups: Sequence[Group], effort: Effort, on_row: OnRow) -> List[Run]:
        """Run groups at once: no host is in two of them.

        Each mpirun has a folder of its own: two that start at once may trip over each other.
        """
        with contextlib.ExitStack() as folders:
            started = []
            for group in groups:
                folder = folders.enter_context(tempfile.TemporaryDirectory(prefix="ompi."))
                env = dict(self._env, TMPDIR=folder)
                argv = self.command(group, effort)
                started.append((group, RunningCommand(argv, effort.limit, env)))
            return [self._read(*one, effort, on_row) for one in started]

    def command(self, group: Group, effort: Effort) -> List[str]:
        """Return the command line of mpirun for a group."""
        text = _source()
        rank = [*self._program, "-c", text, self._library, json.dumps(list(effort.sizes))]
        names = [
            name
            for name in variables_of_ranks(self._env)
            if name not in ("LD_LIBRARY_PATH", "PATH")
        ]
        ranks = sum(self.counts[name] for name in group)
        rank = ["-mca", "mpi_yield_when_idle", "1", *rank]
        argv = launch(self._prefix, ranks, [*rank, json.dumps(effort.pace)], self._env, names)
        if len(self.counts) > 1:
            argv[1:1] = ["-H", ",".join("{}:{}".format(n, self.counts[n]) for n in group)]
        return argv

    def _read(self, group: Group, command: RunningCommand, effort: Effort, on_row: OnRow) -> Run:
        collector = Gathered(group, [self.counts[name] for name in group])

        def take(line: str) -> None:
            if line.startswith(sweep.MARK):
                said = json.loads(line[len(sweep.MARK) :])
                if said["world"] != collector.world:
                    collector.fault("", "each rank is alone: another MPI starts the ranks")
                    return
                for row in collector.take(said):
                    on_row(group, row)

        result = command.result(take)
        if not result.ok:
            collector.fault("", result.says())
        return collector.run(effort.sizes)


def _source() -> str:
    import inspect

    return inspect.getsource(sweep)


def _is(name: str) -> Callable[[Dict[str, Any]], bool]:
    return lambda said: name in said


def load_torch(cluster: Cluster) -> None:
    """Import PyTorch on every host that has it, and add what it says to the facts."""
    names = [name for name in cluster.names() if cluster.facts(name)["torch"]]
    answers = cluster.ask(
        names, {name: {"do": "load"} for name in names}, _is("loaded"), LOAD_SECONDS
    )
    for name, said in answers.items():
        cluster.facts(name).update(loaded=said["loaded"], problem=said["problem"])


def has(facts: Dict[str, Any], via: str) -> bool:
    """Return whether a host can move data over this transport with PyTorch."""
    said = facts.get("loaded") or {}
    return bool(said.get("gloo")) if via == "gloo" else bool(said.get("nccl") and said.get("gpus"))


def lacking_for(facts: Dict[str, Any], via: str) -> str:
    """Say why a host cannot."""
    if not facts.get("torch"):
        return "no PyTorch"
    if facts.get("problem"):
        return str(facts["problem"])
    said = facts.get("loaded") or {}
    if via == "nccl" and not said.get("gpus"):
        return "PyTorch sees no GPU"
    return "this PyTorch was built without {}".format("NCCL" if via == "nccl" else via)


def choose_transport(asked: str, facts: Dict[str, Dict[str, Any]], mpi: bool) -> str:
    """Return the transport that was asked for, or the first that all hosts have.

    Raises Refused if a host lacks it.
    """
    for via in TRANSPORTS[:2] if asked == "auto" else (asked,):
        if via != "mpi" and all(has(one, via) for one in facts.values()):
            return via
    if asked in ("auto", "mpi") and mpi:
        return "mpi"
    via = {"auto": "gloo"}.get(asked, asked)
    if asked == "mpi":
        raise Refused("there is no Open MPI here", "validate --bandwidth --over gloo")
    lacking = [
        "{}: {}".format(name, lacking_for(one, via))
        for name, one in facts.items()
        if not has(one, via)
    ]
    other = "--over gloo" if via == "nccl" else "--over mpi"
    hint = "validate --bandwidth " + other if asked != "auto" else "install PyTorch or Open MPI"
    raise Refused("no all_reduce over {}: {}".format(via, "; ".join(lacking)), hint)


def library_of(prefix: str) -> str:
    """Return the library of Open MPI below a prefix, else its name for the loader."""
    for folder in (prefix + "/lib", prefix + "/lib64"):
        there = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        found = [name for name in there if re.match(r"libmpi\.so(\.\d+)?$", name)]
        if found:
            return os.path.join(folder, found[-1])
    return "libmpi.so.40"
