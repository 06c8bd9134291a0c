"""Test what is printed where: plain, JSON lines, terminal."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from imagegen.console.console import make_console
from imagegen.errors import ConfigError, Problem
from imagegen.events.events import (
    CellEnded,
    CellStarted,
    CellWaits,
    Predicted,
    PredictedCell,
    PredictedLayer,
    StepAt,
    StepCached,
    StepOutput,
    StepStarted,
)
from imagegen.model.build import BuildRecord
from imagegen.text import human_bytes, human_seconds

if TYPE_CHECKING:
    from imagegen.console.console import Console

ERROR = ConfigError(
    Problem("is wrong", "a.yaml", 3, "axes.os", ("found: x",), "correct it"),
    Problem("is missing", "b.yaml"),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Printed:
    def __init__(self, fmt: str, kind: type[io.StringIO] = io.StringIO) -> None:
        self.stdout, self.stderr = kind(), kind()
        self.console: Console = make_console(fmt, self.stdout, self.stderr)

    @property
    def out(self) -> str:
        return self.stdout.getvalue()

    @property
    def err(self) -> str:
        return self.stderr.getvalue()

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture(autouse=True)
def _terminal_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("CI", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("fmt", ["auto", "plain"])
def test_plain_table_is_aligned_on_stdout(fmt: str) -> None:
    printed = Printed(fmt)
    printed.console.table(["cell", "state"], [["debian12-none", "built"], ["a", "[red]"]], "Family")
    assert printed.out == (
        "Family\ncell           state\ndebian12-none  built\na              [red]\n"
    )
    assert printed.err == ""


def test_plain_has_no_data_and_no_events() -> None:
    printed = Printed("plain")
    printed.console.data({"a": 1})
    printed.console.event("built", cell="a")
    assert printed.out == printed.err == ""
    assert not printed.console.wants_json


def test_error_goes_to_stderr_all_problems_apart() -> None:
    printed = Printed("plain")
    printed.console.error(ERROR)
    assert printed.out == ""
    assert printed.err == (
        "error: a.yaml:3: `axes.os`: is wrong\n  found: x\n\nhint: correct it\n\n"
        "error: b.yaml: is missing\n"
    )


def failed(cell: str) -> CellEnded:
    return CellEnded(BuildRecord(cell, "t", "r", "failed", cause="network"))


def test_plain_board_has_time_cell_and_step() -> None:
    printed = Printed("plain")
    with printed.console.builds(["cpu/a", "cpu/long"]) as show:
        show(CellWaits("cpu/a", "[torch 3/9] RUN \x1b[31mapt-get\x1b[0m install"))
        show(StepOutput("cpu/a", "Unpacking"))
        show(failed("cpu/long"))
    first, second = printed.err.splitlines()
    assert first.endswith("s  cpu/a     [torch 3/9] RUN apt-get install")
    assert first.lstrip()[0].isdigit()
    assert second.endswith("cpu/long  failed: network")


PREDICTED = Predicted(
    (PredictedLayer("python", 40.0), PredictedLayer("torch", 120.0, 5_000_000)),
    (PredictedCell("cpu/a", (0, 1)),),
)
BELOW = StepCached("cpu/a", "y", StepAt("python", 2, 9, last=True))
AT = StepStarted("cpu/a", "x", "[torch 1/1] RUN x", StepAt("torch", 3, 9, last=True))


def test_where_a_cell_is_and_how_long_it_will_take_is_told_in_every_form() -> None:
    for fmt, kind in (("plain", io.StringIO), ("json", io.StringIO), ("auto", Terminal)):
        printed = Printed(fmt, kind)
        with printed.console.builds(["cpu/a"]) as show:
            for one in (PREDICTED, CellStarted("cpu/a", "it is new"), BELOW, AT):
                show(one)
        if fmt == "plain":
            assert printed.err.endswith("cpu/a  3/9 25%  [torch 1/1] RUN x  (about 2m00s left)\n")
        elif fmt == "json":
            (event,) = printed.documents
            told = (event["component"], event["step"], event["steps"])
            assert told == ("torch", 3, 9)
            assert (event["layer_bytes"], event["left_seconds"]) == (5_000_000, 120.0)
            assert (event["share"], event["late"]) == (0.25, [])
        else:
            for text in ("torch", "3/9", "25%", "1 cached", "~5.0 MB", "about 2m00s left"):
                assert text in printed.err


def test_nothing_is_written_over_where_that_is_asked_for_or_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def shown(*, live: bool) -> str:
        stdout, stderr = Terminal(), Terminal()
        with make_console("auto", stdout, stderr, live=live).builds(["a"]) as show:
            show(CellWaits("a", "RUN x"))
        return stderr.getvalue()

    assert "\x1b" in shown(live=True)
    assert "\x1b" not in shown(live=False)
    monkeypatch.setenv("CI", "true")
    assert "\x1b" not in shown(live=True)


def test_json_stdout_is_one_document_a_line() -> None:
    printed = Printed("json")
    printed.console.line("for people")
    printed.console.table(["cell"], [["a"]])
    printed.console.note("aside")
    printed.console.data({"b": 1, "a": "…"})
    with printed.console.builds(["a"]) as show:
        show(CellWaits("a", "RUN x"))
        show(StepOutput("a", "output"))
        show(CellEnded(BuildRecord("a", "t", "r", "built", "sha256:0123456789abc")))
    printed.console.error(ERROR)
    data, step, log, done, error = printed.documents
    assert data == {"a": "…", "b": 1}
    assert printed.out.startswith('{"a"')
    assert (step["event"], step["cell"], step["text"]) == ("step", "a", "RUN x")
    assert (log["event"], log["text"]) == ("log", "output")
    assert (done["event"], done["outcome"]) == ("done", "built")
    assert error["exit_code"] == 2
    assert [problem["line"] for problem in error["errors"]] == [3, 0]
    assert printed.err == "aside\n"


def test_json_lines_of_many_threads_stay_whole() -> None:
    printed = Printed("json")
    with printed.console.builds(["a"]) as show:

        def chatter() -> None:
            for _ in range(50):
                show(StepOutput("a", "x" * 200))

        threads = [threading.Thread(target=chatter) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(printed.documents) == 400


def test_terminal_shows_table_board_and_lines_above() -> None:
    printed = Printed("auto", Terminal)
    printed.console.table(["cell [x]", "state"], [["[bold]a", "built"]], "Title [b]")
    assert "[bold]a" in printed.out
    assert "Title [b]" in printed.out
    assert "cell [x]" in printed.out
    with printed.console.builds(["cpu/a", "cpu/b"]) as show:
        show(CellWaits("cpu/a", "[torch 3/9] RUN x"))
        show(StepOutput("cpu/a", "Unpacking [x]"))
        printed.console.note("note [in] between")
        show(failed("cpu/a"))
    assert "note [in] between" in printed.err
    assert "failed: network" in printed.err
    assert "1 waiting" in printed.err.replace("\x1b[1;36m1\x1b[0m", "1")
    assert printed.err.endswith("\x1b[?25h\r\x1b[1A\x1b[2K"), "the table goes, the cursor is back"
    printed.console.note("after")
    assert printed.err.endswith("after\n")


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    printed = Printed("auto", Terminal)
    printed.console.table(["state"], [["failed"]])
    assert "failed" in printed.out
    assert "\x1b[3" not in printed.out
    assert "\x1b[1;3" not in printed.out


def test_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    printed = Printed("auto", Terminal)
    printed.console.table(["state"], [["built"]])
    assert printed.out == "state\nbuilt\n"


def run(code: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": "/usr/bin:/bin", **environment},
    )


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = (
        "from imagegen.console.console import make_console\n"
        "console = make_console('plain')\n"
        "for number in range(50000): console.line(str(number))\n"
    )
    with run(code) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_characters_that_the_terminal_lacks_are_escaped() -> None:
    code = "from imagegen.console.console import make_console; make_console('plain').line('a … b')"
    with run(code, PYTHONIOENCODING="ascii") as process:
        assert process.communicate() == ("a \\u2026 b\n", "")


def test_rich_is_imported_only_when_drawn() -> None:
    code = (
        "import sys; from imagegen.console.console import make_console\n"
        "make_console('auto').line('x'); assert 'rich' not in sys.modules"
    )
    with run(code) as process:
        assert process.communicate() == ("x\n", "")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (4_912_345_678, "4.9 GB"),
        (999_950_000, "1.0 GB"),
        (123_456_789, "123 MB"),
        (7_300_000_000_000, "7.3 TB"),
    ],
)
def test_human_bytes(count: int, text: str) -> None:
    assert human_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0s"),
        (12.34, "12.3s"),
        (59.97, "1m00s"),
        (372, "6m12s"),
        (3599.6, "1h00m"),
        (3720, "1h02m"),
    ],
)
def test_human_seconds(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text
