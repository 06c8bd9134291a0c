"""Run `validate --benchmark`: train for a moment under mpirun and judge the result."""

import os
import re
import sys
from typing import Any, List

from validate.benchmark import launch
from validate.benchmark.checks import (
    ALLREDUCE,
    CHECKS,
    DEVICE,
    NET,
    ONCE,
    PARSE,
    RUN,
    STABILITY,
    SUITE,
)
from validate.benchmark.output import Output, parse
from validate.check import FAILED, PASSED, SKIPPED, WARNED, Check, CheckResult
from validate.expected import Expected
from validate.fixtures import Situation
from validate.probes import crashes
from validate.process import Result, run

LIMIT_SECONDS = {"quick": 1500.0, "reference": 14400.0}
"""Time limits by the length of the benchmark: a VGG-16 on processors takes hours at full length."""

NOISY = 0.1
"""The largest standard deviation of the iterations that is no warning, as a share of their mean."""


def run_benchmark(arguments: Any, expected: Expected) -> List[CheckResult]:
    """Run the benchmark, show its output as it comes, and judge the result.

    `arguments` are those of the command line.
    """
    via = launch.choose(arguments.via, expected)
    framework = launch.choose_framework(arguments.framework, expected)
    why = launch.obstacle(via, arguments.ranks, expected, framework)
    if why:
        return _skipped(why)
    stream = sys.stderr if arguments.json == "-" else sys.stdout

    def show(line: str) -> None:
        stream.write(line + "\n")
        stream.flush()

    env = launch.rank_environment(dict(os.environ), via, expected)
    argv = launch.command(arguments, via, expected, env, framework)
    result = run(argv, LIMIT_SECONDS[arguments.length], env, show)
    found = judge(result, parse(result.out), arguments.ranks, expected, via)
    if not result.broken:
        return found
    cause, remedy = crashes.explain(Situation(expected, env, "/", {}), result)
    return [found[0]._replace(cause=cause).with_remedy(remedy), *found[1:]]


def _skipped(why: str) -> List[CheckResult]:
    return [CheckResult(one, SUITE, SKIPPED, why, reason="not-in-recipe") for one in CHECKS]


def judge(
    result: Result, output: Output, ranks: int, expected: Expected, via: str = ""
) -> List[CheckResult]:
    """Return a result for each check of the benchmark; `via` is what joined the ranks."""
    if not result.ok:
        failed = _found(RUN, result.says(), "it did not end well")
        return [failed] + [
            CheckResult(one, SUITE, SKIPPED, RUN.id, reason="blocked-by") for one in CHECKS[1:]
        ]
    wanted = expected.device.upper()
    ran = "{:.0f} s".format(result.seconds)
    ran += ", {} ranks through {}".format(ranks, launch.NAMES[via]) if via and ranks > 1 else ""
    found = [_found(RUN, "", ran, result.seconds)]
    if ranks > 1:
        found.append(_found(ALLREDUCE, _wrong_sums(output, ranks), "the same sum on every rank"))
    speeds = ["{:.1f}".format(total.speed) for total in output.totals]
    unparsed = "" if output.totals and output.iterations else "no total line in what it printed"
    found.append(_found(PARSE, unparsed, "{} img/sec".format(", ".join(speeds))))
    if unparsed:
        blocked = [
            CheckResult(one, SUITE, SKIPPED, PARSE.id, reason="blocked-by")
            for one in (ONCE, STABILITY, NET, DEVICE)
        ]
        return found + blocked
    found.append(_found(ONCE, _wrong_total(output, ranks), "one total over {}".format(ranks)))
    found += [_stability(output, wanted), _net(result, expected)]
    return [*found, _found(DEVICE, _wrong_device(output, wanted), wanted)]


def _stability(output: Output, device: str) -> CheckResult:
    """Judge how much the iterations vary, on GPUs only.

    The speed of processors varies more than the limit when the machine has other work.
    """
    speeds = output.iterations
    mean = sum(speeds) / len(speeds)
    share = (sum((one - mean) ** 2 for one in speeds) / len(speeds)) ** 0.5 / mean if mean else 0
    text = "{:.1f} % over {} iterations".format(100 * share, len(speeds))
    noisy = share > NOISY and device == "GPU"
    found = _found(STABILITY, text if noisy else "", text)
    return found._replace(outcome=WARNED) if noisy else found


def _net(result: Result, expected: Expected) -> CheckResult:
    """Judge the network that NCCL used; skip if NCCL was not needed: one rank without Horovod."""
    used = sorted(set(re.findall(r"Using network (\S+)", result.out + result.err)))
    profile = str(expected.data.get("profile", ""))
    if not used:
        return CheckResult(NET, SUITE, SKIPPED, "NCCL said nothing", reason="not-applicable")
    wrong = [one for one in used if one == "Socket" and profile in ("rdma", "harp")]
    wrong += [one for one in used if one == "IB" and profile == "harp"]
    text = ", ".join(used)
    return _found(
        NET, "NCCL uses {}, the profile is {}".format(text, profile) if wrong else "", text
    )


def _found(check: Check, problem: str, measured: str, seconds: float = 0.0) -> CheckResult:
    if not problem:
        return CheckResult(check, SUITE, PASSED, measured, seconds=seconds)
    failed = CheckResult(check, SUITE, FAILED, problem, check.cause, seconds=seconds)
    return failed.with_remedy(check.remedy)


def _wrong_sums(output: Output, ranks: int) -> str:
    """Say which ranks have a wrong sum; empty if none.

    Rank r gives r + 1, so the sum over n ranks is n (n + 1) / 2.
    """
    wanted = [(rank, ranks, ranks * (ranks + 1) / 2) for rank in range(ranks)]
    if sorted(output.sums) == wanted:
        return ""
    sums = ["rank {} of {}: {}".format(*one) for one in sorted(output.sums)]
    return "the ranks say {}".format("; ".join(sums) or "nothing")


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
