"""Define the result of `validate` on an image."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - `events.stream` reads the types of fields
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing import NotRequired


class Check(TypedDict):
    """A check in a report; a report of an older release may lack what is not required here."""

    id: str
    suite: str
    outcome: str
    measured: str
    tier: NotRequired[str]
    severity: NotRequired[str]
    proves: NotRequired[str]
    cause: NotRequired[str]
    remedy: NotRequired[str]
    remedy_kind: NotRequired[str]
    action: NotRequired[str]
    look: NotRequired[str]
    reason: NotRequired[str]
    seconds: NotRequired[float]
    earlier: NotRequired[str]


class RunDigest(TypedDict, total=False):
    """When a run was, the digest of its inputs, and whether all suites ran."""

    at: str
    digest: str
    whole: bool


class Report(TypedDict, total=False):
    """The document of `validate --json`; validate/report.schema.json describes it."""

    schema: int
    host: str
    how: str
    image: str
    tool: str
    id: str
    basis: RunDigest
    unloaded: list[str]
    tier: str
    counts: dict[str, int]
    skips: dict[str, int]
    seconds: float
    exit_code: int
    missing: list[str]
    verdict: dict[str, str]
    bandwidth: dict[str, object]
    find_slow: dict[str, object]
    checks: list[Check]


@dataclass(frozen=True)
class ValidationRecord:
    """The result of `validate` in a container of an image.

    `tier` is `static`, `full`, `partial` or `soft-roce`; `counts` maps outcomes to numbers.
    """

    image_id: str
    tag: str
    tier: str
    passed: bool
    counts: Mapping[str, int]
    seconds: float
    report: Report = field(default_factory=Report)


@dataclass(frozen=True)
class Proof:
    """Say that an image with these pins was built and validated, and with which result.

    `at` is the time in UTC, `image` the id of the image, `recipe` the digest of its recipe, `pins`
    its OS and components, each as `version` or `version variant`. `suites` are those that passed
    with nothing left out for lack of hardware; `failed` are checks.
    """

    matrix: str
    cell: str
    at: str
    tier: str
    passed: bool
    image: str
    recipe: str
    tool: str
    pins: Mapping[str, str]
    suites: tuple[str, ...]
    failed: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Return what a later proof of the same has in common with it."""
        return self.matrix, tuple(sorted(self.pins.items())), self.tier, self.passed
