"""Who packs a large layer that several cells stand on, and who waits for it."""

from __future__ import annotations

import pytest

from imagegen.chain import SharedLayer
from imagegen.packing import LARGE, PACKED_A_SECOND, Packing

PYTHON, TORCH, CUDA = ("python", "3"), ("torch", "2"), ("cuda", "12")
SECONDS = LARGE / PACKED_A_SECOND


def layer(*chain: tuple[str, str], size: int = LARGE, **above: float) -> SharedLayer:
    return SharedLayer("debian12", chain, size, tuple(above.items()))


BIG = layer(PYTHON, TORCH, one=4.0, two=4.0, three=0.0)


def family(above: float = 0.0) -> list[SharedLayer]:
    """Three cells on PyTorch, the third with this much to do above it."""
    small = layer(PYTHON, size=LARGE - 1, one=9.0, two=9.0, three=9.0)
    return [small, layer(PYTHON, TORCH, one=4.0, two=4.0, three=above)]


def test_without_large_layers_nobody_packs_and_nobody_waits() -> None:
    packing = Packing()
    packing.begin("one")
    assert (packing.unpacked("one"), packing.waits("two")) == ((), False)


def test_the_first_cell_packs_and_the_others_wait() -> None:
    packing = Packing(family())
    assert not packing.waits("two")
    packing.begin("one")
    assert packing.unpacked("one") == (BIG,)
    assert [packing.waits(cell) for cell in ("one", "two", "three")] == [False, True, True]
    packing.packed(BIG)
    assert packing.unpacked("one") == ()
    packing.begin("two")
    assert (packing.waits("three"), packing.unpacked("two")) == (False, ())


def test_of_two_large_layers_the_upper_one_is_packed_and_the_lower_with_it() -> None:
    upper = layer(PYTHON, TORCH, CUDA, one=0.0, two=0.0, three=0.0)
    packing = Packing([*family(), upper])
    packing.begin("one")
    assert packing.unpacked("one") == (upper,)


def test_what_a_cell_did_not_come_to_pack_is_for_the_next() -> None:
    packing = Packing(family())
    packing.begin("one")
    packing.end("one")
    assert not packing.waits("two")
    packing.begin("two")
    assert packing.unpacked("two") == (BIG,)


@pytest.mark.parametrize(("above", "waits"), [(SECONDS - 0.1, True), (SECONDS, False)])
def test_a_cell_that_is_busy_for_longer_than_the_packing_begins_meanwhile(
    above: float, waits: bool
) -> None:
    packing = Packing(family(above))
    packing.begin("one")
    assert packing.waits("three")
    packing.made(*packing.unpacked("one"))
    assert packing.waits("three") is waits
    assert packing.waits("two")


def test_a_layer_that_has_to_be_made_again_is_waited_for_again() -> None:
    packing = Packing(family(SECONDS))
    packing.begin("one")
    packing.made(*packing.unpacked("one"))
    packing.end("one")
    packing.begin("two")
    assert packing.waits("three")
