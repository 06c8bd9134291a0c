"""Show the request that is nearest to an image: what it has, what the answer has, what differs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from imagegen.request.report import as_data, next_lines, title_of, warning_lines
from imagegen.text import FEW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.console.console import Console
    from imagegen.inspection.found import FoundImage
    from imagegen.request.like import NearestRequest, Row
    from imagegen.request.report import Answer


@dataclass(frozen=True)
class Like:
    """An image, what is in it, and the request that is nearest to it.

    `given` are the constraints of the user, `missing` says what the image could not report.
    """

    image: str
    found: FoundImage
    nearest: NearestRequest
    given: Mapping[str, str]
    missing: tuple[str, ...] = ()


_COLUMNS = ("component", "in the image", "in the answer", "differs")


def show_like(answer: Answer, like: Like, rows: tuple[Row, ...], console: Console) -> None:
    """Print the answer beside the image, on one screen."""
    console.data(like_data(answer, like, rows))
    table = [(row.component, row.had or "-", row.gets or "-", row.differs) for row in rows]
    console.table(_COLUMNS, table, title=f"like {like.image}: {title_of(answer)}")
    for line in _remarks(like):
        console.line(line)
    if answer.ground:
        console.line(answer.ground.text)
    for line in (*warning_lines(answer), *next_lines(answer)):
        console.line(line)


def _remarks(like: Like) -> Iterator[str]:
    """Say what is doubtful, what no component covers, and what was not read."""
    found = like.found
    for one in found.components:
        if one.doubt:
            yield f"doubtful: {one.name} {one.version} ({one.evidence}): {one.doubt}"
    if found.uncovered:
        shown = ", ".join(found.uncovered[:FEW])
        more = len(found.uncovered) - FEW
        yield f"no component covers: {shown}" + (f" and {more} more" if more > 0 else "")
    for text in like.missing:
        yield f"not read: {text}"


def like_data(answer: Answer, like: Like, rows: tuple[Row, ...]) -> dict[str, object]:
    """Make the answer for `--format json`: that of a request, and under `like` the image."""
    return {
        **as_data(answer),
        "like": {
            "image": like.image,
            "request": dict(like.nearest.constraints),
            "found": [
                {
                    "component": one.name,
                    "version": one.version,
                    "evidence": one.evidence,
                    "nearest": one.release.version if one.release else None,
                    "known": one.known,
                    "variant": one.variant,
                    "doubt": one.doubt,
                }
                for one in like.found.components
            ],
            "os": {"name": like.found.os_name, "known": like.found.os_known},
            "rows": [asdict(row) for row in rows],
            "gave_way": dict(like.nearest.reasons),
            "uncovered": list(like.found.uncovered),
            "not_read": list(like.missing),
        },
    }
