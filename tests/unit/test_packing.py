"""Who packs a large layer that several cells stand on, and who waits for it."""

from __future__ import annotations

import pytest

from imagegen.chain import SharedLayer
from imagegen.packing import LARGE, PACKED_A_SECOND, Packing

PYTHON, TORCH, CUDA = ("python", "3"), ("torch", "2"), ("cuda", "12")
SECONDS = LARGE / PACKED_A_SECOND


def layer(*chain: tuple[str, str], size: int = LARGE, **above: float) -> SharedLayer:
    return SharedLayer("debian12", chain, size, tuple(above.items()))


BIG = layer(PYTHON, TORCH, one=4.0, two=4.0, three=0.0, four=0.0)
TOP = layer(PYTHON, TORCH, CUDA, size=2 * LARGE, one=0.0, two=0.0)


def family(above: float = 0.0) -> list[SharedLayer]:
    """Four cells on PyTorch: two on CUDA too, one with more to do above, one with nothing more."""
    small = layer(PYTHON, size=LARGE - 1, one=9.0, two=9.0, three=9.0, four=9.0)
    big = layer(PYTHON, TORCH, one=4.0, two=4.0, three=above, four=0.0)
    return [small, big, TOP]


def test_without_large_layers_nobody_packs_and_nobody_waits() -> None:
    packing = Packing()
    packing.begin("one")
    assert (packing.unpacked("one"), packing.waits("two")) == ((), False)


def test_the_first_cell_packs_from_the_lowest_layer_up_and_the_others_wait() -> None:
    packing = Packing(family())
    assert not packing.waits("two")
    packing.begin("one")
    assert packing.unpacked("one") == (BIG, TOP)
    assert [packing.waits(cell) for cell in ("one", "two", "three", "four")] == [
        False,
        True,
        True,
        True,
    ]
    packing.packed(BIG)
    assert packing.unpacked("one") == (TOP,)
    assert [packing.waits(cell) for cell in ("two", "three", "four")] == [True, False, False]
    packing.packed(TOP)
    assert (packing.waits("two"), packing.unpacked("two")) == (False, ())


def test_what_a_cell_did_not_come_to_pack_is_for_the_next() -> None:
    packing = Packing(family())
    packing.begin("one")
    packing.packed(BIG)
    packing.end("one")
    assert not packing.waits("two")
    packing.begin("two")
    assert packing.unpacked("two") == (TOP,)


def test_a_cell_that_begins_beside_the_packer_packs_what_is_its_own() -> None:
    packing = Packing(family())
    packing.begin("three")
    assert packing.unpacked("three") == (BIG,)
    packing.packed(BIG)
    packing.begin("one")
    assert packing.unpacked("one") == (TOP,)


@pytest.mark.parametrize(("above", "waits"), [(SECONDS - 0.1, True), (SECONDS, False)])
def test_a_cell_that_is_busy_for_longer_than_the_packing_begins_meanwhile(
    above: float, waits: bool
) -> None:
    packing = Packing(family(above))
    packing.begin("four")
    assert packing.waits("three")
    (big,) = packing.unpacked("four")
    packing.made(big)
    assert packing.waits("three") is waits
    assert packing.waits("one")


def test_a_layer_that_has_to_be_made_again_is_waited_for_again() -> None:
    packing = Packing(family(SECONDS))
    packing.begin("four")
    packing.made(*packing.unpacked("four"))
    packing.end("four")
    packing.begin("two")
    assert packing.waits("three")
