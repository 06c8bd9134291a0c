"""Test ranks of torch.distributed on two and three hosts, in an image without Horovod."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from one_job import one_job
from running_image import said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.mark import ParameterSet

    from imagegen.engine.client import Engine
    from imagegen.engine.containers.containers import Container

NAMES = ("one", "two", "three")
COLLECTIVES = "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py"
WRONG = """

_first = all_reduce
def all_reduce(tensor, *rest, **more):
    done = _first(tensor, *rest, **more)
    if tensor.numel() > 1000:
        tensor += 1
    return done
"""
WITHOUT_MPI = """
import json
path = "/etc/imagegen/image.json"
data = json.load(open(path))
for name in ("openmpi", "horovod"):
    data["components"].pop(name, None)
    data["suites"] = [suite for suite in data["suites"] if suite != name]
del data["cell"]
json.dump(data, open(path, "w"))
"""
LAUNCH = "mpirun -np 3 -H two:1,three:1,one:1 --allow-run-as-root --bind-to none -mca pml ob1"
SCRIPT = "/examples/pytorch_synthetic_benchmark.py"


@pytest.fixture(scope="module")
def hosts(engine: Engine, cpu_family: dict[str, str]) -> Iterator[list[Container]]:
    with one_job(engine, cpu_family["debian13-none"], NAMES) as containers:
        yield containers


def found(container: Container, suites: str, peers: str, **env: str) -> dict[str, Any]:
    """Return the results of some suites in a container, by id."""
    variables = [f"{name}={value}" for name, value in env.items()]
    argv = ["env", *variables, "validate", "--only", suites, "--peers", peers, "--json", "-"]
    end = container.exec(argv, 400)
    assert end.code in (0, 1), end.out + end.err
    return {one["id"]: one for one in json.loads(end.out)["checks"]}


def failed(checks: dict[str, Any]) -> list[str]:
    return [name for name, one in checks.items() if one["outcome"] in ("failed", "error")]


def test_ranks_of_mpirun_are_one_job(hosts: list[Container]) -> None:
    checks = found(hosts[0], "peers", "one,two,three")
    assert failed(checks) == []
    assert checks["peers.ranks"]["measured"] == "3 ranks on one, three, two"
    said_of = checks["peers.allreduce"]["measured"]
    assert said_of.startswith("gloo: ")
    assert said_of.endswith(" exchanges right on each of 3 ranks")


def test_wrong_sums_on_one_host_are_named_with_that_host(hosts: list[Container]) -> None:
    right = said(hosts[1], "cat", COLLECTIVES)
    hosts[1].write_file(COLLECTIVES, (right + WRONG).encode(), 0o644)
    try:
        checks = found(hosts[0], "peers", "two,three")
    finally:
        hosts[1].write_file(COLLECTIVES, right.encode(), 0o644)
    assert failed(checks) == ["peers.allreduce"]
    assert (
        "on two: all_reduce float32 x1021: 7.0 at 0, not 6" in checks["peers.allreduce"]["measured"]
    )
    assert "on three" not in checks["peers.allreduce"]["measured"]


def long(*case: str) -> ParameterSet:
    return pytest.param(*case, marks=pytest.mark.long)


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("GLOO_SOCKET_IFNAME", "lo", "two does not reach this host at lo (127.0.0.1)"),
        long("GLOO_SOCKET_IFNAME", "eth0,eth7", "eth7, which is not one"),
        long("NCCL_SOCKET_IFNAME", "^eth", "two does not reach this host at lo (127.0.0.1)"),
        long("NCCL_SOCKET_IFNAME", "=eth", "names none of the interfaces"),
        long("GLOO_SOCKET_IFNAME", "eth0", ""),
        long("NCCL_SOCKET_IFNAME", "^lo,docker0", ""),
    ],
)
def test_an_interface_that_leads_to_the_peers_or_nowhere(
    hosts: list[Container], setting: str, value: str, says: str
) -> None:
    checks = found(hosts[0], "torch", "two", **{setting: value})
    assert failed(checks) == (["ddp.iface"] if says else [])
    assert says in checks["ddp.iface"]["measured"]
    if says:
        remedy = checks["ddp.iface"]["remedy"]
        assert remedy.startswith((f"export {setting}=eth0 ", f"unset {setting}; "))


def test_the_line_of_the_documents_finds_its_ranks(hosts: list[Container]) -> None:
    """Rank 0 is not where mpirun is, and nobody says where the ranks meet."""
    options = "--model=small --batch-size=4 --length=quick --allreduce"
    out = said(hosts[0], "sh", "-c", f"{LAUNCH} python3 {SCRIPT} {options}", seconds=300)
    lines = out.splitlines()
    sums = sorted(line for line in lines if line.startswith("Allreduce: "))
    assert sums == [f"Allreduce: rank {rank} of 3 sum 6.0" for rank in range(3)]
    assert sum(line.startswith("Total img/sec on 3 CPU(s): ") for line in lines) == 1


@pytest.mark.parametrize("cell", [long("debian12-none"), "debian13-none"])
def test_ranks_of_torchrun_where_there_is_no_open_mpi(
    engine: Engine, cpu_family: dict[str, str], cell: str
) -> None:
    with one_job(engine, cpu_family[cell], ("left", "right")) as pair:
        for one in pair:
            said(one, "python3", "-c", WITHOUT_MPI)
        checks = found(pair[0], "peers", "right")
        benchmark = ("--only", "benchmark", "--ranks", "2", "--via", "ddp")
        out = said(pair[0], "validate", *benchmark, seconds=300)
    assert failed(checks) == []
    assert checks["peers.daemon"]["reason"] == "not-in-recipe"
    assert checks["peers.ranks"]["measured"] == "2 ranks on left, right"
    assert checks["peers.allreduce"]["outcome"] == "passed"
    assert "2 ranks through DDP" in out
