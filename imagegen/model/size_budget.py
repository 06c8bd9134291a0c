"""How large the image of a cell may become: by default 1.2 times the last good one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FACTOR = 1.2
_UNITS = {"MB": 10**6, "GB": 10**9}


@dataclass(frozen=True)
class SizeBudget:
    """How large an image may be.

    `limit_bytes` is absolute, 0 for none; with `factor` 0 the last good image does not count. An
    image over it keeps its old tag if `fails`; else its build only warns.
    """

    factor: float = FACTOR
    limit_bytes: int = 0
    fails: bool = False


DEFAULT = SizeBudget()


def budget_of(row: Mapping[str, str] | None) -> SizeBudget:
    """The key `size_budget` of a matrix, as its schema takes it.

    An absolute size alone takes the place of the factor; both together hold both.
    """
    if row is None:
        return DEFAULT
    size = row.get("size", "")
    number, _, unit = size.partition(" ")
    limit = round(float(number) * _UNITS[unit]) if size else 0
    factor = float(row.get("factor", 0 if limit else FACTOR))
    return SizeBudget(factor, limit, row.get("action") == "fail")
