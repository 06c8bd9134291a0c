"""Test how the output of the benchmark is parsed and judged, and the command of its launch."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.benchmark.output import parse
from validate.benchmark.run import command, judge, run_benchmark
from validate.process import Result

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """\
Model: small
Batch size: 8
Number of CPUs: 1
Running warmup...
Running benchmark...
Iter #0: 504.8 img/sec per CPU
Iter #1: 526.2 img/sec per CPU
Img/sec per CPU: 515.5 +-21.0
Total img/sec on 1 CPU(s): 515.5 +-21.0
"""
TRAINING = {
    "python": {"version": "3.11", "facts": {"interpreter": "/usr/bin/python3"}},
    "torch": {"version": "1.13.1"},
    "openmpi": {"version": "4.1.4", "facts": {"prefix": "/usr/local/openmpi"}},
}


def _judged(folder: Path, text: str, ranks: int = 1, code: int = 0) -> dict[str, tuple[str, str]]:
    result = Result(["mpirun"], code, text, "boom\n" if code else "")
    found = judge(result, parse(text), ranks, trees.expected(folder))
    return {one.check.id: (one.outcome, one.measured) for one in found}


def test_a_good_run_passes(tmp_path: Path) -> None:
    assert _judged(tmp_path, GOOD) == {
        "bench.run": ("passed", "0 s"),
        "bench.parse": ("passed", "515.5 img/sec"),
        "bench.once": ("passed", "one total over 1"),
        "bench.stability": ("passed", "2.1 % over 2 iterations"),
        "bench.net": ("skipped", "NCCL said nothing"),
        "bench.device": ("passed", "CPU"),
    }


def test_lines_are_read_between_others_and_under_tags() -> None:
    text = "".join(
        f"[1,0]<stdout>:{line}\nhost:1:1 [0] NCCL INFO x\n" for line in GOOD.splitlines()
    )
    assert parse(text) == parse(GOOD)
    assert parse(GOOD).iterations == [504.8, 526.2]


@pytest.mark.parametrize(
    ("profile", "network", "outcome"),
    [
        ("rdma", "IB", "passed"),
        ("rdma", "Socket", "failed"),
        ("harp", "IB", "failed"),
        ("harp", "HARP", "passed"),
        ("plain", "Socket", "passed"),
    ],
)
def test_the_network_is_that_of_the_profile(
    tmp_path: Path, profile: str, network: str, outcome: str
) -> None:
    text = GOOD.replace("CPU", "GPU") + f"host:1:1 [0] NCCL INFO Using network {network}\n"
    recipe = trees.expected(tmp_path, device="gpu", profile=profile)
    found = {one.check.id: one for one in judge(Result([], 0, text, ""), parse(text), 1, recipe)}
    assert found["bench.net"].outcome == outcome


def test_iterations_that_differ_warn_on_a_gpu_alone(tmp_path: Path) -> None:
    text = GOOD.replace("526.2", "226.2")
    assert _judged(tmp_path, text)["bench.stability"][0] == "passed"
    recipe, text = trees.expected(tmp_path, device="gpu"), text.replace("CPU", "GPU")
    found = {one.check.id: one for one in judge(Result([], 0, text, ""), parse(text), 1, recipe)}
    assert found["bench.stability"].outcome == "warned"


def test_no_total_line_fails_and_blocks_what_rests_on_it(tmp_path: Path) -> None:
    found = _judged(tmp_path, GOOD.replace("Total", "Sum"))
    assert found["bench.parse"] == ("failed", "no total line in what it printed")
    assert found["bench.once"] == found["bench.device"] == ("skipped", "bench.parse")


def test_two_totals_mean_that_every_rank_is_alone(tmp_path: Path) -> None:
    assert _judged(tmp_path, GOOD + GOOD)["bench.once"] == ("failed", "2 total lines")


def test_the_wrong_device_fails(tmp_path: Path) -> None:
    found = _judged(tmp_path, GOOD.replace("CPU", "GPU"))
    assert found["bench.device"] == ("failed", "it ran on GPU, not CPU")


def test_a_crash_fails_once_and_blocks_the_rest(tmp_path: Path) -> None:
    found = _judged(tmp_path, "Model: small\n", code=1)
    assert found.pop("bench.run") == ("failed", "`mpirun` ended with exit code 1: boom")
    assert set(found.values()) == {("skipped", "bench.run")}


@pytest.mark.parametrize(
    ("sums", "outcome"),
    [
        ("rank 1 of 2 sum 3.0|rank 0 of 2 sum 3.0", "passed"),
        ("rank 0 of 1 sum 1.0|rank 0 of 1 sum 1.0", "failed"),
        ("rank 0 of 2 sum 3.0|rank 1 of 2 sum 2.0", "failed"),
        ("rank 0 of 2 sum 3.0", "failed"),
    ],
)
def test_the_sum_must_be_right_on_every_rank(tmp_path: Path, sums: str, outcome: str) -> None:
    said = "".join(f"Allreduce: {line}\n" for line in sums.split("|"))
    text = said + GOOD.replace("on 1 CPU", "on 2 CPU")
    assert _judged(tmp_path, text, ranks=2)["bench.allreduce"][0] == outcome


def _arguments(ranks: int) -> argparse.Namespace:
    return argparse.Namespace(ranks=ranks, model="small", batch_size=8, num_iters=3, json=None)


def test_two_ranks_without_horovod_rest_with_the_reason_of_the_recipe(tmp_path: Path) -> None:
    found = run_benchmark(_arguments(2), trees.expected(tmp_path, components=TRAINING))
    assert {(one.outcome, one.reason, one.measured) for one in found} == {
        ("skipped", "not-in-recipe", "it does not compile here")
    }


def test_one_rank_without_horovod_trains_alone_under_mpirun(tmp_path: Path) -> None:
    recipe = trees.expected(tmp_path, components=TRAINING)
    argv = command(_arguments(1), recipe, {"PATH": "/bin", "NCCL_DEBUG": "INFO"})
    assert argv[:3] == ["/usr/local/openmpi/bin/mpirun", "-np", "1"]
    assert "NCCL_DEBUG" in argv
    assert "--horovod" not in argv
    assert "--allreduce" not in argv


def test_two_ranks_with_horovod_sum_first(tmp_path: Path) -> None:
    components = {**TRAINING, "horovod": {"version": "0.28.1"}}
    argv = command(_arguments(2), trees.expected(tmp_path, components=components), {})
    assert argv[argv.index("-np") + 1] == "2"
    assert {"--horovod", "--allreduce", "--no-cuda"} <= set(argv)
