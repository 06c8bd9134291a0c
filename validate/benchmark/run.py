"""`validate --benchmark`: train for a moment under mpirun as a real launch does, and judge
what came out."""

import os
import re
import sys
from typing import Any, Dict, List, Tuple

from validate.benchmark.output import Output, parse
from validate.check import Check
from validate.expected import Expected
from validate.found import FAILED, PASSED, SKIPPED, WARNED, Found
from validate.probes.interpreter import find
from validate.probes.mpi import launch
from validate.process import Result, run

SUITE = "benchmark"
LIMIT_SECONDS = 1500.0
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "synthetic.py")
HANDED_ON = ("NCCL_", "HOROVOD_", "LIGHT_")
"""Variables that change what is measured, so the ranks must see them."""

WITHOUT_HOROVOD = "the image has no Horovod: one rank trains with PyTorch alone, two cannot"


PROBES = {
    "run": "`mpirun -np N … python -u synthetic.py` with the flags of a real launch, 1500 s",
    "allreduce": "hvd.allreduce of rank + 1 on every rank, before training: n (n + 1) / 2",
    "parse": "`Iter #N: X img/sec per GPU` and `Total img/sec on N GPU(s): X +-Y` are printed",
    "once": "exactly one `Total img/sec` line, over as many ranks as were started",
    "device": "`Number of GPUs: N` and the device in every line, against that of the image",
    "stability": "standard deviation of the iterations over their mean, below 10 %",
    "net": "`Using network X` in NCCL's log of the same run (NCCL_DEBUG=INFO): IB in profile rdma, "
    "the plugin in profile harp",
}


def _check(id_: str, proves: str, cause: str, remedy: str, needs: Tuple[str, ...] = ()) -> Check:
    severity = "warn" if id_ == "stability" else "fail"
    checked = ("bench." + id_, proves, severity, "live", cause, remedy, needs, PROBES[id_])
    return Check(*checked)


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
STABILITY = _check(
    "stability",
    "iterations take about the same time",
    "other work on the machine, heat, or a GPU that changes its clocks",
    "nvidia-smi -q -d PERFORMANCE   # and what else runs on the machine",
    ("bench.run", "bench.parse"),
)
NET = _check(
    "net",
    "NCCL uses the network that the profile is for",
    "NCCL fell back to another network, which is silent at its usual log level",
    "validate --only nccl,rdma,harp   # says which part does not fit",
    ("bench.run",),
)
CHECKS = (RUN, ALLREDUCE, PARSE, ONCE, STABILITY, NET, DEVICE)
NOISY = 0.1


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
    if expected.device == "gpu":
        env.setdefault("NCCL_DEBUG", "INFO")
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
            Found(one, SUITE, SKIPPED, PARSE.id, reason="blocked-by")
            for one in (ONCE, STABILITY, NET, DEVICE)
        ]
        return found + blocked
    found.append(_found(ONCE, _wrong_total(output, ranks), "one total over {}".format(ranks)))
    found += [_stability(output, wanted), _net(result, expected)]
    return [*found, _found(DEVICE, _wrong_device(output, wanted), wanted)]


def _stability(output: Output, device: str) -> Found:
    """Judged on GPUs only: processors of a machine with other work vary by more than that."""
    speeds = output.iterations
    mean = sum(speeds) / len(speeds)
    share = (sum((one - mean) ** 2 for one in speeds) / len(speeds)) ** 0.5 / mean if mean else 0
    text = "{:.1f} % over {} iterations".format(100 * share, len(speeds))
    noisy = share > NOISY and device == "GPU"
    found = _found(STABILITY, text if noisy else "", text)
    return found._replace(outcome=WARNED) if noisy else found


def _net(result: Result, expected: Expected) -> Found:
    """One rank without Horovod needs no NCCL: then there is nothing to judge."""
    used = sorted(set(re.findall(r"Using network (\S+)", result.out + result.err)))
    profile = str(expected.data.get("profile", ""))
    if not used:
        return Found(NET, SUITE, SKIPPED, "NCCL said nothing", reason="not-applicable")
    wrong = [one for one in used if one == "Socket" and profile in ("rdma", "harp")]
    wrong += [one for one in used if one == "IB" and profile == "harp"]
    text = ", ".join(used)
    return _found(
        NET, "NCCL uses {}, the profile is {}".format(text, profile) if wrong else "", text
    )


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
