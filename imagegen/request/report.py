"""Show the answer to a request: for people as a table, for programs as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.request.answer import pinned

if TYPE_CHECKING:
    from imagegen.console.console import Console
    from imagegen.model.image import ImageSpec, Pin
    from imagegen.request.existing import Found
    from imagegen.resolver.refusal import AnswerData


def as_data(spec: ImageSpec, found: Found, *, in_matrix: bool) -> AnswerData:
    """Make the answer with its pins as data; `in_matrix` says that it is a cell of a matrix."""
    return {
        "status": "exists" if found.where else "ok",
        "pins": pinned(spec),
        "image": found.reference or spec.tag,
        "cell": spec.cell.id if in_matrix else None,
        "warnings": [*spec.warnings, *filter(None, [found.note])],
        "conflicts": [],
        "alternatives": [],
    }


def show(spec: ImageSpec, found: Found, console: Console, *, in_matrix: bool) -> None:
    """Print an answer: its pins, its warnings, and whether the image exists."""
    console.data(as_data(spec, found, in_matrix=in_matrix))
    console.table(
        ("component", "version", "asked for by"),
        [
            ("os", spec.os.id, ""),
            *((p.component, _version(p), "; ".join(p.via)) for p in spec.pins),
            *((name, value, "") for name, value in spec.given.items()),
        ],
        title=spec.tag,
    )
    for warning in filter(None, [*spec.warnings, found.note]):
        console.line(f"warning: {warning}")
    state = f"exists {found.where}" if found.where else "is not built yet"
    cell = f" (cell {spec.cell.id})" if in_matrix else ""
    console.line(f"{found.reference or spec.tag} {state}{cell}")


def _version(pin: Pin) -> str:
    return f"{pin.version} ({pin.release.variant})" if pin.release.variant else pin.version
