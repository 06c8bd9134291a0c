"""`validate --benchmark`: train for a moment under mpirun as a real launch does, and judge
what came out."""

import os
import sys
from typing import Any, Dict, List, Tuple

from validate.benchmark.output import Output, parse
from validate.check import Check
from validate.expected import Expected
from validate.plugin import FAILED, PASSED, SKIPPED, Found
from validate.probes.interpreter import find
from validate.probes.mpi import launch
from validate.process import Result, run

SUITE = "benchmark"
LIMIT_SECONDS = 1500.0
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "synthetic.py")
HANDED_ON = ("NCCL_", "HOROVOD_", "LIGHT_")
"""Variables that change what is measured, so the ranks must see them."""

WITHOUT_HOROVOD = "the image has no Horovod: one rank trains with PyTorch alone, two cannot"


def _check(id_: str, proves: str, cause: str, remedy: str, needs: Tuple[str, ...] = ()) -> Check:
    return Check("bench." + id_, proves, "fail", "live", cause, remedy, needs)


ALLREDUCE = _check(
    "allreduce",
    "every rank is in one job, and a real allreduce gives the right sum on each",
    "Horovod and mpirun speak different MPIs, so each rank believes it is alone",
    "validate --only horovod,mpi   # hvd.link and mpi.single say which MPIs",
    ("bench.run",),
)
RUN = _check(
    "run",
    "the synthetic benchmark trains under mpirun and ends well",
    "training crashed or hung; its last lines say where",
    "validate   # the other checks name the cause",
)
PARSE = _check(
    "parse",
    "the benchmark prints its iterations and its total",
    "the run ended before its end, or something swallowed the output of rank 0",
    "validate --benchmark --ranks 1 --model small   # shows what is printed",
    ("bench.run",),
)
ONCE = _check(
    "once",
    "there is one total, over all ranks",
    "each rank believes it is rank 0 of 1 and trains on its own",
    "validate --only horovod   # hvd.size",
    ("bench.run", "bench.parse"),
)
DEVICE = _check(
    "device",
    "training ran on the kind of device that the image is for",
    "PyTorch sees no GPU and went on without a word, or the image is for CPUs",
    "docker run --gpus all IMAGE",
    ("bench.run", "bench.parse"),
)
CHECKS = (RUN, ALLREDUCE, PARSE, ONCE, DEVICE)


def run_benchmark(arguments: Any, expected: Expected) -> List[Found]:
    """Run it and judge it; what it prints is shown as it comes. `arguments` are those of the
    command line."""
    if "openmpi" not in expected.components or "torch" not in expected.components:
        return _resting("the image has no Open MPI or no PyTorch")
    if arguments.ranks > 1 and not expected.has("horovod"):
        return _resting(expected.omission("horovod") or WITHOUT_HOROVOD)
    stream = sys.stderr if arguments.json == "-" else sys.stdout

    def show(line: str) -> None:
        stream.write(line + "\n")
        stream.flush()

    env = dict(os.environ)
    result = run(command(arguments, expected, env), LIMIT_SECONDS, env, show)
    return judge(result, parse(result.out), arguments.ranks, expected)


def command(arguments: Any, expected: Expected, env: Dict[str, str]) -> List[str]:
    """The launch: mpirun, the image's own Python, the script, its options."""
    python = find(env, str(expected.fact("python", "interpreter", "")))
    script = [python, "-u", SCRIPT, "--model", arguments.model]
    script += ["--batch-size", str(arguments.batch_size), "--num-iters", str(arguments.num_iters)]
    if expected.has("horovod"):
        script.append("--horovod")
    if arguments.ranks > 1:
        script.append("--allreduce")
    if expected.device == "cpu":
        script.append("--no-cuda")
    names = sorted(name for name in env if name.startswith(HANDED_ON))
    prefix = str(expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
    return launch(prefix, arguments.ranks, script, env, names)


def _resting(why: str) -> List[Found]:
    return [Found(one, SUITE, SKIPPED, why, reason="not-in-recipe") for one in CHECKS]


def judge(result: Result, output: Output, ranks: int, expected: Expected) -> List[Found]:
    """One finding for each check of the benchmark."""
    if not result.ok:
        failed = _found(RUN, result.says(), "it did not end well")
        return [failed] + [
            Found(one, SUITE, SKIPPED, RUN.id, reason="blocked-by") for one in CHECKS[1:]
        ]
    wanted = expected.device.upper()
    found = [_found(RUN, "", "{:.0f} s".format(result.seconds), result.seconds)]
    if ranks > 1:
        found.append(_found(ALLREDUCE, _wrong_sums(output, ranks), "the same sum on every rank"))
    speeds = ["{:.1f}".format(total.speed) for total in output.totals]
    unparsed = "" if output.totals and output.iterations else "no total line in what it printed"
    found.append(_found(PARSE, unparsed, "{} img/sec".format(", ".join(speeds))))
    if unparsed:
        blocked = [
            Found(one, SUITE, SKIPPED, PARSE.id, reason="blocked-by") for one in (ONCE, DEVICE)
        ]
        return found + blocked
    found.append(_found(ONCE, _wrong_total(output, ranks), "one total over {}".format(ranks)))
    return [*found, _found(DEVICE, _wrong_device(output, wanted), wanted)]


def _found(check: Check, problem: str, measured: str, seconds: float = 0.0) -> Found:
    if not problem:
        return Found(check, SUITE, PASSED, measured, seconds=seconds)
    return Found(check, SUITE, FAILED, problem, check.cause, check.remedy, "", seconds)


def _wrong_sums(output: Output, ranks: int) -> str:
    """Rank r gives r + 1, so the sum over n ranks is n (n + 1) / 2."""
    wanted = [(rank, ranks, ranks * (ranks + 1) / 2) for rank in range(ranks)]
    if sorted(output.sums) == wanted:
        return ""
    said = ["rank {} of {}: {}".format(*one) for one in sorted(output.sums)]
    return "the ranks say {}".format("; ".join(said) or "nothing")


def _wrong_total(output: Output, ranks: int) -> str:
    if len(output.totals) != 1:
        return "{} total lines".format(len(output.totals))
    counted = output.totals[0].ranks
    return "" if counted == ranks else "a total over {}, {} were started".format(counted, ranks)


def _wrong_device(output: Output, wanted: str) -> str:
    devices = sorted({device for device, _ in output.devices} | {t.device for t in output.totals})
    return (
        "" if devices == [wanted] else "it ran on {}, not {}".format(" and ".join(devices), wanted)
    )
