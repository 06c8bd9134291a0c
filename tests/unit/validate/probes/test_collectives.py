"""Test how the lines of ranks are read, and the numbers that each of them compares with."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from unit.validate import trees
from validate.fixtures import Situation
from validate.probes import collectives, process_group, rank_interfaces
from validate.process import Result

if TYPE_CHECKING:
    from pathlib import Path


def line(rank: int, ranks: int = 2, **changes: Any) -> str:
    facts = {"rank": rank, "ranks": ranks, "done": 9, "host": "a", "wrong": [], "count": 0}
    facts |= {"lacks": [], "backend": "gloo"} | changes
    return f"[1,{rank}]<stdout>: noise\nddp-collectives {json.dumps(facts)}\n"


def read(*lines: str, code: int = 0, err: str = "") -> collectives.Exchange:
    return collectives.read_ranks(Result(["mpirun"], code, "".join(lines), err), 2)


def test_every_rank_that_saw_nothing_wrong() -> None:
    found = read(line(1), line(0))
    assert (found.measured, found.problem) == ("gloo: 9 exchanges right on each of 2 ranks", "")
    found = read(line(0, lacks=["reduce_scatter"]), line(1, lacks=["reduce_scatter"]))
    assert found.measured.endswith("each of 2 ranks; gloo lacks reduce_scatter")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([line(0)], "2 ranks were started, these answered: rank 0 of 2"),
        ([line(0, 1), line(0, 1)], "these answered: rank 0 of 1, rank 0 of 1"),
        ([], "these answered: none"),
        (["ddp-collectives {broken}\n"], "these answered: none"),
    ],
)
def test_a_rank_that_is_missing_or_alone_is_a_problem(lines: list[str], says: str) -> None:
    assert says in read(*lines).problem


def test_wrong_numbers_name_each_rank_first_and_its_host() -> None:
    many = [f"all_reduce float32 x{size}: 4.0 at 0, not 3" for size in (1, 7, 1021)]
    found = read(line(0, wrong=many, count=9), line(1, wrong=many[:1], count=1))
    assert found.problem.startswith("rank 0: all_reduce float32 x1: 4.0 at 0, not 3; rank 1: ")
    assert found.problem.endswith("; and 7 more")
    assert collectives.WRONG.search(found.problem)
    found = read(line(0), line(1, wrong=many[:1], count=1, host="b"))
    assert found.problem == "rank 1 on b: all_reduce float32 x1: 4.0 at 0, not 3"


def test_ranks_that_did_not_end_well_say_the_first_error() -> None:
    found = read(code=1, err="Traceback\nRuntimeError: connect timed out\n")
    assert found.problem == "RuntimeError: connect timed out"
    assert not collectives.WRONG.search(found.problem)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Load the program of a rank beside a PyTorch that is made up."""
    torch = ModuleType("torch")
    kinds = ("float32", "float64", "int64", "int32", "uint8", "int8", "float16", "bfloat16")
    vars(torch).update({name: name for name in kinds}, distributed=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "torch", torch)
    spec = importlib.util.spec_from_file_location("of_a_rank", collectives.PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_sums_are_those_of_all_ranks_in_every_type(program: ModuleType) -> None:
    for ranks in (1, 2, 3, 40):
        rows = [program.given(rank, 12, "int64") for rank in range(ranks)]
        wanted = [sum(column) for column in zip(*rows, strict=True)]
        assert program.total(ranks, 12, "int64") == wanted
        assert program.total(ranks, 12, "uint8") == [one % 256 for one in wanted]
    assert len(set(program.given(0, 5, "int64"))) == 5  # a shifted result differs
    assert program.given(0, 7, "int64") != program.given(1, 7, "int64")


def test_a_narrow_type_holds_the_sums_of_as_many_ranks_as_give_numbers_in_it(
    program: ModuleType,
) -> None:
    """bfloat16 has 8 bits for a number, float16 has 11, int8 ends at 127."""
    for kind, largest in {"bfloat16": 256, "float16": 2048, "int8": 127}.items():
        for ranks in range(1, program.NARROW[kind] + 1):
            assert max(map(abs, program.total(ranks, 5, kind))) <= largest
        assert all(program.total(2, 5, kind))


class Whole(list[float]):
    """Stand in for a large tensor, of which slices are read."""

    def repeat(self, count: int) -> Whole:
        return Whole([*self] * count)

    def __getitem__(self, at: Any) -> Any:
        return SimpleNamespace(tolist=lambda: [*super(Whole, self).__getitem__(at)])


def test_every_type_is_exchanged_in_every_size_and_one_sum_is_larger_than_a_bucket(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, int]] = []
    one = program.Rank("gloo", 0, 2, None)

    def check(*exchange: Any) -> bool:
        asked.append(exchange)
        return True

    one.check = check
    larger: list[Any] = []
    monkeypatch.setattr(program, "sum_of_blocks", larger.append)
    monkeypatch.setattr(program, "gradients", lambda _: None)
    program.exchange(one, 1 << 18)
    assert {*asked} == {*itertools.product(program.COLLECTIVES, program.KINDS, program.SIZES)}
    assert larger == [one]
    assert program.BLOCK * program.BLOCKS * 4 > 25 << 20  # a bucket of DDP
    program.exchange(program.Rank("gloo", 0, 2, None), 0)
    assert larger == [one]
    asked.clear()
    one.ranks = 300
    program.exchange(one, 7)
    assert {kind for _, kind, _ in asked} == {*program.KINDS} - {"bfloat16", "int8"}


@pytest.mark.parametrize("broken", [None, 1, 14])
def test_the_place_of_a_wrong_element_in_a_large_sum(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, broken: int | None
) -> None:
    def add_up(whole: Whole) -> None:
        whole[:] = program.total(2, 5, "float32") * 3
        if broken is not None:
            whole[broken] = -1.0

    monkeypatch.setattr(program, "BLOCK", 5)
    monkeypatch.setattr(program, "BLOCKS", 3)
    monkeypatch.setattr(program.distributed, "all_reduce", add_up, raising=False)
    one = program.Rank("gloo", 0, 2, None)
    one.tensor = lambda values, _: Whole(values)
    program.sum_of_blocks(one)
    wanted = program.total(2, 15, "float32")
    said = [] if broken is None else [
        f"all_reduce float32 x15: -1.0 at {broken}, not {wanted[broken]}"
    ]  # fmt: skip
    assert (one.wrong, one.done) == (said, 1)


def one_rank(program: ModuleType, result: Any) -> Any:
    """Return a rank whose all_reduce gives a result, or raises it."""

    def pairs(*_: Any) -> Any:
        if isinstance(result, Exception):
            raise result
        return [(result, [3, 6])]

    vars(program)["COLLECTIVES"] = {"all_reduce": pairs, "reduce_scatter": pairs}
    return program.Rank("gloo", 0, 2, None)


def test_each_element_is_compared(program: ModuleType) -> None:
    one = one_rank(program, [3, 7])
    assert one.check("all_reduce", "int64", 2)
    assert one.wrong == ["all_reduce int64 x2: 7 at 1, not 6"]
    one = one_rank(program, [3])
    assert one.check("all_reduce", "int64", 2)
    assert one.wrong == ["all_reduce int64 x2: nothing at 1, not 6"]
    one = one_rank(program, [3, 6])
    assert one.check("all_reduce", "int64", 2)
    assert (one.wrong, one.done) == ([], 1)


def test_what_a_backend_lacks_is_no_wrong_number(program: ModuleType) -> None:
    said = RuntimeError("ProcessGroupGloo does not support reduce_scatter")
    one = one_rank(program, said)
    assert all(one.check("reduce_scatter", kind, 1) for kind in program.KINDS)
    assert (one.lacking(), one.wrong) == (["reduce_scatter"], [])
    one = one_rank(program, RuntimeError("Invalid scalar type"))
    assert one.check("all_reduce", "bfloat16", 1)
    assert one.lacking() == ["all_reduce bfloat16"]
    one = one_rank(program, said)
    assert not one.check("all_reduce", "float32", 1)  # every backend has this one
    assert one.wrong[0].startswith("all_reduce float32 x1: RuntimeError: ProcessGroupGloo")


def test_open_mpi_says_the_place_of_a_rank(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"OMPI_COMM_WORLD_{name}", raising=False)
    with pytest.raises(SystemExit):
        program.own_place()
    for name, value in {"RANK": "3", "SIZE": "4", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", value)
    assert program.own_place() == (3, 4, 1)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert program.own_place() == (0, 2, 0)


COMPONENTS = {"torch": {"version": "2.6.0"}, "python": {"version": "3.13"}}
MPI = {"openmpi": {"version": "5.0.7", "facts": {"prefix": "/opt/mpi"}}}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Collect the commands that are started, and the environment of the last one."""
    found: list[list[str]] = []

    class Running:
        def __init__(self, argv: list[str], _: float, env: dict[str, str]) -> None:
            found.append([*argv, f"MASTER_ADDR={env.get('MASTER_ADDR')}"])

        def result(self) -> Result:
            return Result(["x"], 0, line(len(found) - 1), "")

    monkeypatch.setattr(collectives, "RunningCommand", Running)
    monkeypatch.setattr(collectives, "run", lambda *args: Running(*args).result())
    monkeypatch.setattr(rank_interfaces, "address_towards", lambda _: "10.0.0.1")
    monkeypatch.setattr(process_group, "free_port", lambda: 29999)
    return found


def image(folder: Path, components: dict[str, Any]) -> Situation:
    env = {"PATH": "/bin", "GLOO_SOCKET_IFNAME": "eth0", "MASTER_ADDR": "worker-0", "RANK": "7"}
    return Situation(trees.expected(folder, components=components), env, str(folder), {})


def test_mpirun_starts_a_rank_on_each_host_and_tells_where_they_meet(
    tmp_path: Path, started: list[list[str]]
) -> None:
    collectives.between_hosts(image(tmp_path, COMPONENTS | MPI), ["a", "b"], "gloo")
    (argv,) = started
    assert argv[:3] == ["/opt/mpi/bin/mpirun", "-H", "a:1,b:1"]
    forwarded = {name for flag, name in itertools.pairwise(argv) if flag == "-x"}
    assert {"MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME", "PATH"} <= forwarded
    assert argv[-1] == "MASTER_ADDR=10.0.0.1"


def test_without_open_mpi_torchrun_starts_on_each_host(
    tmp_path: Path, started: list[list[str]]
) -> None:
    collectives.between_hosts(image(tmp_path, COMPONENTS), ["a", "b"], "gloo")
    here, there = started
    meet = "--nproc_per_node 1 --master_addr 10.0.0.1 --master_port 29999"
    assert " ".join(here).startswith(
        f"torchrun --nnodes 2 --node_rank 0 {meet} {collectives.PROGRAM}"
    )
    assert there[0] == "ssh"
    assert there[-3] == "b"
    assert f"torchrun --nnodes 2 --node_rank 1 {meet}" in there[-2]
    assert there[-2].startswith("env GLOO_SOCKET_IFNAME=eth0 ")
    assert "RANK=7" not in there[-2]
