"""Print a sweep as all_reduce_perf of nccl-tests does."""

from typing import Any, Dict, List, Sequence

from validate.network.measured import Row
from validate.network.reference import Fall, fallen
from validate.network.sizes import in_units

LINE = "{:>13}{:>14}{:>9}{:>8}{:>11}{:>9}{:>9}{:>8}"
NAMES = ("size", "count", "type", "redop", "time", "algbw", "busbw", "wrong")
UNITS = ("(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "")


def heading(facts: Dict[str, Any]) -> List[str]:
    """Return the lines above the table: what is measured, and the columns with their units."""
    ranks = "{} ranks on {}".format(sum(facts["ranks"]), ", ".join(facts["hosts"]))
    gpus = ", ".join(dict.fromkeys(facts["gpus"])) or "no GPU"
    version = " " + facts["nccl"] if facts["nccl"] else ""
    first = "# all_reduce over {}{}: {}; {}; {}".format(
        facts["transport"], version, ranks, gpus, facts["processor"]
    )
    columns = ("#" + LINE.format(*words)[1:] for words in (NAMES, UNITS))
    return [first, "#", *columns]


def line_of(row: Row, before: Dict[str, Any]) -> str:
    """Return the line of a size, with a warning if it is slower than in a reference."""
    time = "{:.1f}".format(row.seconds * 1e6)
    speeds = ("{:.{}f}".format(one, 2 if one >= 1 else 4) for one in (row.algbw, row.busbw))
    count = max(row.size // 4, 1)
    slower = ["  warn: {}".format(one) for one in fallen([row], before)]
    line = LINE.format(row.size, count, "float", "sum", time, *speeds, row.wrong)
    return "".join([line, *slower])


def ending(rows: Sequence[Row], left_out: Sequence[int], falls: Sequence[Fall]) -> List[str]:
    """Return the lines below the table."""
    mean = sum(row.busbw for row in rows) / len(rows) if rows else 0.0
    wrong = sum(row.wrong for row in rows)
    lines = [
        "# wrong elements      : {}{}".format(wrong, "" if wrong else " OK"),
        "# average busbw       : {:.3g} GB/s".format(mean),
    ]
    if left_out:
        names = ", ".join(map(in_units, left_out))
        lines.append("# no time was left for: " + names)
    return lines + ["# slower than it was  : {}".format(one) for one in falls]
