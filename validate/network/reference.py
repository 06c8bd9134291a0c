"""Keep a sweep as the reference of a machine, and compare a later one with it."""

import json
import os
from typing import Any, Dict, List, NamedTuple, Sequence

from validate.network.measured import Row
from validate.network.refused import Refused
from validate.network.sizes import in_units

REFERENCE_SCHEMA = 1
FALLS = 0.75
"""The share of the reference's busbw below which a size is slower than it was."""

WORDS = (
    ("machines", "machines"),
    ("transport", "transport"),
    ("ranks", "ranks of each host"),
    ("gpus", "GPUs"),
)
"""What has to be the same in both, and what it is called."""


class Fall(NamedTuple):
    """Hold a size that is slower than in the reference, both in GB/s."""

    size: int
    busbw: float
    before: float

    def __str__(self) -> str:
        share = 100 * self.busbw / self.before
        text = "{} {:.3g} GB/s, {:.3g} GB/s in the reference ({:.0f} %)"
        return text.format(in_units(self.size), self.busbw, self.before, share)


def read_reference(path: str) -> Dict[str, Any]:
    """Read a reference. Raises Refused if the file cannot be one."""
    hint = "make one on this machine: validate --bandwidth --save-reference FILE"
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise Refused("cannot read `{}`: {}".format(path, error.strerror), hint) from None
    except ValueError as error:
        raise Refused("`{}` is not JSON: {}".format(path, error), hint) from None
    if not isinstance(data, dict) or not isinstance(data.get("bandwidth"), dict):
        raise Refused("`{}` holds no sweep of --bandwidth".format(path), hint)
    sweep: Dict[str, Any] = data["bandwidth"]
    rows = sweep.get("rows")
    whole = isinstance(rows, list) and all(_is_row(row) for row in rows)
    if sweep.get("schema") != REFERENCE_SCHEMA or not whole or not rows:
        raise Refused("`{}` holds no sweep that this validate can read".format(path), hint)
    return sweep


def write_reference(path: str, sweep: Dict[str, Any]) -> None:
    """Write a reference, whole or not at all. Raises Refused if it cannot be written."""
    try:
        with open(path + ".part", "w", encoding="utf-8") as file:
            file.write(json.dumps({"bandwidth": sweep}, indent=2, sort_keys=True) + "\n")
        os.replace(path + ".part", path)
    except OSError as error:
        text = "cannot write `{}`: {}".format(path, error.strerror)
        raise Refused(text, "name another file") from None


def _is_row(row: Any) -> bool:
    names = ("bytes", "busbw_GB_s")
    return isinstance(row, dict) and all(isinstance(row.get(n), (int, float)) for n in names)


def differences(now: Dict[str, Any], before: Dict[str, Any]) -> List[str]:
    """Say why a reference is not one of this measurement; empty if it is."""
    return [
        "{}: {} there, {} here".format(word, _in_words(before.get(key)), _in_words(now.get(key)))
        for key, word in WORDS
        if now.get(key) != before.get(key)
    ]


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def refuse_other(path: str, now: Dict[str, Any], before: Dict[str, Any]) -> None:
    """Raise Refused if a reference is of another machine, transport or number of ranks."""
    found = differences(now, before)
    if found:
        text = "`{}` is no reference for this: {}".format(path, "; ".join(found))
        raise Refused(text, "keep one of this: validate --bandwidth --save-reference FILE")


def speeds_of(before: Dict[str, Any]) -> Dict[int, float]:
    """Return the busbw of each size of a reference, in GB/s; none without a reference."""
    return {int(row["bytes"]): float(row["busbw_GB_s"]) for row in before.get("rows", ())}


def fallen(rows: Sequence[Row], before: Dict[str, Any]) -> List[Fall]:
    """List the sizes that are slower than in the reference."""
    speeds = speeds_of(before)
    falls = [Fall(row.size, row.busbw, speeds.get(row.size, 0.0)) for row in rows]
    return [one for one in falls if one.busbw < FALLS * one.before]


def common(sizes: Sequence[int], before: Dict[str, Any]) -> List[int]:
    """List the sizes that the reference has too."""
    return [size for size in sizes if size in speeds_of(before)]


def better(rows: Sequence[Row], again: Sequence[Row]) -> List[Row]:
    """Return the rows, each replaced by that of the second measurement where it is faster.

    A wrong element of either counts.
    """
    second = {row.size: row for row in again}
    return [_better_of(row, second.get(row.size, row)) for row in rows]


def _better_of(one: Row, other: Row) -> Row:
    return one._replace(seconds=min(one.seconds, other.seconds), wrong=max(one.wrong, other.wrong))
