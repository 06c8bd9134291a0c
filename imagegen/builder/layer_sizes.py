"""Which bytes of an image each step of its recipe made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.renderer.dockerfile import COUNTED, instructions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagegen.model.recipe import Recipe


def layer_sizes(
    recipe: Recipe, history: Sequence[tuple[str, int]]
) -> Mapping[tuple[str, int], int]:
    """(stage, index) -> bytes, for the steps of the chain that the image stands on.

    By position alone: where two stages stand on one, BuildKit of Docker 20.10 writes instructions
    of the one into the history of the other (the sizes stay where they are).
    Counted from the end: a base image may bring a history of its own. Empty where the history is
    shorter than the recipe, as when an engine squashed it.
    """
    made = [size for text, size in history if text.split(" ", 1)[0] in COUNTED]
    chain = [origin for origin in recipe.origins if origin.stage == origin.component]
    last = sum(one.counted and one.stage == "image" for one in instructions(recipe.dockerfile))
    if len(made) < len(chain) + last:
        return {}
    ours = made[len(made) - len(chain) - last : len(made) - last]
    return {(one.stage, one.index): size for one, size in zip(chain, ours, strict=True)}
