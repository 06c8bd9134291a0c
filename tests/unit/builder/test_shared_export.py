"""Test which cell packs a large layer that several cells share, and which cells wait for it."""

from __future__ import annotations

import pytest

from imagegen.builder.shared_export import LARGE, PACKED_A_SECOND, SharedExport
from imagegen.planner.chain import SharedLayer

PYTHON, TORCH, CUDA = ("python", "3"), ("torch", "2"), ("cuda", "12")
SECONDS = LARGE / PACKED_A_SECOND


def layer(*chain: tuple[str, str], size: int = LARGE, **above: float) -> SharedLayer:
    return SharedLayer("debian12", chain, size, tuple(above.items()))


BIG = layer(PYTHON, TORCH, one=4.0, two=4.0, three=0.0)


def family(above: float = 0.0) -> list[SharedLayer]:
    """Return three cells on PyTorch; the third one has `above` seconds of work above it."""
    small = layer(PYTHON, size=LARGE - 1, one=9.0, two=9.0, three=9.0)
    return [small, layer(PYTHON, TORCH, one=4.0, two=4.0, three=above)]


def waits(packing: SharedExport, cell: str) -> bool:
    return bool(packing.waits_for(cell))


def test_without_large_layers_nobody_packs_and_nobody_waits() -> None:
    packing = SharedExport()
    packing.begin("one")
    assert (packing.own("one"), waits(packing, "two")) == (None, False)


def test_the_first_cell_packs_and_the_others_wait() -> None:
    packing = SharedExport(family())
    assert not waits(packing, "two")
    packing.begin("one")
    assert packing.own("one") == BIG
    assert [waits(packing, cell) for cell in ("one", "two", "three")] == [False, True, True]
    assert packing.waits_for("two") == "one to export torch for 3 images"
    assert packing.layers == {("debian12", BIG.chain)}
    packing.end("two")
    assert waits(packing, "three")
    packing.end("one")
    assert packing.own("one") is None
    packing.begin("two")
    assert (waits(packing, "three"), packing.own("two")) == (False, None)


def test_of_two_large_layers_the_upper_one_is_packed_and_the_lower_with_it() -> None:
    upper = layer(PYTHON, TORCH, CUDA, one=0.0, two=0.0, three=0.0)
    packing = SharedExport([*family(), upper])
    packing.begin("one")
    assert packing.own("one") == upper


@pytest.mark.parametrize(("above", "wait"), [(SECONDS - 0.1, True), (SECONDS, False)])
def test_a_cell_that_is_busy_for_longer_than_the_packing_begins_meanwhile(
    above: float, wait: bool
) -> None:
    packing = SharedExport(family(above))
    packing.begin("one")
    assert waits(packing, "three")
    own = packing.own("one")
    assert own is not None
    packing.made(own)
    assert waits(packing, "three") is wait
    assert waits(packing, "two")
