"""Find the order of components that makes a family of images cheapest to build.

Layers are a chain. Appending component d after the set S costs U(S + d) x seconds(d), where U(S) is
the number of distinct value-tuples that the cells take on S, whatever the order inside S. That cost
is paid once for a build from nothing, and again each time that a component of S changes; `churn` is
the number of such changes for each build from nothing. So the cheapest order that respects `needs`
is found by a dynamic programme over subsets: exact, 2^n x n steps, n <= 16. A component's own steps
are made again when it changes; that is not counted, because the change is made for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec, Pin

MOST_COMPONENTS = 16
ABSENT = "-"


def layer_orders(
    specs: Sequence[ImageSpec], catalog: Catalog, measured: Mapping[str, float]
) -> dict[str, tuple[str, ...]]:
    """Map each OS id to the order of its components' layers, over all cells on that OS.

    `measured` overrides the seconds that component.yaml predicts, where a journal has them.
    """
    orders = {}
    for os_id in sorted({spec.os.id for spec in specs}):
        family = [spec for spec in specs if spec.os.id == os_id]
        orders[os_id] = _order_of(family, catalog, measured)
    return orders


def _order_of(
    family: Sequence[ImageSpec], catalog: Catalog, measured: Mapping[str, float]
) -> tuple[str, ...]:
    names = sorted({pin.component for spec in family for pin in spec.pins})
    pins = [{pin.component: pin for pin in spec.pins} for spec in family]
    values = {
        name: tuple(_value(spec, own.get(name)) for spec, own in zip(family, pins, strict=True))
        for name in names
    }
    seconds = {name: measured.get(name, catalog.components[name].seconds) for name in names}
    churn = {name: catalog.components[name].churn for name in names}
    needs = {name: set(catalog.components[name].needs) & set(names) for name in names}
    return cheapest_order(values, seconds, churn, needs)


def _value(spec: ImageSpec, pin: Pin | None) -> str:
    """Name what makes a layer distinct: the row, and the values chosen for its virtual names."""
    if pin is None:
        return ABSENT
    chosen = [spec.given[one] for one in sorted(pin.release.requires) if one in spec.given]
    return "=".join([pin.release.variant, pin.version, *chosen])


def distinct_steps(values: Mapping[str, Sequence[str]], subset: Sequence[str], last: str) -> int:
    """Count the different layers (U) that component `last` makes after the rest of `subset`.

    A cell without `last` makes no layer of it.
    """
    columns = [values[name] for name in subset]
    rows = set(zip(*columns, values[last], strict=True))
    return sum(row[-1] != ABSENT for row in rows)


class _Steps:
    """Counts distinct steps, once for each set of components.

    Components in which no two cells differ change no count.
    """

    def __init__(self, values: Mapping[str, Sequence[str]]) -> None:
        self._values = values
        self._varying = frozenset(name for name, own in values.items() if len(set(own)) > 1)
        self._known: dict[tuple[frozenset[str], str], int] = {}

    def after(self, subset: Sequence[str], last: str) -> int:
        """Count the distinct layers of component `last` after the components of `subset`."""
        key = (self._varying.intersection(subset), last)
        if key not in self._known:
            self._known[key] = distinct_steps(self._values, sorted(key[0]), last)
        return self._known[key]


def cheapest_order(
    values: Mapping[str, Sequence[str]],
    seconds: Mapping[str, float],
    churn: Mapping[str, float],
    needs: Mapping[str, set[str]],
) -> tuple[str, ...]:
    """Find the order that takes the fewest seconds, for one build and the changes after it.

    `values[c]` are the values that each cell takes on component c, `churn[c]` how often c changes
    for each build from nothing. Of equal orders the alphabetically first one wins. Raises
    ConfigError for a cycle in `needs`, or for more components than the exact search can handle.
    """
    names = sorted(values)
    if len(names) > MOST_COMPONENTS:
        raise ConfigError.of(f"{len(names)} components in one matrix; at most {MOST_COMPONENTS}")
    steps = _Steps(values)
    best: dict[int, tuple[float, tuple[str, ...]]] = {0: (0.0, ())}
    builds = [1.0]
    for subset in range(1, 1 << len(names)):
        first = subset & -subset
        builds.append(builds[subset ^ first] + churn[names[first.bit_length() - 1]])
        options = []
        for bit, name in enumerate(names):
            before = best.get(subset & ~(1 << bit)) if subset & (1 << bit) else None
            if before is None or not needs[name] <= set(before[1]):
                continue
            again = builds[subset & ~(1 << bit)]
            cost = before[0] + steps.after(before[1], name) * seconds[name] * again
            options.append((round(cost, 6), (*before[1], name)))
        if options:
            best[subset] = min(options)
    whole = best.get((1 << len(names)) - 1)
    if whole is None:
        raise ConfigError.of(
            "the components need one another in a circle", evidence=[", ".join(names)]
        )
    return whole[1]
