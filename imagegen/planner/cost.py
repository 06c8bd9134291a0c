"""Predict the cost of a layer order: the tree of steps that cells share, in seconds and bytes.

The cost of a step is what the journal measured on this engine for exactly that release, else what
its component.yaml predicts. The order of layers does not depend on measured costs unless a user
asks for that, so that one matrix gives the same recipes on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.model.image import layer_name
from imagegen.planner.chain import SharedLayer, chain_of, chain_of_recipe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from imagegen.journal.journal import Journal
    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec, Pin
    from imagegen.model.recipe import Recipe
    from imagegen.planner.chain import Chain

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Cost:
    """The seconds to run a step and the bytes to keep it, `measured` here or predicted."""

    seconds: float
    size_bytes: int
    measured: bool = False


@dataclass(frozen=True)
class Step:
    """One distinct layer: a component on top of one chain; `cells` are those that use it."""

    chain: Chain
    cost: Cost
    cells: tuple[str, ...]
    above: tuple[Step, ...]

    @property
    def component(self) -> str:
        """Return the component that makes this layer."""
        return self.chain[-1][0]

    @property
    def release(self) -> str:
        """Return the release of the component in this layer."""
        return self.chain[-1][1]


@dataclass(frozen=True)
class Total:
    """A sum over steps; `longest` is the seconds of the longest chain."""

    steps: int
    seconds: float
    size_bytes: int
    longest: float

    def lasting(self, jobs: int) -> float:
        """Compute the least seconds that it takes with this many builds at a time."""
        return max(self.longest, self.seconds / max(1, jobs))


class Prices:
    """Knows what a component costs at each release."""

    def __init__(self, catalog: Catalog, measured: Mapping[tuple[str, str], Cost]) -> None:
        self._catalog, self._measured = catalog, measured

    def of(self, spec: ImageSpec, pin: Pin) -> Cost:
        """Return the cost of a pin.

        A measured value replaces a predicted one, for seconds and for bytes each.
        """
        component = self._catalog.components[pin.component]
        name = layer_name(spec, pin)
        sizes = [component.megabytes.get(word) for word in ("", *name.split())]
        size = next((one for one in sizes if one is not None), 0.0)
        predicted = Cost(component.seconds, round(size * MEGABYTE))
        known = self._measured.get((pin.component, name))
        if known is None:
            return predicted
        return Cost(
            known.seconds or predicted.seconds, known.size_bytes or predicted.size_bytes, True
        )


def prices_of(catalog: Catalog, journal: Journal) -> Prices:
    """Read what steps cost: measured on this engine, else predicted by component.yaml."""
    measured = journal.step_costs()
    return Prices(catalog, {key: Cost(*cost, True) for key, cost in measured.items()})


def measured_seconds(journal: Journal) -> dict[str, float]:
    """Map each component to the seconds of its slowest release, as the journal has them."""
    found: dict[str, float] = {}
    for (component, _), (seconds, _) in journal.step_costs().items():
        if seconds:
            found[component] = max(seconds, found.get(component, 0.0))
    return found


def tree(specs: Sequence[ImageSpec], order: Sequence[str], prices: Prices) -> tuple[Step, ...]:
    """Make the tree of distinct layers of these cells of one OS, the lowest first.

    A cell without a component has no layer of it: its next layer is on top of the one before.
    """
    chains = {spec.cell.id: chain_of(spec, order) for spec in specs}
    costs = {(p.component, layer_name(s, p)): prices.of(s, p) for s in specs for p in s.pins}
    return _above((), chains, costs)


def trees_of(recipes: Iterable[Recipe], prices: Prices) -> dict[str, tuple[Step, ...]]:
    """Map each OS to the distinct layers of recipes, of any matrices, each in its own order."""
    chains: dict[str, dict[str, Chain]] = {}
    costs = {}
    for recipe in recipes:
        spec = recipe.spec
        chains.setdefault(spec.os.id, {})[spec.cell.id] = chain_of_recipe(recipe)
        costs.update({(p.component, layer_name(spec, p)): prices.of(spec, p) for p in spec.pins})
    return {os_id: _above((), found, costs) for os_id, found in chains.items()}


def _above(
    below: Chain, chains: Mapping[str, Chain], costs: Mapping[tuple[str, str], Cost]
) -> tuple[Step, ...]:
    groups: dict[Chain, dict[str, Chain]] = {}
    for cell, chain in chains.items():
        if len(chain) > len(below):
            groups.setdefault(chain[: len(below) + 1], {})[cell] = chain
    return tuple(
        Step(chain, costs[chain[-1]], tuple(cells), _above(chain, cells, costs))
        for chain, cells in groups.items()
    )


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """List all steps, each before those above it."""
    for step in steps:
        yield step
        yield from walk(step.above)


def trunk(trees: Mapping[str, Sequence[Step]]) -> tuple[SharedLayer, ...]:
    """Find, among the layers to make, those that all cells of an OS share; lower ones first."""
    found = []
    for os_id, steps in trees.items():
        every = {cell for step in steps for cell in step.cells}
        while len(every) > 1 and len(steps) == 1 and set(steps[0].cells) == every:
            (step,) = steps
            above = tuple((cell, _above_in(cell, step)) for cell in step.cells)
            found.append(SharedLayer(os_id, step.chain, step.cost.size_bytes, above))
            steps = step.above
    return tuple(found)


def _above_in(cell: str, step: Step) -> float:
    return sum(one.cost.seconds for one in walk(step.above) if cell in one.cells)


def total(steps: Sequence[Step]) -> Total:
    """Sum what these trees cost when each step is made once."""
    every = [*walk(steps)]
    return Total(
        len(every),
        sum(step.cost.seconds for step in every),
        sum(step.cost.size_bytes for step in every),
        _longest(steps),
    )


def unsized(steps: Sequence[Step]) -> tuple[str, ...]:
    """List the components that have a step whose bytes are neither measured nor predicted."""
    return tuple(sorted({step.component for step in walk(steps) if not step.cost.size_bytes}))


def uncounted(components: Sequence[str]) -> str:
    """Write a note about components of unknown size; empty where there is none."""
    if not components:
        return ""
    return f"nobody knows the size of {', '.join(components)}: it counts as nothing"


def unshared(steps: Sequence[Step]) -> Total:
    """Sum what these trees would cost if each cell were built alone."""
    every = [(step, len(step.cells)) for step in walk(steps)]
    return Total(
        sum(count for _, count in every),
        sum(step.cost.seconds * count for step, count in every),
        sum(step.cost.size_bytes * count for step, count in every),
        _longest(steps),
    )


def _longest(steps: Sequence[Step]) -> float:
    return max((step.cost.seconds + _longest(step.above) for step in steps), default=0.0)


def plus(totals: Sequence[Total]) -> Total:
    """Add totals that are built side by side, such as those of several OSes."""
    return Total(
        sum(one.steps for one in totals),
        sum(one.seconds for one in totals),
        sum(one.size_bytes for one in totals),
        max((one.longest for one in totals), default=0.0),
    )


def missing(steps: Sequence[Step], there: set[Chain]) -> tuple[Step, ...]:
    """Return the steps that are not made yet; `there` has the chains of those that are."""
    kept: list[Step] = []
    for step in steps:
        if step.chain in there:
            kept += missing(step.above, there)
        else:
            kept.append(step)
    return tuple(kept)


def left_to_make(
    stale: Sequence[Recipe], up_to_date: Sequence[Recipe], prices: Prices
) -> dict[str, tuple[Step, ...]]:
    """Map each OS to the steps of stale recipes that no up-to-date image has."""
    there = {
        (one.spec.os.id, chain) for one in up_to_date for chain in prefixes([chain_of_recipe(one)])
    }
    return {
        os_id: missing(steps, {chain for os, chain in there if os == os_id})
        for os_id, steps in trees_of(stale, prices).items()
    }


def made_anew(steps: Sequence[Step], component: str) -> tuple[Step, ...]:
    """Find the steps that an edit of a component makes again: its own and those above."""
    found: list[Step] = []
    for step in steps:
        if step.component == component:
            found.append(step)
        else:
            found += made_anew(step.above, component)
    return tuple(found)


def prefixes(chains: Sequence[Chain]) -> set[Chain]:
    """List every chain and every lower part of it."""
    return {chain[:length] for chain in chains for length in range(1, len(chain) + 1)}


def declared_order(
    specs: Sequence[ImageSpec], order: Sequence[str], catalog: Catalog
) -> tuple[str, ...]:
    """Order components as the matrix names them, as in a hand-written Dockerfile.

    What a component needs comes before it. A component that the matrix does not name comes before
    the first one that needs it.
    """
    asked = list(dict.fromkeys(want.component for spec in specs for want in spec.cell.wants))
    present, found = set(order), list[str]()

    def add(name: str) -> None:
        for need in sorted(set(catalog.components[name].needs) & present, key=list(order).index):
            add(need)
        if name not in found:
            found.append(name)

    for name in [*(one for one in asked if one in present), *order]:
        add(name)
    return tuple(found)
