"""Choose whom to blame for a collision: the fewest constraints that have no answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.model.constraint import ANY, NONE
from imagegen.resolver.candidates import DRIVER
from imagegen.resolver.propagation import domains_of
from imagegen.resolver.search import best_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.model.cell import Want
    from imagegen.resolver.candidates import Edge, Space
    from imagegen.resolver.propagation import Domains


def fits(space: Space, wants: Sequence[Want], *, allow_unknown: bool = False) -> bool:
    """Say whether constraints have an answer."""
    return best_answer(domains_of(space, wants, allow_unknown=allow_unknown)) is not None


def fewest(space: Space, wants: Sequence[Want], *, allow_unknown: bool) -> list[Want]:
    """Return the constraints to blame: as many others as possible are open while nothing fits.

    A constraint is opened (`any`), so that its component stays in the image. One that says nothing
    about a version (`any`, `none`) is dropped.
    """
    strict = [want for want in wants if want.constraint != ANY]
    pair = _pair(domains_of(space, wants, allow_unknown=allow_unknown), strict)
    if pair:
        return pair
    core = [(want, want) for want in wants]

    def fit(some: Sequence[tuple[Want, Want]]) -> bool:
        return fits(space, [now for _, now in some], allow_unknown=allow_unknown)

    for want in sorted(wants, key=lambda want: want.asked_by != "every image"):
        drops = want.constraint in (ANY, NONE) or want.component == DRIVER
        rest = [one for one in core if not (drops and one[0] is want)]
        opened = [(one, replace(now, constraint=ANY) if one is want else now) for one, now in rest]
        if not fit(opened):
            core = opened
    blamed = [
        one for one in core if one[1].constraint != ANY or fit([o for o in core if o is not one])
    ]
    return [want for want, _ in blamed or core]


def _pair(domains: Domains, strict: Sequence[Want]) -> list[Want]:
    """Find the first two constraints that directly exclude each other; empty if there are none."""
    start, statements = domains.asked, {want.component: _says(domains, want) for want in strict}
    for one in strict:
        for other in strict:
            first, second = one.component, other.component
            if first == second or not start[first] or not start[second]:
                continue
            allowed = _allowed(statements[second])
            for edges in statements[first]:
                masks = [(edge.target, edge.mask) for edge in edges]
                here = [mask & start[second] for target, mask in masks if target == second]
                third = [mask & allowed[name] for name, mask in masks if name in allowed]
                if all([*here, *third]):
                    break
            else:
                return [want for want in strict if want in (one, other)]
    return []


def _says(domains: Domains, want: Want) -> list[tuple[Edge, ...]]:
    """List what each candidate of a constraint requires of others."""
    name = want.component
    asked = domains.asked[name]
    return [*domains.space.statements_of(name, asked, domains.present, domains.choice).values()]


def _allowed(statements: Sequence[tuple[Edge, ...]]) -> dict[str, int]:
    """Map each name that all candidates mention to what any of them accepts there."""
    spoken = [{edge.target for edge in edges} for edges in statements]
    everywhere = set.intersection(*spoken) if spoken else set()
    allowed = dict.fromkeys(everywhere, 0)
    for edges in statements:
        for edge in edges:
            if edge.target in allowed:
                allowed[edge.target] |= edge.mask
    return allowed
