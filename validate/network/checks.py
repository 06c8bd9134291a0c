"""Define the checks of `--bandwidth` and `--find-slow`, and make their results."""

from validate.check import FAILED, PASSED, SKIPPED, WARNED, Check, CheckResult
from validate.remedy import ASK, NO_REMEDY, Remedy, on_host, only_look

NETWORK = "network"

FIND = only_look("validate --peers HOST1,HOST2,HOST3 --find-slow")
LOGIN = Check(
    "net.login",
    "every host of the list lets root in, and has a Python that can run ranks",
    "fail",
    "asked",
    "the host is down, its sshd does not run, or it does not know this container's key",
    only_look("ssh -v HOST true"),
    probe="`ssh -o BatchMode=yes -o ConnectTimeout=5 HOST python3`: an agent that says what is "
    "there; 20 s",
)
SWEEP = Check(
    "net.sweep",
    "an all_reduce over all ranks ends, at every size",
    "fail",
    "asked",
    "ranks do not reach each other: a firewall, or an interface that leads nowhere",
    FIND,
    ("net.login",),
    "all_reduce of floats, as all_reduce_perf of nccl-tests: NCCL or gloo of PyTorch, else "
    "MPI_Allreduce; one iteration to warm up, then up to 120 in three batches, of "
    "which the best counts, for 0.4 s; 300 s in all",
)
SUMS = Check(
    "net.sums",
    "every element of every sum is right, on every rank",
    "fail",
    "asked",
    "memory, a GPU, or a library of this host changes data without a word",
    only_look("validate --peers HOST1,HOST2,HOST3 --find-slow   # pairs show which host it is"),
    ("net.sweep",),
    "after each size once more with a pattern that differs for each rank: all elements are "
    "compared, and the column `wrong` counts those that differ",
)
REFERENCE = Check(
    "net.reference",
    "busbw is not lower than in the reference of this machine",
    "warn",
    "asked",
    "another job uses the network, a link came up with a lower rate, or the transport fell back",
    FIND,
    ("net.sweep",),
    "each size of --reference FILE: a warning below 75 % of its busbw, after a second measurement; "
    "a file of other machines, ranks or transport is refused",
)
HOSTS = Check(
    "net.hosts",
    "no host holds the others up",
    "fail",
    "asked",
    "its interface, its cable, its port at the switch, or other work on the host",
    on_host("start the job without this host until its network is repaired").leads_to(ASK),
    ("net.login",),
    "all_reduce of pairs of hosts, disjoint pairs at once, in rounds of half against half: a host "
    "is slow if its best pair has less than half of the usual speed; measured twice before it is "
    "named",
)
LINKS = Check(
    "net.links",
    "no link between two hosts is slow that are fast with others",
    "fail",
    "asked",
    "a cable, a port, or a route between these two",
    on_host("start the job without one of the two until the way between them is repaired").leads_to(
        ASK
    ),
    ("net.login",),
    "the same rounds: a link is slow if its best speed is less than half of what both hosts have "
    "with others",
)
NETWORK_CHECKS = (LOGIN, SWEEP, SUMS, REFERENCE, HOSTS, LINKS)


def good(check: Check, measured: str, seconds: float = 0.0) -> CheckResult:
    """Return a result that passed."""
    return CheckResult(check, NETWORK, PASSED, measured, seconds=seconds)


def bad(
    check: Check, measured: str, cause: str = "", remedy: Remedy = NO_REMEDY, seconds: float = 0.0
) -> CheckResult:
    """Return a result that failed, or warned if the check only warns."""
    outcome = WARNED if check.severity == "warn" else FAILED
    result = CheckResult(check, NETWORK, outcome, measured, cause or check.cause, seconds=seconds)
    return result.with_remedy(remedy if remedy.given else check.remedy)


def blocked(check: Check, by: Check) -> CheckResult:
    """Return the result of a check that could not run because of another one."""
    return CheckResult(check, NETWORK, SKIPPED, by.id, reason="blocked-by")
