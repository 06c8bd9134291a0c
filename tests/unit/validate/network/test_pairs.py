"""Find the slow host or link in clusters that are made up."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import pytest

from validate.network.pairs import Blame, Pair, Speeds, blame_for, enough, next_round, schedule

SIZES = (3, 4, 5, 6, 7, 8, 9, 13, 16, 31, 64)


def named(count: int) -> list[str]:
    return [f"h{number}" for number in range(count)]


@dataclass
class Cluster:
    """A pair is as fast as the slower of its hosts and its link; every measurement has noise."""

    hosts: list[str]
    chance: random.Random
    noise: float = 0.2
    speed: dict[str, float] = field(default_factory=dict)
    link: dict[frozenset[str], float] = field(default_factory=dict)
    hiccups: int = 0
    """So many measurements show a tenth of the speed, once."""

    def measure(self, pair: Pair) -> float:
        ends = [self.speed.get(one, 10.0) for one in pair]
        limit = min(*ends, self.link.get(frozenset(pair), 10.0))
        if self.hiccups and self.chance.random() < 0.1:
            self.hiccups -= 1
            limit /= 10
        return limit * self.chance.uniform(1 - self.noise, 1 + self.noise)


def search(cluster: Cluster, time_left: bool = True) -> tuple[Blame, int, Speeds]:
    """Return the verdict, the number of rounds, and what was measured."""
    seen: Speeds = {}
    rounds = 0
    while pairs := next_round(cluster.hosts, seen, time_left):
        ends = [one for pair in pairs for one in pair]
        assert len(ends) == len(set(ends)), "two pairs of a round share a host"
        for pair in pairs:
            seen.setdefault(pair, []).append(cluster.measure(pair))
        rounds += 1
        assert rounds <= len(cluster.hosts) + 8
    return blame_for(cluster.hosts, seen), rounds, seen


@pytest.mark.parametrize("count", [2, *SIZES])
def test_every_pair_once_and_no_host_twice_in_a_round(count: int) -> None:
    hosts = named(count)
    rounds = schedule(hosts)
    pairs = [pair for one in rounds for pair in one]
    assert len(pairs) == len(set(pairs)) == count * (count - 1) // 2
    assert all(hosts.index(first) < hosts.index(second) for first, second in pairs)
    for one in rounds:
        ends = [host for pair in one for host in pair]
        assert len(ends) == len(set(ends)) == count // 2 * 2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("share", [0.3, 0.05, 0.0])
def test_one_slow_or_broken_host_is_named_within_few_rounds(
    count: int, seed: int, share: float
) -> None:
    chance = random.Random(f"{count} {seed} {share}")
    culprit = chance.choice(named(count))
    cluster = Cluster(named(count), chance, speed={culprit: 10 * share})
    verdict, rounds, _ = search(cluster)
    assert list(verdict.hosts) == [culprit]
    assert not verdict.links
    assert rounds <= math.ceil(math.log2(count)) + 4


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [n for n in SIZES if n > 4])
def test_all_slow_hosts_are_named_while_most_are_fast(count: int, seed: int) -> None:
    chance = random.Random(f"{count} {seed}")
    culprits = chance.sample(named(count), (count - 1) // 2)
    speeds = {one: chance.uniform(0.0, 3.0) for one in culprits}
    verdict, _, _ = search(Cluster(named(count), chance, speed=speeds))
    assert sorted(verdict.hosts) == sorted(culprits)
    assert not verdict.links


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("speed", [2.5, 0.01, 0.0])
def test_one_slow_link_is_named_and_no_host(count: int, seed: int, speed: float) -> None:
    chance = random.Random(f"{count} {seed} {speed}")
    pair = chance.sample(named(count), 2)
    verdict, _, _ = search(Cluster(named(count), chance, link={frozenset(pair): speed}))
    assert not verdict.hosts
    assert [set(one) for one in verdict.links] == [set(pair)]


@pytest.mark.parametrize("count", [4, 8, 16])
def test_a_slow_host_and_a_slow_link_elsewhere(count: int) -> None:
    hosts = named(count)
    rounds = schedule(hosts)
    link = next(pair for pair in rounds[0] if "h1" not in pair)
    cluster = Cluster(hosts, random.Random(count), speed={"h1": 1.0}, link={frozenset(link): 1.0})
    verdict, _, _ = search(cluster)
    assert list(verdict.hosts) == ["h1"]
    assert list(verdict.links) == [link]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [2, *SIZES])
@pytest.mark.parametrize("speed", [10.0, 0.001])
def test_nobody_is_blamed_where_all_are_alike(count: int, seed: int, speed: float) -> None:
    speeds = dict.fromkeys(named(count), speed)
    verdict, rounds, seen = search(Cluster(named(count), random.Random(seed), speed=speeds))
    assert verdict.clear
    assert rounds == len(schedule(named(count)))
    assert len(seen) == count * (count - 1) // 2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [4, 8, 16])
def test_one_bad_moment_blames_nobody(count: int, seed: int) -> None:
    """What looked slow once is measured again, and the better figure counts."""
    cluster = Cluster(named(count), random.Random(seed), hiccups=1)
    assert search(cluster)[0].clear


@pytest.mark.parametrize("speed", [0.5, 0.0])
def test_of_two_hosts_neither_is_blamed(speed: float) -> None:
    cluster = Cluster(named(2), random.Random(1), speed={"h1": speed})
    verdict, _, _ = search(cluster)
    assert not verdict.hosts
    assert list(verdict.links) == ([("h0", "h1")] if speed == 0 else [])


@pytest.mark.parametrize("count", [4, 6, 8, 16, 20])
def test_two_groups_that_are_slow_with_each_other_are_a_cut(count: int) -> None:
    hosts = named(count)
    left, right = hosts[: count // 2], hosts[count // 2 :]
    across = {frozenset((one, other)): 0.5 for one in left for other in right}
    verdict, _, _ = search(Cluster(hosts, random.Random(count), link=across))
    assert not verdict.hosts
    assert sorted(map(sorted, verdict.cut)) == [sorted(left), sorted(right)]


def test_nothing_works_at_all() -> None:
    verdict, _, _ = search(Cluster(named(4), random.Random(1), speed=dict.fromkeys(named(4), 0.0)))
    assert (verdict.hosts, verdict.usual, len(verdict.links)) == ({}, 0.0, 6)


def test_without_time_a_large_cluster_ends_after_the_rounds_that_name_a_host() -> None:
    hosts = named(64)
    _, rounds, seen = search(Cluster(hosts, random.Random(1)), time_left=False)
    assert rounds == enough(hosts) == 7
    assert len(seen) == 7 * 32
