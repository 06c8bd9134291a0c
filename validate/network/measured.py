"""Hold what one run of all_reduce over some hosts gave."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

GIGA = 1e9


class Row(NamedTuple):
    """Hold a line of the sweep: `seconds` is the mean over the ranks, `wrong` counts elements."""

    size: int
    seconds: float
    wrong: int
    ranks: int

    @property
    def algbw(self) -> float:
        """Return GB/s as the caller sees them: size over time."""
        return self.size / self.seconds / GIGA if self.seconds else 0.0

    @property
    def busbw(self) -> float:
        """Return GB/s that a link moves: nccl-tests, doc/PERFORMANCE.md."""
        return self.algbw * 2 * (self.ranks - 1) / self.ranks

    def as_data(self) -> Dict[str, Any]:
        """Return the row for a JSON document, with the units in the names."""
        return {
            "bytes": self.size,
            "count": max(self.size // 4, 1),
            "microseconds": round(self.seconds * 1e6, 3),
            "algbw_GB_s": round(self.algbw, 6),
            "busbw_GB_s": round(self.busbw, 6),
            "wrong": self.wrong,
        }


class Run(NamedTuple):
    """Hold the run of a group of hosts.

    `problem` is empty if it ended well. `left_out` are sizes for which there was no time. `wrong`
    counts wrong elements by host.
    """

    hosts: Tuple[str, ...]
    rows: List[Row]
    problem: str = ""
    left_out: Sequence[int] = ()
    wrong: Dict[str, int] = {}

    @property
    def speed(self) -> float:
        """Return busbw of the largest size in GB/s; 0 if the run is broken."""
        return self.rows[-1].busbw if self.rows and not self.problem else 0.0


class Gathered:
    """Put the messages of the ranks of one group together."""

    def __init__(self, hosts: Sequence[str], counts: Sequence[int]) -> None:
        self.hosts, self.world = tuple(hosts), sum(counts)
        pairs = zip(hosts, counts)  # noqa: B905  (Python 3.6 has no `strict`)
        self._host_of = [host for host, count in pairs for _ in range(count)]
        self._seen: Dict[int, Dict[int, Dict[str, Any]]] = {}
        self.rows: List[Row] = []
        self.left_out: List[int] = []
        self._faults: Dict[str, str] = {}
        self.wrong: Dict[str, int] = {}

    def take(self, message: Dict[str, Any]) -> List[Row]:
        """Take a message of a rank; return the row that it completes, if it does."""
        rank = int(message.get("rank", 0))
        host = self._host_of[rank]
        if message.get("problem"):
            self.fault(host, str(message["problem"]))
        self.left_out = list(message.get("left_out", self.left_out))
        if "size" not in message:
            return []
        if message["wrong"]:
            self.wrong[host] = self.wrong.get(host, 0) + int(message["wrong"])
        ranks = self._seen.setdefault(int(message["size"]), {})
        ranks[rank] = message
        if len(ranks) < self.world:
            return []
        mean = sum(one["seconds"] for one in ranks.values()) / self.world
        wrong = sum(int(one["wrong"]) for one in ranks.values())
        self.rows.append(Row(int(message["size"]), mean, wrong, self.world))
        return self.rows[-1:]

    def fault(self, host: str, problem: str) -> None:
        """Keep what went wrong on a host; of several problems the first one counts."""
        self._faults.setdefault(host, problem)

    def run(self, sizes: Sequence[int]) -> Run:
        """Return the run; sizes that are missing without a word are a problem."""
        texts = list(dict.fromkeys(self._faults.values()))
        named = ("{}: {}".format(*one) if one[0] else one[1] for one in self._faults.items())
        everywhere = len(texts) == 1 and len(self._faults) == len(self.hosts)
        problem = texts[0] if everywhere else "; ".join(named)
        if not problem and len(self.rows) + len(self.left_out) < len(sizes):
            problem = "the ranks ended after {} of {} sizes".format(len(self.rows), len(sizes))
        return Run(self.hosts, self.rows, problem, self.left_out, self.wrong)
