"""Choose the checks that are worth the start of a job, and sum them up for a scheduler.

`validate --preflight` runs all static checks, and those live ones that look at this host and this
launch: they take seconds, start no rank beside peers, and import no framework a second time.
"""

from typing import List, NamedTuple, Sequence

from validate.check import ERROR, FAILED, WARNED, Check, CheckResult
from validate.components import COMPONENTS
from validate.remedy import ASK, DRAIN, REBUILD, RELAUNCH

OWN_SUITES = ("gpu", "k8s", "limits", "os", "peers")
SUITES = {*OWN_SUITES, *(name for name, one in COMPONENTS.items() if one.before_job)}
"""Suites whose live checks all belong to it."""
MORE = ("mpi.nonlogin-path", "torch.arch", "torch.kernel", "torch.1rank-allreduce")
"""Live checks of other suites that belong to it."""
LEFT_OUT = {
    "os.files": "reads hundreds of MiB for what the digest of the image says too",
    "ssh.env-parity": "two sessions for what the static checks say of the image already",
    "ssh.limits-parity": "two sessions, and limits are read in this one",
    "plugin.used": "starts NCCL once more",
}
"""Live checks of these suites that do not belong to it, with the reason."""

START = "start"
ORDER = (DRAIN, REBUILD, RELAUNCH, ASK)
"""The strongest action first: on a bad host no other launch helps, with a bad image no relaunch."""
MOST_LETTERS = 200
"""The most of a reason that schedulers show: Slurm cuts it in `sinfo -R`."""


class Decision(NamedTuple):
    """Hold what the start of a job has to lead to, and why, in one line."""

    action: str
    reason: str

    def __str__(self) -> str:
        return "{}: {}".format(self.action, self.reason)


def belongs(suite: str, check: Check) -> bool:
    """Return whether a check belongs to a preflight."""
    if check.tier != "live":
        return check.tier == "static"
    return check.id in MORE or (suite in SUITES and check.id not in LEFT_OUT)


def verdict(results: Sequence[CheckResult], unmet: Sequence[str]) -> Decision:
    """Sum a run up: the strongest action of what failed, and what led to it.

    What was required and did not run asks for another launch: the flag that brings it is missing.
    """
    failed = [one for one in results if one.outcome in (FAILED, ERROR)]
    for action in ORDER:
        mine = [one for one in failed if (one.action or ASK) == action]
        lacking = list(unmet) if action == RELAUNCH else []
        if mine or lacking:
            return Decision(action, _one_line([*map(_said, mine), *lacking]))
    warned = [one.check.id for one in results if one.outcome == WARNED]
    text = "{} checks, nothing failed".format(len(results))
    return Decision(START, _one_line([text, *(["warned: " + ", ".join(warned)] if warned else [])]))


def _said(one: CheckResult) -> str:
    return "{}: {}".format(one.check.id, one.measured)


def _one_line(parts: List[str]) -> str:
    text = " ".join("; ".join(parts).split())
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"
