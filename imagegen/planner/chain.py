"""Describe the layers of a cell from the lowest to the highest; cells share their lower layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from imagegen.model.image import layer_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from imagegen.model.image import ImageSpec
    from imagegen.model.recipe import Recipe

Chain = tuple[tuple[str, str], ...]
"""The (component, release) of each layer, the lowest first."""

T = TypeVar("T")


@dataclass(frozen=True)
class SharedLayer:
    """A new layer that all cells of an OS will have.

    `above` has, for each cell, the seconds that the layers above this one are expected to take.
    """

    os_id: str
    chain: Chain
    size_bytes: int
    above: tuple[tuple[str, float], ...]

    @property
    def component(self) -> str:
        """Return the component that makes this layer."""
        return self.chain[-1][0]


def chain_of(spec: ImageSpec, order: Sequence[str]) -> Chain:
    """List the layers of a resolved cell in this order of components."""
    pins = {pin.component: pin for pin in spec.pins}
    return tuple((name, layer_name(spec, pins[name])) for name in order if name in pins)


def chain_of_recipe(recipe: Recipe) -> Chain:
    """List the layers of a recipe, in the order of its Dockerfile."""
    return chain_of(recipe.spec, list(dict.fromkeys(one.component for one in recipe.origins)))


def spread(items: Iterable[T], chain: Callable[[T], Chain]) -> list[T]:
    """Order items so that neighbours share as few layers as possible.

    It takes turns between the groups that differ in their lowest layer, and so on above it. Items
    that are built side by side then seldom wait for the same layer.
    """
    groups: dict[Chain, list[T]] = {}
    for item in items:
        groups.setdefault(chain(item)[:1], []).append(item)
    if list(groups) == [()]:
        return groups[()]
    waiting = [
        spread(group, lambda item: chain(item)[1:]) if first else group
        for first, group in groups.items()
    ]
    longest = max(map(len, waiting), default=0)
    return [group[turn] for turn in range(longest) for group in waiting if turn < len(group)]
