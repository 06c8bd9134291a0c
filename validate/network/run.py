"""Run what `validate` measures of the network, and return its results and figures."""

import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple

from validate.check import CheckResult
from validate.expected import Expected
from validate.network.bandwidth import judged, measure_bandwidth
from validate.network.checks import HOSTS, LINKS, LOGIN, REFERENCE, SUMS, SWEEP, blocked
from validate.network.find import judged_search, of_logins, search
from validate.network.job import Job, described, open_job, start_agents
from validate.network.refused import Refused

ALONE = "--peers names this container alone: one host has nobody to measure with"


class Measured(NamedTuple):
    """Hold the results of the checks, and the figures for the JSON document."""

    results: List[CheckResult]
    figures: Dict[str, Any]


def measure_network(arguments: Any, expected: Expected) -> Measured:
    """Measure what the command line asks for. Raises Refused if that cannot be done."""
    stream = sys.stderr if "-" in (arguments.json, arguments.markdown, arguments.junit) else None

    def show(line: str) -> None:
        print(line, file=stream or sys.stdout, flush=True)

    with start_agents(arguments, expected) as cluster:
        cluster.login()
        lost = {name: cluster.lost[name] for name in cluster.agents if name in cluster.lost}
        found = Measured([of_logins(lost, cluster.names())] if arguments.peers else [], {})
        for name, why in lost.items():
            show("# {} cannot be used: {}".format(name, why))
        if arguments.peers and len(cluster.names()) < 2:
            if not lost:
                raise Refused(ALONE, "validate --peers HOST1,HOST2 --find-slow")
            return _without_hosts(found, arguments)
        job = open_job(cluster, arguments, expected)
        if arguments.find_slow:
            _find(job, lost, found, show)
        if arguments.bandwidth and lost:
            found.results.extend(blocked(one, LOGIN) for one in (SWEEP, SUMS, REFERENCE))
        elif arguments.bandwidth:
            _sweep(job, arguments, found, show)
        return found


def _without_hosts(found: Measured, arguments: Any) -> Measured:
    checks = [HOSTS, LINKS] if arguments.find_slow else []
    checks += [SWEEP, SUMS, REFERENCE] if arguments.bandwidth else []
    found.results.extend(blocked(one, LOGIN) for one in checks)
    return found


def _find(job: Job, lost: Dict[str, str], found: Measured, show: Callable[[str], None]) -> None:
    started = time.monotonic()
    if len(job.hosts) < 2:
        raise Refused(
            "one host has nobody to measure with", "validate --peers HOST1,HOST2 --find-slow"
        )
    seen = search(job, show)
    found.results.extend(judged_search(seen, time.monotonic() - started))
    found.figures["find_slow"] = dict(seen.as_data(), lost=lost, **described(job))


def _sweep(job: Job, arguments: Any, found: Measured, show: Callable[[str], None]) -> None:
    started = time.monotonic()
    sweep = measure_bandwidth(job, arguments, show)
    found.results.extend(judged(sweep, bool(arguments.reference), time.monotonic() - started))
    found.figures["bandwidth"] = sweep.as_data()
