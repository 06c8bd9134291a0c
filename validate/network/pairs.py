"""Decide which hosts are slow from the speeds of pairs, and which pairs to measure next.

Nothing here measures: all functions get what was seen and return an answer. A pair is as fast as
the slower of its two hosts and of the link between them allows. So a slow host is slow with
everyone, and a slow link with nobody else.
"""

import math
from typing import Dict, List, NamedTuple, Sequence, Tuple

Pair = Tuple[str, str]
Speeds = Dict[Pair, List[float]]
"""Pair, in the order of `hosts` -> every speed in GB/s that was measured; 0 if it did not work."""

SLOW = 0.5
"""The share of the usual speed below which a host or a link is slow."""


NEAR = 0.2
TIMES, TIMES_NEAR = 2, 4
"""How often a pair is measured before it is blamed: more often if a host is slow by less than NEAR,
or if a link works at all, for which no other pair speaks. The best counts: hosts do other work too.
"""


class Blame(NamedTuple):
    """Hold what is slow, with its best speed, and what is usual. A speed of 0 is a broken one.

    `hosts` are slow with everyone. `links` are slow between two hosts that are fast with others.
    `cut` holds groups of hosts that are fast among themselves and slow with each other. `usual` is
    0 if nothing works or if there is nothing to compare with.
    """

    hosts: Dict[str, float]
    links: Dict[Pair, float]
    cut: List[List[str]]
    usual: float

    @property
    def clear(self) -> bool:
        """Return whether nothing is slow."""
        return not (self.hosts or self.links)


def schedule(hosts: Sequence[str]) -> List[List[Pair]]:
    """Return rounds of pairs: every host is in one pair of each, and every pair comes once.

    The hosts stand in two rows, half against half; for each round all but the first go on by one.
    """
    count = len(hosts)
    row = list(range(count + count % 2))
    rounds = []
    for _ in range(len(row) - 1):
        facing = [sorted((row[place], row[-1 - place])) for place in range(len(row) // 2)]
        rounds.append([(hosts[one], hosts[other]) for one, other in facing if other < count])
        row[1:] = [row[-1], *row[1:-1]]
    return rounds


def enough(hosts: Sequence[str]) -> int:
    """Return the number of rounds that name a slow host: its logarithm, and one more."""
    count = max(len(hosts), 2)
    return min(count - 1 + count % 2, math.ceil(math.log2(count)) + 1)


def blame_for(hosts: Sequence[str], seen: Speeds) -> Blame:
    """Name what is slow. Two hosts have nobody to compare with: only a broken link is named."""
    fastest = {pair: max(speeds) for pair, speeds in seen.items()}
    best = _best(hosts, seen)
    usual = sorted(best.values())[len(best) // 2] if len(best) > 2 else 0.0
    works = max(best.values()) > 0 and len(best) > 2
    slow = {h: speed for h, speed in best.items() if speed < SLOW * usual or (works and not speed)}
    links = {
        pair: speed
        for pair, speed in fastest.items()
        if not (set(pair) & set(slow))
        and (speed == 0 or (usual and speed < SLOW * min(best[one] for one in pair)))
    }
    return Blame(slow, links, _cut(hosts, fastest, slow, links), usual)


def _cut(
    hosts: Sequence[str],
    fastest: Dict[Pair, float],
    slow: Dict[str, float],
    links: Dict[Pair, float],
) -> List[List[str]]:
    """Return the groups that fast links hold together, if there are several of two hosts or more.

    A host that stands alone is no group: its links say the same.
    """
    groups = [[host] for host in hosts if host not in slow]
    for first, second in (pair for pair in fastest if pair not in links):
        meeting = [group for group in groups if first in group or second in group]
        if len(meeting) == 2:
            groups.remove(meeting[1])
            meeting[0].extend(meeting[1])
    several = len(groups) > 1 and all(len(group) > 1 for group in groups)
    in_order = [[host for host in hosts if host in group] for group in groups]
    return in_order if several and links else []


def next_round(hosts: Sequence[str], seen: Speeds, time_left: bool) -> List[Pair]:
    """Return pairs to measure at once, none of them with a host in common; empty: it is decided.

    What is slow is measured again before it is blamed, at last alone. Unless slow hosts alone, or
    one link, explain everything that was seen, the search goes on through all links while there is
    time.
    """
    rounds = schedule(hosts)
    left = [one for one in rounds if any(pair not in seen for pair in one)]
    if len(rounds) - len(left) < enough(hosts):
        return [pair for pair in left[0] if pair not in seen]
    verdict = blame_for(hosts, seen)
    again = _disjoint([*_doubtful(hosts, seen, verdict), *_unproven(hosts, seen)])
    if again:
        first_times = all(len(seen.get(pair, ())) < TIMES for pair in again)
        return again if first_times else again[:1]
    simple = bool(verdict.hosts) != bool(verdict.links) and len(verdict.links) < 2
    goes_on = left and time_left and not simple
    return [pair for pair in left[0] if pair not in seen] if goes_on else []


def _doubtful(hosts: Sequence[str], seen: Speeds, verdict: Blame) -> List[Pair]:
    """List the pairs that have to be measured once more, the most important first."""
    found = []
    good = [host for host in hosts if host not in verdict.hosts]
    for host, speed in verdict.hosts.items():
        pairs = [_ordered(hosts, (host, other)) for other in good]
        times = [len(seen.get(pair, ())) for pair in pairs]
        if max(times + [0]) < _times(speed, verdict):
            found += sorted(pairs, key=lambda pair: -len(seen.get(pair, ())))
    links = {} if verdict.cut else verdict.links
    for pair, speed in links.items():
        if len(seen[pair]) < (TIMES_NEAR if speed else TIMES):
            found.append(pair)
    return found


def _times(speed: float, verdict: Blame) -> int:
    return TIMES_NEAR if speed > NEAR * verdict.usual else TIMES


def _unproven(hosts: Sequence[str], seen: Speeds) -> List[Pair]:
    """List pairs of a host that was never fast and one that was, if the two never met.

    A good host may have met slow ones only.
    """
    best = _best(hosts, seen)
    fast = [host for host in hosts if best[host] >= SLOW * max(best.values())]
    found = []
    for host in (one for one in hosts if one not in fast):
        pairs = [_ordered(hosts, (host, other)) for other in fast]
        found += [] if any(pair in seen for pair in pairs) else pairs
    return found


def _best(hosts: Sequence[str], seen: Speeds) -> Dict[str, float]:
    """Return the best speed that each host had with anyone."""
    return {
        host: max([max(speeds) for pair, speeds in seen.items() if host in pair] or [0.0])
        for host in hosts
    }


def _ordered(hosts: Sequence[str], pair: Pair) -> Pair:
    first, second = sorted(pair, key=list(hosts).index)
    return first, second


def _disjoint(pairs: Sequence[Pair]) -> List[Pair]:
    chosen: List[Pair] = []
    for pair in pairs:
        if not any(set(pair) & set(other) for other in chosen):
            chosen.append(pair)
    return chosen
