"""Test the order in which cells start: those that run at the same time share few lower layers."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from imagegen.planner.chain import spread


def chain(cell: str) -> tuple[tuple[str, str], ...]:
    """Return the layers of a cell: `ab` is layer 1 of release a and layer 2 of release b."""
    return tuple((str(at), release) for at, release in enumerate(cell))


def test_neighbours_part_at_the_lowest_layer() -> None:
    cells = ["".join(letters) for letters in product("ab", "xyz", "12")]
    turned = spread(cells, chain)
    assert turned == [
        "ax1", "bx1", "ay1", "by1", "az1", "bz1",
        "ax2", "bx2", "ay2", "by2", "az2", "bz2",
    ]  # fmt: skip


def test_what_all_share_parts_nobody() -> None:
    assert spread(["ttx1", "ttx2", "tty1"], chain) == ["ttx1", "tty1", "ttx2"]


def test_cells_of_different_height_and_of_none() -> None:
    assert spread(["a", "ab", "", "b"], chain) == ["a", "", "b", "ab"]
    assert spread([], chain) == []


@given(st.lists(st.text("ab", max_size=4)))
def test_nobody_is_lost_and_equals_keep_their_order(cells: list[str]) -> None:
    numbered = list(enumerate(cells))
    turned = spread(numbered, lambda item: chain(item[1]))
    assert sorted(turned) == numbered
    for one in set(cells):
        places = [at for at, cell in turned if cell == one]
        assert places == sorted(places)
