"""Make one error of all builds that failed: a problem for each cause, with its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.builder.size_budget import OVER_BUDGET
from imagegen.errors import BuildError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from imagegen.model.build import BuildRecord

HINTS = {
    "network": "check the connection and proxies (`imagegen doctor`), then run it again",
    "certificate": "give the CA bundle of your network: `--ca-bundle FILE`",
    "version conflict": "correct the versions in the catalog: they exclude one another",
    "upstream gone": "correct the version or source in the catalog, or use a mirror: "
    "`imagegen check-sources` names all that is gone",
    "compile error": "look around before the step: the line `this step alone`, with `--shell`",
    "disk full": "free disk on the engine: `imagegen prune`, then run it again",
    "out of memory": "build fewer at a time: `--jobs 1`",
    "engine died": "imagegen doctor, then `imagegen build --resume`",
    "engine refused": "imagegen doctor",
    "cancelled": "`imagegen build --resume` goes on where this run ended",
    "base": "imagegen doctor --fix",
    OVER_BUDGET: "make it smaller, or say in its matrix how large it may be: `size_budget`",
    "validation": "mend the image, or build with `--no-validate` to look inside",
}
"""What a user can do about each cause of `engine.causes`, and about causes of the build itself."""


def build_failures(records: Iterable[BuildRecord]) -> BuildError | None:
    """Make one error of all cells that were not built, with a problem for each cause.

    Returns None where every cell was built or was up to date.
    """
    by_cause: dict[str, list[BuildRecord]] = {}
    for record in records:
        if record.outcome not in ("built", "up-to-date"):
            by_cause.setdefault(record.cause, []).append(record)
    if not by_cause:
        return None
    return BuildError(*(_problem(cause, lost) for cause, lost in sorted(by_cause.items())))


def _problem(cause: str, lost: list[BuildRecord]) -> Problem:
    several = (
        f"{len(lost)} builds failed" if len(lost) > 1 else f"build of `{lost[0].cell_id}` failed"
    )
    return Problem(
        f"{several}: {cause}",
        evidence=tuple(line for record in lost for line in _told(record)),
        hint=HINTS.get(cause, f"read the full log: {lost[0].log}"),
    )


def _told(record: BuildRecord) -> list[str]:
    after = f" after {record.seconds:.0f} s" if record.seconds else ""
    return [f"{record.cell_id}{after}", *(f"  {line}" for line in record.detail)]
