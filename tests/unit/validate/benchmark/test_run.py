"""Test how the output of the benchmark is parsed and judged, and the command of its launch."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import pytest

from unit.validate import trees
from validate.benchmark import launch, options
from validate.benchmark.output import parse
from validate.benchmark.run import judge, run_benchmark
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


def _arguments(ranks: int, **changes: Any) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    options.add(parser)
    found = parser.parse_args(["--ranks", str(ranks)])
    vars(found).update(json=None, **changes)
    return found


def _components(*names: str) -> dict[str, Any]:
    return {**TRAINING, **{name: {"version": "1.0"} for name in names}}


def _command(folder: Path, ranks: int, via: str, *components: str, **env: str) -> list[str]:
    """Return the command of a launch on an image with these components too."""
    recipe = trees.expected(folder, components=_components(*components))
    chosen = launch.choose(via, recipe)
    made = launch.rank_environment({"PATH": "/bin", **env}, chosen, recipe)
    return launch.command(_arguments(ranks), chosen, recipe, made)


@pytest.mark.parametrize(
    ("asked", "components", "via"),
    [
        ("auto", (), "ddp"),
        ("auto", ("horovod",), "horovod"),
        ("auto", ("lightcc",), "lightcc"),
        ("horovod", ("lightcc",), "horovod"),
        ("ddp", ("horovod",), "ddp"),
    ],
)
@pytest.mark.parametrize("ranks", [1, 8])
def test_what_joins_the_ranks(
    tmp_path: Path, ranks: int, asked: str, components: tuple[str, ...], via: str
) -> None:
    argv = _command(tmp_path, ranks, asked, *components)
    assert argv[argv.index("-np") + 1] == str(ranks)
    assert argv[argv.index("--via") + 1] == via
    assert ("--allreduce" in argv) == (ranks > 1)
    assert "--no-cuda" in argv


@pytest.mark.parametrize(
    ("via", "components", "ranks", "why"),
    [
        ("horovod", {}, 2, "it does not compile here"),
        ("horovod", {}, 1, "it does not compile here"),
        ("lightcc", {"horovod": {"version": "0.28.1"}}, 2, "the image has no LightCC"),
        ("auto", {"torch": None}, 1, "the image has no PyTorch"),
        (
            "auto",
            {"openmpi": None, "horovod": {"version": "0.28.1"}},
            2,
            "the image has no Open MPI, which starts the ranks of Horovod",
        ),
        (
            "ddp",
            {"openmpi": None, "torch": {"version": "1.9.1"}},
            2,
            "the image has no Open MPI, and its PyTorch has no torchrun",
        ),
    ],
)
def test_what_an_image_cannot_do_rests_with_the_reason(
    tmp_path: Path, via: str, components: dict[str, Any], ranks: int, why: str
) -> None:
    there = {name: one for name, one in {**TRAINING, **components}.items() if one}
    recipe = trees.expected(tmp_path, components=there)
    found = run_benchmark(_arguments(ranks, via=via), recipe)
    assert {(one.outcome, one.reason, one.measured) for one in found} == {
        ("skipped", "not-in-recipe", why)
    }


def test_the_ranks_of_ddp_are_a_job_of_their_own(tmp_path: Path) -> None:
    argv = _command(tmp_path, 2, "ddp", RANK="3", WORLD_SIZE="16", MASTER_ADDR="worker-0")
    assert "MASTER_ADDR" in argv  # for the ranks of mpirun
    recipe = trees.expected(tmp_path, components=TRAINING)
    made = launch.rank_environment({"RANK": "3", "MASTER_ADDR": "worker-0"}, "ddp", recipe)
    assert (made["MASTER_ADDR"], "RANK" in made) == ("127.0.0.1", False)


def test_without_open_mpi_torchrun_starts_the_ranks(tmp_path: Path) -> None:
    components = {name: one for name, one in TRAINING.items() if name != "openmpi"}
    recipe = trees.expected(tmp_path, components=components)
    made = launch.rank_environment({"PATH": "/bin"}, "ddp", recipe)
    argv = launch.command(_arguments(2), "ddp", recipe, made)
    assert argv[:6] == ["/usr/bin/python3", "-u", "-m", "torch.distributed.run", *argv[4:6]]
    assert argv[4:6] == ["--nproc_per_node", "2"]
    assert argv[argv.index("--master_port") + 1] == made["MASTER_PORT"]
    alone = launch.command(_arguments(1), "ddp", recipe, made)
    assert alone[:3] == ["/usr/bin/python3", "-u", f"{launch.HERE}/synthetic.py"]


OF_TENSORFLOW = {name: one for name, one in TRAINING.items() if name != "torch"} | {
    "tensorflow": {"version": "2.5.0"}
}


@pytest.mark.parametrize(
    ("asked", "names", "chosen"),
    [
        ("auto", ("torch", "tensorflow"), "torch"),
        ("auto", ("tensorflow",), "tensorflow"),
        ("auto", (), "torch"),
        ("tensorflow", ("torch", "tensorflow"), "tensorflow"),
    ],
)
def test_the_framework_that_trains_is_one_of_the_image(
    tmp_path: Path, asked: str, names: tuple[str, ...], chosen: str
) -> None:
    recipe = trees.expected(tmp_path, components={name: {"version": "1.0"} for name in names})
    assert launch.choose_framework(asked, recipe) == chosen


def test_tensorflow_trains_with_its_own_script_through_horovod(tmp_path: Path) -> None:
    recipe = trees.expected(
        tmp_path, components={**OF_TENSORFLOW, "horovod": {"version": "0.28.1"}}
    )
    assert launch.obstacle("horovod", 2, recipe, "tensorflow") == ""
    argv = launch.command(_arguments(2), "horovod", recipe, {"PATH": "/bin"}, "tensorflow")
    script = argv.index(f"{launch.HERE}/synthetic_tensorflow.py")
    assert argv[script - 1] == "-u"
    assert argv[argv.index("--via") + 1] == "horovod"


def test_tensorflow_without_horovod_trains_in_one_rank_alone(tmp_path: Path) -> None:
    recipe = trees.expected(tmp_path, components=OF_TENSORFLOW)
    assert launch.obstacle("ddp", 1, recipe, "tensorflow") == ""
    argv = launch.command(_arguments(1), "ddp", recipe, {"PATH": "/bin"}, "tensorflow")
    assert argv[argv.index("--via") + 1] == "alone"
    why = launch.obstacle("ddp", 2, recipe, "tensorflow")
    assert why == "DDP joins ranks of PyTorch: those of TensorFlow need Horovod"
    assert launch.obstacle("ddp", 1, recipe, "torch") == "the image has no PyTorch"


def test_horovod_in_an_image_with_lightcc_is_lightcc_without_its_settings(tmp_path: Path) -> None:
    recipe = trees.expected(tmp_path, components=_components("lightcc"))
    env = {"LIGHT_2D_ALLREDUCE": "1", "HOROVOD_CYCLE_TIME": "0"}
    assert launch.rank_environment(env, "lightcc", recipe) == env
    assert launch.rank_environment(env, "horovod", recipe) == {"HOROVOD_CYCLE_TIME": "0"}


def test_a_gpu_image_shows_the_network_of_nccl(tmp_path: Path) -> None:
    recipe = trees.expected(tmp_path, device="gpu", components=TRAINING)
    made = launch.rank_environment({}, "ddp", recipe)
    argv = launch.command(_arguments(2), "ddp", recipe, made)
    assert "NCCL_DEBUG" in argv
    assert "--no-cuda" not in argv


@pytest.mark.parametrize("length", ["quick", "reference"])
def test_the_length_is_handed_on(tmp_path: Path, length: str) -> None:
    recipe = trees.expected(tmp_path, components=TRAINING)
    argv = launch.command(_arguments(1, length=length), "ddp", recipe, {})
    assert argv[argv.index("--length") + 1] == length
    assert "--num-iters" not in argv
    argv = launch.command(_arguments(1, num_iters=5), "ddp", recipe, {})
    assert argv[argv.index("--num-iters") + 1] == "5"


def test_what_joined_the_ranks_is_in_the_report(tmp_path: Path) -> None:
    text = GOOD.replace("on 1 CPU", "on 2 CPU")
    result = Result([], 0, text, "")
    found = judge(result, parse(text), 2, trees.expected(tmp_path), "ddp")
    assert found[0].measured == "0 s, 2 ranks through DDP"
