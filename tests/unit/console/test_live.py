"""Test what is on the screen while cells build: a recorded build is replayed with its clock."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console as Screen

from imagegen.console.live import LiveProgress, shortened
from imagegen.console.progress import PlainProgress
from imagegen.events import events
from imagegen.events.stream import from_line
from imagegen.model.build import BuildRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.events.events import Event

FOLDER = Path(__file__).parent.with_name("events")
RECORDED = [
    (float(second), from_line(line))
    for second, line in (
        row.split(" ", 1)
        for row in (FOLDER / "shared.jsonl").read_text(encoding="utf-8").splitlines()
    )
]
LATE = "longer than predicted"
CELLS = tuple(f"family/debian12-{version}" for version in ("2.6.0", "2.7.1", "2.8.0-rc.1"))


class Shown:
    """Hold a screen with a table that has seen the recorded events up to a second."""

    def __init__(
        self,
        until: float = 0.0,
        width: int = 80,
        height: int = 24,
        cells: Sequence[str] = CELLS,
        color: str | None = None,
    ) -> None:
        self.now, self.printed = 0.0, io.StringIO()
        color_system = "truecolor" if color else None
        self.screen = Screen(
            file=self.printed,
            width=width,
            height=height,
            force_terminal=bool(color),
            color_system=color_system,  # type: ignore[arg-type]
            no_color=not color,
        )
        self.live = LiveProgress(cells, self.screen, lambda: self.now)
        for second, event in RECORDED:
            if second <= until:
                self.now = second
                self.live(event)
        self.now = until

    def show(self, *some: Event) -> None:
        for event in some:
            self.live(event)

    @property
    def above(self) -> list[str]:
        """Return the lines that have scrolled away above the table."""
        return self.printed.getvalue().splitlines()

    @property
    def table(self) -> list[str]:
        with self.screen.capture() as captured:
            self.screen.print(self.live.render())
        return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def test_before_anything_begins() -> None:
    assert Shown(0.45).table == ["0 of 3 ready, 3 waiting"]


def test_two_cells_make_a_layer_that_the_third_waits_for_with_them() -> None:
    assert Shown(3.0).table == [
        "debian12-2.7.1       ━━          22%   2.5s  1/6 toolkit  ~40.0 MB  unpacking p…",
        "debian12-2.6.0       ━━          22%   2.5s  1/6 toolkit  ~40.0 MB  unpacking p…",
        "debian12-2.8.0-rc.1  waits for a free build slot",
        "0 of 3 ready, 2 building, 1 waiting, about 13s left",
    ]


def test_a_step_that_takes_longer_than_predicted_says_so() -> None:
    assert Shown(9.9).table == [
        "debian12-2.7.1       ━━━━━━━━━   94%   9.4s  6/6 framework  late  fetching 2.7.1",
        "debian12-2.6.0       ━━━━━━━━━   94%   9.4s  6/6 framework  late  2 cached  fet…",
        "debian12-2.8.0-rc.1  waits for a free build slot",
        "0 of 3 ready, 2 building, 1 waiting, more than 3s left: framework takes longer",
        "than predicted",
    ]


def test_the_gate_of_two_and_the_third_takes_their_layers_from_the_cache() -> None:
    assert Shown(13.0).table == [
        "debian12-2.7.1       ━━━━━━━━━╸  99%  12.5s  validate --static",
        "debian12-2.6.0       ━━━━━━━━━╸  99%  12.5s  2 cached  validate --static",
        "debian12-2.8.0-rc.1  ━━━━━━━━    84%   0.8s  6/6 framework  5 cached  RUN echo …",
        "0 of 3 ready, 3 building, about 2s left",
    ]


def test_where_only_what_is_late_is_left_no_figure_is_given() -> None:
    shown = Shown(16.5)
    assert shown.table[-1] == "2 of 3 ready, 1 building, framework takes longer than predicted"


def test_what_is_done_scrolls_away_and_nothing_stays_below() -> None:
    shown = Shown(25.0)
    assert shown.above == [
        "nobody knows the size of check, framework: it counts as nothing",
        "3 of 3 images to build, 2 at a time",
        "debian12-2.6.0         13.8s  built 88890d560d94 in 14 s, 2 of 6 steps cached",
        "debian12-2.7.1         14.3s  built df6994a9d34d in 14 s",
        "debian12-2.8.0-rc.1     8.2s  built 94e2a47df8de in 8 s, 5 of 6 steps cached",
    ]
    assert shown.table == []


def test_a_wide_terminal_has_longer_bars_and_whole_names() -> None:
    shown, bar = Shown(9.9, width=120), "━" * 18 + "╸"
    assert shown.table == [
        f"debian12-2.7.1       {bar}   94%   9.4s  6/6 framework  {LATE}  fetching 2.7.1",
        f"debian12-2.6.0       {bar}   94%   9.4s  6/6 framework  {LATE}  2 cached  fetching 2.6.0",
        "debian12-2.8.0-rc.1  waits for a free build slot",
        f"0 of 3 ready, 2 building, 1 waiting, more than 3s left: framework takes {LATE}",
    ]
    assert Shown(25.0, width=120).above[-1] == (
        "family/debian12-2.8.0-rc.1     8.2s  built 94e2a47df8de in 8 s, 5 of 6 steps cached"
    )


def test_colours_only_repeat_what_words_say() -> None:
    plain, coloured = Shown(9.9, width=120), Shown(9.9, width=120, color="truecolor")
    assert [_without_escapes(line).replace("━", "").split() for line in coloured.table] == [
        line.replace("━", "").replace("╸", "").split() for line in plain.table
    ]
    assert "\x1b[33mlonger than predicted" in coloured.table[0]
    assert "\x1b[36m2 cached" in coloured.table[1]
    done = Shown(25.0, color="truecolor")
    assert "\x1b[32mbuilt 94e2a47df8de" in done.above[-1]


def _without_escapes(line: str) -> str:
    from imagegen.text import clean

    return clean(line).replace("╸", "").replace("╺", "")


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("debian12-none", 13, "debian12-none"),
        ("debian12-torch2.6.0-cuda12.4-rdma-core", 24, "debian12…a12.4-rdma-core"),
        ("debian12-none", 4, "d…ne"),
    ],
)
def test_names_are_shortened_in_the_middle(name: str, width: int, short: str) -> None:
    assert shortened(name, width) == short
    assert len(short) <= width


def test_an_outcome_never_falls_off_the_right_edge() -> None:
    names = [f"cpu/debian12-torch2.6.0-cuda12.4-rdma-core-{end}" for end in ("openmpi", "none")]
    shown = Shown(cells=names)
    record = BuildRecord(names[0], "t", "r", "failed", cause="version conflict")
    shown.show(events.CellStarted(names[0], "it is new"), events.CellEnded(record))
    assert shown.above == [
        "debian12-torch2….0-cuda12.4-rdma-core-openmpi     0.0s  failed: version conflict"
    ]
    assert len(shown.above[0]) <= 80


def test_a_cell_says_what_it_waits_for_until_it_begins() -> None:
    shown = Shown(cells=["cpu/a", "cpu/b", "cpu/c"])
    shown.show(
        events.CellWaits("cpu/a", "base: pulling debian"),
        events.CellsQueued(("cpu/b", "cpu/c"), "the base image debian12"),
    )
    assert shown.table == [
        "a                  0.0s  base: pulling debian",
        "b             waits for the base image debian12",
        "c             waits for the base image debian12",
        "0 of 3 ready, 1 building, 2 waiting",
    ]
    shown.show(
        events.CellsQueued(("cpu/a",), "a free build slot"),
        events.CellsQueued(("cpu/c",), "cpu/b to export torch for 3 images"),
        events.CellStarted("cpu/b", "it is new"),
        events.CellWaits("cpu/b", "waits: process 17 builds this cell"),
    )
    assert shown.table == [
        "b                  0.0s  waits: process 17 builds this cell",
        "c             waits for b to export torch for 3 images",
        "a             waits for a free build slot",
        "0 of 3 ready, 1 building, 2 waiting",
    ]


def test_cells_that_wait_do_not_push_those_that_build_off_the_screen() -> None:
    cells = [f"cpu/{number}" for number in range(30)]
    shown = Shown(cells=cells, height=12)
    shown.show(
        events.CellStarted("cpu/0", "it is new"),
        events.CellsQueued(tuple(cells[1:]), "a free build slot"),
    )
    table = shown.table
    assert len(table) < 12
    assert table[-2:] == ["and 23 more", "0 of 30 ready, 1 building, 29 waiting"]


def test_of_steps_side_by_side_that_of_the_lowest_layer_is_shown_with_its_output() -> None:
    shown = Shown(cells=["cpu/a"])
    low, high = events.StepAt("torch", 2, 7), events.StepAt("validate", 4, 7)
    shown.show(
        events.CellStarted("cpu/a", "it is new"),
        events.StepStarted("cpu/a", "[internal] x", "[internal] x"),
        events.StepStarted("cpu/a", "v", "[validate-build 1/1] RUN y", high),
        events.StepStarted("cpu/a", "t", "[torch 1/1] RUN x", low),
        events.StepOutput("cpu/a", "of y", "v"),
    )
    assert shown.table[0].endswith("2/7 torch  RUN x")
    shown.show(events.StepOutput("cpu/a", "\x1b[31mof x\x1b[0m", "t"))
    assert shown.table[0].endswith("2/7 torch  of x")
    shown.show(events.StepEnded("cpu/a", "t", low))
    assert shown.table[0].endswith("4/7 validate  RUN y")
    shown.show(events.StepEnded("cpu/a", "v", high))
    assert shown.table[0].endswith("4/7 validate  RUN y"), "until the next one begins"
    shown.show(events.CellRetried("cpu/a", 2, 4))
    assert shown.table[0].endswith("0.0s  network failure, attempt 2 of 4")


def test_plain_lines_say_the_same() -> None:
    lines: list[str] = []
    now = [0.0]
    show = PlainProgress(lines.append, CELLS, lambda: now[0])
    for second, event in RECORDED:
        now[0] = second
        show(event)
    steps = [line for line in lines if "[internal]" not in line and "/context" not in line]
    first = "[check-build 1/1] RUN sleep 1 && echo TOKEN > /check-built"
    assert steps[:4] == [
        "nobody knows the size of check, framework: it counts as nothing",
        "3 of 3 images to build, 2 at a time",
        "    0.5s  family/debian12-2.8.0-rc.1  waits for a free build slot",
        f"    0.8s  family/debian12-2.7.1       2/6 0%  {first}  (about 16s left)",
    ]
    assert steps[-1] == (
        "   20.4s  family/debian12-2.8.0-rc.1  built 94e2a47df8de in 8 s, 5 of 6 steps cached"
    )
    (third,) = [line for line in steps if "2.8.0-rc.1  6/6 " in line]
    assert "6/6 79%  [framework 1/1] RUN echo fetching 2.8.0-rc.1" in third
    assert third.endswith("(about 3s left)")


def test_plain_lines_say_once_what_several_wait_for() -> None:
    lines: list[str] = []
    show = PlainProgress(lines.append, ["m/a", "m/b"], lambda: 0.0)
    for reason in ("a free build slot", "the gate", "a free build slot"):
        show(events.CellsQueued(("m/a", "m/b"), reason))
    assert lines == [
        "    0.0s  2 cells  wait for a free build slot: m/a, m/b",
        "    0.0s  2 cells  wait for the gate: m/a, m/b",
    ]
