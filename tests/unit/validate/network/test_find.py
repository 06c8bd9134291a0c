"""Test the search with runs that are made up: its verdicts, in the words of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from validate.check import FAILED, PASSED, SKIPPED, WARNED, CheckResult
from validate.network.find import judged_search, of_logins, search
from validate.network.job import Job
from validate.network.measured import Row, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from validate.network.transport import TorchRuns

Pair = tuple[str, ...]


class MadeUp:
    """Answers as runs of pairs would; `speed` gives GB/s of a pair, or what goes wrong."""

    via = "gloo"

    def __init__(self, hosts: Sequence[str], speed: Callable[[Pair], float | str]) -> None:
        self.counts = dict.fromkeys(hosts, 1)
        self.speed = speed
        self.rounds: list[list[Pair]] = []

    def measure(self, groups: Sequence[Pair], effort: Any, on_row: Any) -> list[Run]:
        del effort, on_row
        self.rounds.append(list(groups))
        return [self._run(group) for group in groups]

    def _run(self, group: Pair) -> Run:
        said = self.speed(group)
        if isinstance(said, str) and said.startswith("wrong "):
            return Run(group, [Row(1024, 1.0, 1, 2)], "", (), {said[6:]: 1})
        if isinstance(said, str):
            return Run(group, [], said)
        return Run(group, [Row(1 << 25, (1 << 25) / 1e9 / said, 0, 2)])


def found(
    hosts: str, speed: Callable[[Pair], float | str], rate: str = "10000", **facts: Any
) -> tuple[CheckResult, CheckResult]:
    """Search among hosts with these letters."""
    of_host = {
        name: {
            "machine": name,
            "processor": "",
            "interface": {"name": "eth0", "speed": rate, "mtu": facts.get(name, "1500")},
        }
        for name in hosts
    }
    runs = cast("TorchRuns", MadeUp(hosts, speed))
    lines: list[str] = []
    done = search(Job(runs, list(hosts), of_host, {}), lines.append)
    assert len(lines) == 1 + len(done.rounds)
    assert "GB/s" in "".join(lines) or any(isinstance(speed(tuple(hosts[:2])), str) for _ in "x")
    first, second = judged_search(done, 1.0)
    return first, second


def test_a_slow_host_is_named_with_its_speed_and_what_to_do() -> None:
    hosts, links = found("abcd", lambda pair: 0.02 if "c" in pair else 1.0)
    assert hosts.outcome == FAILED
    assert hosts.measured == "c is slow with everyone: 0.02 GB/s at best, 1 GB/s is usual"
    assert hosts.remedy == "start the job without c, and have its network repaired"
    assert hosts.kind == "host"
    assert links.outcome == PASSED
    assert links.measured == "3 links: 1 to 1 GB/s"


def test_what_differs_at_its_interface_is_said() -> None:
    hosts, _ = found("abc", lambda pair: 0.02 if "c" in pair else 1.0, c="576")
    assert hosts.measured.endswith("(eth0: 576 bytes of MTU, others 1500)")


def test_a_broken_host_is_named_with_what_it_said() -> None:
    hosts, _ = found("abc", lambda pair: "no end within 20 s" if "b" in pair else 1.0)
    assert hosts.measured == "b works with nobody: no end within 20 s"


def test_a_host_with_wrong_sums_is_not_a_matter_of_the_network() -> None:
    hosts, _ = found("abc", lambda pair: "wrong b" if "b" in pair else 1.0)
    assert hosts.measured == "b works with nobody: wrong sums on b"
    assert "memory" in hosts.cause
    assert "network" not in hosts.remedy


def test_a_slow_link_is_named_and_no_host() -> None:
    hosts, links = found("abcd", lambda pair: 0.02 if set(pair) == {"b", "d"} else 1.0)
    assert hosts.outcome == PASSED
    assert links.outcome == FAILED
    assert links.measured == "b - d is slow: 0.02 GB/s, 1 GB/s is usual"
    assert "without b or without d" in links.remedy


def test_two_groups_are_named_once() -> None:
    left = set("abc")
    _, links = found("abcdef", lambda pair: 1.0 if len(left & set(pair)) != 1 else 0.02)
    assert "a, b, c | d, e, f" in links.measured
    assert links.outcome == FAILED


@pytest.mark.parametrize("rate", ["10000", "", "-1"])
def test_all_alike_blames_nobody(rate: str) -> None:
    hosts, links = found("abcd", lambda _: 0.02, rate)
    assert hosts.outcome == PASSED
    assert links.outcome == (WARNED if rate == "10000" else PASSED)
    assert "no host or link differs" in links.measured or rate != "10000"


def test_of_two_hosts_the_link_is_named() -> None:
    hosts, links = found("ab", lambda _: 0.02)
    assert (hosts.outcome, hosts.reason) == (SKIPPED, "needs-peer")
    assert links.outcome == WARNED
    assert links.measured == "a - b is slow: 0.02 GB/s; the interfaces have 1.25 GB/s"
    assert "third host" in links.cause
    hosts, links = found("ab", lambda _: "no end within 20 s")
    assert hosts.outcome == SKIPPED
    assert (links.outcome, links.measured) == (FAILED, "a - b: no end within 20 s")


def test_half_of_the_hosts_slow_is_said_to_be_no_proof() -> None:
    hosts, _ = found("abcd", lambda pair: 1.0 if set(pair) == {"a", "b"} else 0.02)
    assert "c is slow" in hosts.measured
    assert "nearer to each other" in hosts.cause


def test_nothing_works_at_all() -> None:
    hosts, links = found("abc", lambda _: "no end within 20 s")
    assert hosts.outcome == PASSED
    assert links.outcome == FAILED
    assert "no pair moves data" in links.cause


@pytest.mark.parametrize(
    ("said", "cause", "kind"),
    [
        ("ssh: Could not resolve hostname x: Name or service not known", "no address", "launch"),
        ("ssh: connect to host x port 2222: Connection refused", "no sshd", "host"),
        ("root@x: Permission denied (publickey).", "key", "launch"),
        ("ssh: connect to host x port 2222: Connection timed out", "down", "host"),
        ("Connection timed out during banner exchange", "down", "host"),
        ("ssh: connect to host x port 2222: No route to host", "down", "host"),
        ("it did not answer within 20 s", "down", "host"),
        ("no Python 3 is there to run the ranks", "", "look"),
    ],
)
def test_a_host_that_cannot_be_used(said: str, cause: str, kind: str) -> None:
    result = of_logins({"x": said}, ["a", "b"])
    assert result.outcome == FAILED
    assert result.measured == "x: " + said
    assert cause in result.cause
    assert result.kind == kind
    assert "{" not in result.remedy + result.look


def test_hosts_that_fail_in_different_ways_have_all_causes() -> None:
    lost = {"x": "Connection refused", "y": "Could not resolve hostname y", "z": "refused?"}
    result = of_logins(lost, ["a"])
    assert "x: the host is there" in result.cause
    assert "y: the name leads" in result.cause
