"""What the command line of `validate` needs of this folder; the rest is loaded when it measures."""

from typing import Any, Dict, List

from validate.check import CheckResult
from validate.expected import Expected
from validate.network.checks import NETWORK
from validate.network.options import add_network, asked, refuse_contradictions
from validate.network.refused import Refused

__all__ = [
    "Refused",
    "add_network",
    "add_results",
    "asked",
    "asked_as_suite",
    "refuse_contradictions",
]


def asked_as_suite(arguments: Any, suites: List[str]) -> None:
    """Take `--only network` for `--bandwidth`, unless `--find-slow` is there."""
    arguments.bandwidth |= NETWORK in suites and not arguments.find_slow


def add_results(arguments: Any, expected: Expected, results: List[CheckResult]) -> Dict[str, Any]:
    """Measure if that is asked for, add the results, and return the figures. Raises Refused."""
    if not asked(arguments):
        return {}
    from validate.network.run import measure_network

    measured = measure_network(arguments, expected)
    results.extend(measured.results)
    return measured.figures
