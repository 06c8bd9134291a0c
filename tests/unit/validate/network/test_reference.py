"""Test how a sweep is kept as a reference, compared with one, and judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.network import reference, table
from validate.network.bandwidth import Sweep, judged
from validate.network.measured import Row, Run
from validate.network.refused import Refused

if TYPE_CHECKING:
    from pathlib import Path

FACTS: dict[str, Any] = {
    "transport": "gloo",
    "hosts": ["a", "b"],
    "machines": ["1f", "2e"],
    "ranks": [1, 1],
    "gpus": [],
    "nccl": "",
    "processor": "2 x Xeon",
}


def sweep(*speeds: float, wrong: int = 0, problem: str = "") -> Sweep:
    """Return a sweep over two ranks with these busbw in GB/s, at 1K, 2K, …."""
    rows = [Row(1024 << n, (1024 << n) / 1e9 / one, wrong, 2) for n, one in enumerate(speeds)]
    return Sweep(Run(("a", "b"), rows, problem, (), {"b": wrong} if wrong else {}), FACTS)


def kept(path: Path, *speeds: float) -> dict[str, Any]:
    reference.write_reference(str(path), sweep(*speeds).as_data())
    return reference.read_reference(str(path))


def test_a_reference_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    before = kept(tmp_path / "ref.json", 1.0, 2.0)
    assert reference.speeds_of(before) == {1024: 1.0, 2048: 2.0}
    assert reference.differences(FACTS, before) == []
    assert [path.name for path in tmp_path.iterdir()] == ["ref.json"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"machines": ["1f", "3d"]}, "machines: 1f, 2e there, 1f, 3d here"),
        ({"transport": "mpi"}, "transport: gloo there, mpi here"),
        ({"ranks": [2, 2]}, "ranks of each host: 1, 1 there, 2, 2 here"),
        ({"gpus": ["NVIDIA H200"]}, "GPUs: none there, NVIDIA H200 here"),
    ],
)
def test_a_reference_of_something_else_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    before = kept(tmp_path / "ref.json", 1.0)
    with pytest.raises(Refused, match=r"ref\.json") as refused:
        reference.refuse_other("ref.json", {**FACTS, **change}, before)
    assert said in refused.value.text
    assert "--save-reference" in refused.value.hint


def test_other_names_of_the_same_machines_are_no_difference(tmp_path: Path) -> None:
    """A container has another name after each start."""
    before = kept(tmp_path / "ref.json", 1.0)
    reference.refuse_other("ref.json", {**FACTS, "hosts": ["c", "d"], "nccl": "2.30.7"}, before)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"bandwidth": 1}', '{"bandwidth": {"schema": 1, "rows": []}}'),
        '{"bandwidth": {"schema": 2, "rows": [{"bytes": 8, "busbw_GB_s": 1}]}}',
        '{"bandwidth": {"schema": 1, "rows": [{"bytes": 8}]}}',
        '{"bandwidth": {"schema": 1, "rows": [{"bytes": "8", "busbw_GB_s": 1}]}}',
    ],
)
def test_what_is_no_reference_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ref.json"
    path.write_text(text)
    with pytest.raises(Refused, match=r"ref\.json"):
        reference.read_reference(str(path))


def test_a_reference_that_is_not_there_or_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="No such file"):
        reference.read_reference(str(tmp_path / "nothing"))
    with pytest.raises(Refused, match="No such file"):
        reference.write_reference(str(tmp_path / "no/folder.json"), {})


@pytest.mark.parametrize(("speed", "slower"), [(1.0, 0), (0.8, 0), (0.74, 1), (0.01, 1), (9.0, 0)])
def test_a_size_is_slower_below_three_quarters(tmp_path: Path, speed: float, slower: int) -> None:
    before = kept(tmp_path / "ref.json", 1.0, 2.0)
    rows = sweep(speed, 2.0).run.rows
    assert len(reference.fallen(rows, before)) == slower
    assert ("  warn: 1K" in table.line_of(rows[0], before)) == bool(slower)
    assert "warn" not in table.line_of(rows[0], {})


def test_the_better_of_two_measurements_counts_and_no_wrong_element_is_lost() -> None:
    first, second = sweep(1.0, 4.0).run.rows, sweep(3.0, wrong=2).run.rows
    rows = reference.better(first, second)
    assert [round(row.busbw, 3) for row in rows] == [3.0, 4.0]
    assert [row.wrong for row in rows] == [2, 0]


def outcomes(found: Sweep, compared: bool = False) -> dict[str, str]:
    return {one.check.id: one.outcome for one in judged(found, compared, 1.0)}


def test_verdicts(tmp_path: Path) -> None:
    good = {"net.sweep": PASSED, "net.sums": PASSED}
    assert outcomes(sweep(1.0)) == {**good, "net.reference": SKIPPED}
    assert outcomes(sweep(1.0), True) == {**good, "net.reference": PASSED}
    falls = reference.fallen(sweep(0.1).run.rows, kept(tmp_path / "ref.json", 1.0))
    slow = sweep(0.1)._replace(falls=falls)
    assert outcomes(slow, True) == {**good, "net.reference": WARNED}
    assert outcomes(sweep(1.0, wrong=3))["net.sums"] == FAILED
    broken = sweep(1.0, problem="b: no end within 20 s")
    assert outcomes(broken) == {
        "net.sweep": FAILED,
        "net.sums": PASSED,
        "net.reference": SKIPPED,
    }
    assert outcomes(sweep(problem="none")) == {
        "net.sweep": FAILED,
        "net.sums": SKIPPED,
        "net.reference": SKIPPED,
    }


def test_wrong_sums_of_one_host_name_it() -> None:
    (_, sums, _) = judged(sweep(1.0, wrong=3), False, 1.0)
    assert "3 on b" in sums.measured
    assert (sums.kind, sums.remedy) == ("host", "start the job without b")


def test_the_document_has_units_and_what_was_measured_on(tmp_path: Path) -> None:
    before = kept(tmp_path / "ref.json", 4.0)
    data = sweep(2.0)._replace(before=before).as_data()
    assert json.loads(json.dumps(data))["rows"] == [
        {
            "bytes": 1024,
            "count": 256,
            "microseconds": 0.512,
            "algbw_GB_s": 2.0,
            "busbw_GB_s": 2.0,
            "wrong": 0,
            "reference_busbw_GB_s": 4.0,
        }
    ]
    assert data["host"] == "a"
    assert {"transport", "nccl", "gpus", "hosts", "machines", "ranks"} <= set(data)


def test_the_table_has_the_columns_of_nccl_tests() -> None:
    lines = table.heading(FACTS)
    assert lines[0] == "# all_reduce over gloo: 2 ranks on a, b; no GPU; 2 x Xeon"
    assert lines[2].split() == [
        *("#", "size", "count", "type", "redop", "time", "algbw", "busbw", "wrong"),
    ]
    assert lines[3].split() == ["#", "(B)", "(elements)", "(us)", "(GB/s)", "(GB/s)"]
    line = table.line_of(Row(1 << 30, 0.01, 4, 8), {})
    assert line.split() == [
        *("1073741824", "268435456", "float", "sum", "10000.0", "107.37", "187.90", "4"),
    ]
    ends = table.ending(sweep(1.0).run.rows, [1 << 30], [])
    assert ends[0].endswith("0 OK")
    assert ends[1].endswith("1 GB/s")
    assert ends[2].endswith("1G")
