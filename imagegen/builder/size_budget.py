"""Compare the size of a new image with the budget of its cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.text import human_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.model.build import BuildRecord, StepRecord
    from imagegen.model.cell import SizeBudget

OVER_BUDGET = "size budget"
"""The cause of a failed build whose image is too large to get its tag."""

MOST_LAYERS = 5


@dataclass(frozen=True)
class Overrun:
    """Describe an image that is larger than its budget.

    `grew` names the layers that became larger, each with the bytes that were added.
    """

    size_bytes: int
    allowed_bytes: int
    why: str
    grew: tuple[tuple[str, int], ...] = ()
    last_id: str = ""

    def lines(self, image_id: str) -> tuple[str, ...]:
        """Write the message for the user: the sizes, the layers that grew most, what to run."""
        size, allowed = human_bytes(self.size_bytes), human_bytes(self.allowed_bytes)
        first = f"{size} is over the size budget of {allowed}: {self.why}"
        grew = [f"  {name}: {human_bytes(grew)} more" for name, grew in self.grew]
        more = [f"  imagegen diff {self.last_id[7:19]} {image_id[7:19]}"] if self.last_id else []
        return (first, *grew, *more)


def overrun(
    budget: SizeBudget, size_bytes: int, steps: Sequence[StepRecord], last: BuildRecord | None
) -> Overrun | None:
    """Find out by how much an image is larger than its budget; None where it is not.

    `last` is the last good build of the same cell.
    """
    allowed = []
    if budget.limit_bytes:
        allowed.append((budget.limit_bytes, "`size_budget` of its matrix"))
    if last is not None and last.size_bytes and budget.factor:
        was = f"{budget.factor:g} x the last good image, {human_bytes(last.size_bytes)}"
        allowed.append((round(budget.factor * last.size_bytes), was))
    if not allowed or size_bytes <= min(allowed)[0]:
        return None
    least, why = min(allowed)
    if last is None:
        return Overrun(size_bytes, least, why)
    return Overrun(size_bytes, least, why, _grown(steps, last.steps), last.image_id)


def _grown(
    steps: Sequence[StepRecord], before: Sequence[StepRecord]
) -> tuple[tuple[str, int], ...]:
    """List (component and release, added bytes), largest first, compared with the last build.

    Layers are compared by component, whatever release each had.
    """
    was = Counter[str]()
    now = Counter[str]()
    for counted, some in ((was, before), (now, steps)):
        for step in some:
            counted[step.component] += step.size_bytes
    titles = {step.component: f"{step.component} {step.release}".strip() for step in steps}
    grew = [
        (titles[component], now[component] - was[component]) for component in titles if component
    ]
    largest = sorted(grew, key=lambda one: (-one[1], one[0]))[:MOST_LAYERS]
    return tuple(one for one in largest if one[1] > 0)
