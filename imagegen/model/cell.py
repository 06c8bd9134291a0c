"""Define a cell: one point of a matrix, before it is resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


BaseMode = Literal["auto", "registry", "bootstrap"]

PROFILES = ("plain", "cpu", "gpu", "rdma", "harp")
"""The profiles that a container can be launched for.

validate/requirements.py says what each one requires; a test checks that both have the same ones.
"""
MATRIX_PROFILES = tuple(name for name in PROFILES if name not in ("cpu", "gpu"))
"""The profiles that an image can be made for.

Whether an image computes on a GPU follows from its components.
"""


@dataclass(frozen=True)
class Want:
    """A constraint on a component (`1.13`, `>=1,<2`, `any`, `none`, a variant), and who asked."""

    component: str
    constraint: str
    asked_by: str


@dataclass(frozen=True)
class Omission:
    """A component that a cell does not have, and the reason."""

    component: str
    reason: str


@dataclass(frozen=True)
class User:
    """The user that the containers of an image run as, in place of root."""

    name: str
    uid: int

    @property
    def home(self) -> str:
        """Return the home folder."""
        return f"/home/{self.name}"


@dataclass(frozen=True)
class Cell:
    """One point of a matrix, before it is resolved.

    `name` is unique in its matrix; `env` is what the matrix sets in its images; `notes` explain the
    choice of components. Where `user` is None, containers run as root.
    """

    matrix: str
    name: str
    values: Mapping[str, str]
    wants: tuple[Want, ...]
    omitted: tuple[Omission, ...]
    tag: str
    profile: str
    base: BaseMode
    file: str
    line: int
    allow_unknown: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    size_budget: SizeBudget | None = None
    user: User | None = None

    @property
    def id(self) -> str:
        """Return `matrix/name`, which is unique over all matrices."""
        return f"{self.matrix}/{self.name}"


FACTOR = 1.2
_UNITS = {"MB": 10**6, "GB": 10**9}


@dataclass(frozen=True)
class SizeBudget:
    """The largest size that an image may have.

    `factor` is relative to the last good image, 0 for no such limit; `limit_bytes` is absolute, 0
    for none. With `fails`, an image over its budget fails and the old tag stays; else its build
    only warns.
    """

    factor: float = FACTOR
    limit_bytes: int = 0
    fails: bool = False


DEFAULT = SizeBudget()


def budget_of(row: Mapping[str, str] | None) -> SizeBudget:
    """Read the key `size_budget` of a matrix, in the form that its schema accepts.

    An absolute size alone replaces the factor; if both are given, both hold.
    """
    if row is None:
        return DEFAULT
    size = row.get("size", "")
    number, _, unit = size.partition(" ")
    limit = round(float(number) * _UNITS[unit]) if size else 0
    factor = float(row.get("factor", 0 if limit else FACTOR))
    return SizeBudget(factor, limit, row.get("action") == "fail")
