"""Describe one row of the speed targets: the contenders, their results and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GIGABYTE = 1e9


@dataclass(frozen=True)
class Contender:
    """Hold the wall and CPU seconds of every run of one contender.

    CPU seconds include those of the engine if the run had an engine of its own. `disk_bytes` is
    what the engine has on the disk afterwards; None if that is not compared.
    """

    name: str
    seconds: tuple[float, ...]
    cpu: tuple[float, ...]
    disk_bytes: int | None = None

    @classmethod
    def of(
        cls, name: str, taken: Iterable[tuple[float, float]], disk_bytes: int | None = None
    ) -> Contender:
        """Make a contender from (wall seconds, CPU seconds) of each run."""
        wall, cpu = zip(*taken, strict=True)
        return cls(name, wall, cpu, disk_bytes)

    @property
    def median(self) -> float:
        """Return the median of the wall seconds."""
        return median(self.seconds)


@dataclass(frozen=True)
class Target:
    """Hold what was asked for, what was found, and the reason if that is not enough."""

    text: str
    found: str
    met: bool
    why: str = ""

    def __str__(self) -> str:
        reason = f" Why: {self.why}" if self.why else ""
        return f"- {self.text}: **{'met' if self.met else 'missed'}**, {self.found}.{reason}"


@dataclass(frozen=True)
class Row:
    """Hold one row; the first contender is imagegen, and ratios are of the others to it."""

    number: int
    title: str
    about: str
    versions: str
    contenders: tuple[Contender, ...]
    targets: tuple[Target, ...]
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Write the section of the page."""
        disk = any(one.disk_bytes is not None for one in self.contenders)
        return [
            f"## Row {self.number}: {self.title}",
            "",
            self.about,
            "",
            f"{self.versions}.",
            "",
            *_table(self.contenders, disk),
            "",
            *map(str, self.targets),
            *([""] if self.targets and self.notes else []),
            *self.notes,
            "",
        ]


def _table(contenders: Sequence[Contender], disk: bool) -> list[str]:
    own = contenders[0]
    size = " disk |" if disk else ""
    lines = [
        f"| | median of {len(own.seconds)} | all runs | CPU | to imagegen |{size}",
        f"|---|---:|---|---:|---:|{'---:|' if disk else ''}",
    ]
    for one in contenders:
        runs = ", ".join(f"{second:.2f}" for second in sorted(one.seconds))
        size = f" {(one.disk_bytes or 0) / GIGABYTE:.2f} GB |" if disk else ""
        lines.append(
            f"| {one.name} | {one.median:.2f} s | {runs} | {median(one.cpu):.2f} s "
            f"| {one.median / own.median:.2f} |{size}"
        )
    return lines
