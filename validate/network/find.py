"""Run `validate --peers a,b,c --find-slow`: measure pairs until what is slow is named."""

import re
import time
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from validate.check import SKIPPED, WARNED, CheckResult
from validate.network.checks import HOSTS, LINKS, LOGIN, NETWORK, bad, good
from validate.network.job import Job, described
from validate.network.pairs import Blame, Pair, Speeds, blame_for, next_round, schedule
from validate.network.transport import Effort
from validate.remedy import ASK, NO_REMEDY, Remedy, at_launch, on_host, only_look

KIB, MIB = 1 << 10, 1 << 20
SMALL_SIZES = (4 * KIB, 256 * KIB, 4 * MIB, 32 * MIB)
GPU_SIZES = (64 * KIB, MIB, 32 * MIB, 256 * MIB)
PAIR_PACE, PAIR_LIMIT = (3.0, 0.3), 20.0
ALL_LINKS_SECONDS = 120.0
"""After this time the search tries no more links, unless something is suspect."""
LEAST_SHARE = 0.1
"""The share of an interface's rate below which a link is slow, where nothing else compares."""

ONE_OF_TWO = "one of the two hosts, or the link between them: a third host would tell"

WRONG_SUMS = "memory, a GPU, or a library of the host changes data without a word"

REFUSALS: Tuple[Tuple[str, str, Remedy], ...] = (
    (
        r"[Cc]ould not resolve|[Nn]ame or service not known",
        "the name leads to no address here",
        at_launch("docker run --add-host {0}:ADDRESS IMAGE", look="getent hosts {0}"),
    ),
    (
        r"Connection refused|reset by peer|closed by",
        "the host is there, and no sshd answers on the port of ssh_config",
        on_host("start sshd on {0}: docker restart {0}", look="ssh -v {0} true"),
    ),
    (
        r"Permission denied",
        "sshd of the host does not know this container's key",
        at_launch(
            "docker run -v KEYS:/root/.ssh:ro IMAGE   # the same keys in every container",
            look="cat ~/.ssh/id_ed25519.pub",
        ),
    ),
    (
        r"timed out|No route|unreachable|did not (?:answer|end)",
        "the host is down, or a firewall drops what goes to it",
        on_host("start {0} anew, or let TCP through to it", look="ssh -v {0} true"),
    ),
)


class Search(NamedTuple):
    """Hold all that was measured, in rounds, and what was seen of each pair."""

    hosts: List[str]
    seen: Speeds
    problems: Dict[Pair, str]
    rounds: List[List[Dict[str, Any]]]
    verdict: Blame
    facts: Dict[str, Dict[str, Any]]

    def as_data(self) -> Dict[str, Any]:
        """Return the search for a JSON document."""
        slow = [{"host": host, "busbw_GB_s": s} for host, s in self.verdict.hosts.items()]
        links = [{"link": list(p), "busbw_GB_s": s} for p, s in self.verdict.links.items()]
        return {"rounds": self.rounds, "slow_hosts": slow, "slow_links": links,
                "cut": self.verdict.cut, "usual_GB_s": self.verdict.usual}  # fmt: skip


def search(job: Job, show: Callable[[str], None]) -> Search:
    """Measure rounds of pairs until it is decided."""
    sizes = GPU_SIZES if job.runs.via == "nccl" else SMALL_SIZES
    effort = Effort(sizes, PAIR_PACE, PAIR_LIMIT)
    hosts, end = job.hosts, time.monotonic() + ALL_LINKS_SECONDS
    seen: Speeds = {}
    problems: Dict[Pair, str] = {}
    rounds: List[List[Dict[str, Any]]] = []
    facts = described(job)
    show("# busbw of pairs over {}, in rounds".format(facts["transport"]))
    while True:
        pairs = next_round(hosts, seen, time.monotonic() < end)
        if not pairs:
            return Search(hosts, seen, problems, rounds, blame_for(hosts, seen), job.facts)
        done = []
        for run in job.runs.measure(pairs, effort, lambda *_: None):
            pair = (run.hosts[0], run.hosts[1])
            wrong = "wrong sums on " + ", ".join(run.wrong) if run.wrong else ""
            problem = run.problem or wrong
            speed = 0.0 if problem else run.speed
            seen.setdefault(pair, []).append(speed)
            problems[pair] = problem or problems.get(pair, "")
            done.append({"pair": list(pair), "busbw_GB_s": speed, "problem": problem})
        rounds.append(done)
        show("round {}: {}".format(len(rounds), "; ".join(map(_in_words, done))))


def _in_words(one: Dict[str, Any]) -> str:
    said = one["problem"] or "{:.3g} GB/s".format(one["busbw_GB_s"])
    return "{} - {} {}".format(*one["pair"], said)


def of_logins(lost: Dict[str, str], hosts: Sequence[str]) -> CheckResult:
    """Return the result of the logins."""
    if not lost:
        return good(LOGIN, "{} answer".format(", ".join(hosts)))
    text = "; ".join("{}: {}".format(*one) for one in lost.items())
    causes, remedies = [], []
    for pattern, cause, remedy in REFUSALS:
        names = [name for name, problem in lost.items() if re.search(pattern, problem)]
        if names:
            causes.append("{}: {}".format(", ".join(names), cause))
            what, look = (one.format(names[0]) for one in (str(remedy), remedy.look))
            remedies.append(Remedy(what, remedy.kind, look, ASK))
    return bad(LOGIN, text, "; ".join(causes), remedies[0] if remedies else NO_REMEDY)


def judged_search(found: Search, seconds: float) -> List[CheckResult]:
    """Return the results for hosts and for links."""
    return [_of_hosts(found, seconds), _of_links(found)]


def _of_hosts(found: Search, seconds: float) -> CheckResult:
    verdict, count = found.verdict, len(found.hosts)
    if count < 3:
        text = "of two hosts none can be told to be the slow one: name a third"
        return CheckResult(HOSTS, NETWORK, SKIPPED, text, reason="needs-peer", seconds=seconds)
    if not verdict.hosts:
        text = "none of {} hosts is slow, {:.3g} GB/s is usual; {} of {} links in {} rounds"
        links = sum(map(len, schedule(found.hosts)))
        values = (count, verdict.usual, len(found.seen), links, len(found.rounds))
        return good(HOSTS, text.format(*values), seconds)
    said = "; ".join(_slow_host(found, host) for host in verdict.hosts)
    names = ",".join(verdict.hosts)
    cause = "" if 2 * len(verdict.hosts) < count else (
        "{} of {} hosts are slow: or the others are nearer to each other, on one machine or"
        " behind one switch".format(len(verdict.hosts), count)
    )  # fmt: skip
    wrong = any("wrong sums" in found.problems.get(pair, "") for pair in found.seen)
    text = "start the job without {}, and have its network repaired"
    if wrong:
        text = "start the job without {}, and have its memory, GPUs and libraries checked"
        cause = cause or WRONG_SUMS
    look = "ssh {} cat /proc/net/dev   # errors and drops of its interface".format(
        next(iter(verdict.hosts))
    )
    return bad(HOSTS, said, cause, on_host(text.format(names), look).leads_to(ASK), seconds)


def _slow_host(found: Search, host: str) -> str:
    speed, usual = found.verdict.hosts[host], found.verdict.usual
    if speed:
        text = "{} is slow with everyone: {:.3g} GB/s at best, {:.3g} GB/s is usual"
        return text.format(host, speed, usual) + _of_interface(found, host)
    said = [text for pair, text in found.problems.items() if host in pair and text]
    return "{} works with nobody: {}".format(host, said[0] if said else "nothing came")


def _of_interface(found: Search, host: str) -> str:
    """Say what differs at the interface of a host."""
    mine = found.facts[host].get("interface") or {}
    others = [found.facts[one].get("interface") or {} for one in found.hosts if one != host]
    differ = []
    for name, unit in (("speed", " Mb/s"), ("mtu", " bytes of MTU")):
        there = {one[name] for one in others if one.get(name)}
        if mine.get(name) and there and mine[name] not in there:
            differ.append("{}{}, others {}".format(mine[name], unit, "/".join(sorted(there))))
    return " ({}: {})".format(mine.get("name"), "; ".join(differ)) if differ else ""


def _of_links(found: Search) -> CheckResult:
    verdict = found.verdict
    if verdict.cut:
        groups = " | ".join(", ".join(group) for group in verdict.cut)
        worst = max(verdict.links.values())
        text = "slow between these groups, fast inside each: {} ({:.3g} GB/s, {:.3g} GB/s is usual)"
        cause = "the way between two switches, or another network for one of the groups"
        some = ",".join(sorted(verdict.cut, key=len)[-1])
        remedy = on_host(
            "start the job on {} only, and have the way to the others repaired".format(some)
        ).leads_to(ASK)
        return bad(LINKS, text.format(groups, worst, verdict.usual), cause, remedy)
    if verdict.links:
        said = "; ".join(_slow_link(found, pair) for pair in verdict.links)
        first = next(iter(verdict.links))
        text = "start the job without {} or without {}, and have the way between them repaired"
        look = "ssh {0} cat /proc/net/dev; ssh {1} cat /proc/net/dev   # errors and drops"
        remedy = on_host(text.format(*first), look.format(*first)).leads_to(ASK)
        alone = len(found.hosts) < 3
        everything = len(verdict.links) == len(found.seen) > 1
        cause = (
            ONE_OF_TWO if alone else "no pair moves data: a firewall, or the settings of all hosts"
        )
        return bad(LINKS, said, cause if alone or everything else "", remedy)
    return _all_alike(found)


def _slow_link(found: Search, pair: Pair) -> str:
    speed = found.verdict.links[pair]
    if not speed:
        return "{} - {}: {}".format(*pair, found.problems.get(pair) or "no data moves")
    text = "{} - {} is slow: {:.3g} GB/s, {:.3g} GB/s is usual"
    return text.format(*pair, speed, found.verdict.usual)


def _all_alike(found: Search) -> CheckResult:
    """Return the result where no link differs: all of them may be slow for their interfaces."""
    slow = set(found.verdict.hosts)
    speeds = [max(some) for pair, some in found.seen.items() if not set(pair) & slow]
    if not speeds:
        return good(LINKS, "no link is without a slow host")
    text = "{} links: {:.3g} to {:.3g} GB/s".format(len(speeds), min(speeds), max(speeds))
    rates = [(one.get("interface") or {}).get("speed", "") for one in found.facts.values()]
    known = [int(rate) / 8000 for rate in rates if rate.isdigit()]
    if found.verdict.hosts or not known or max(speeds) >= LEAST_SHARE * min(known):
        return good(LINKS, text)
    cause = "the network between them, or a transport that does not use these interfaces"
    if len(found.hosts) < 3:
        pair = " - ".join(found.hosts)
        text = "{} is slow: {:.3g} GB/s".format(pair, max(speeds))
        cause = ONE_OF_TWO
    else:
        text += ", and no host or link differs from the others"
    said = "{}; the interfaces have {:.3g} GB/s".format(text, min(known))
    remedy = only_look("validate --peers {} --bandwidth --over mpi".format(",".join(found.hosts)))
    return bad(LINKS, said, cause, remedy)._replace(outcome=WARNED)
