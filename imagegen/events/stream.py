"""Write events as JSON lines, and read them: one object a line, with its type as `event`."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from imagegen.events import events
from imagegen.model.validation import Report

if TYPE_CHECKING:
    from cattrs import Converter


@cache
def _converter() -> Converter:
    from cattrs import Converter
    from cattrs.strategies import configure_tagged_union

    converter = Converter(omit_if_default=True, forbid_extra_keys=True)
    # The report of `validate` is JSON already; one of a newer release may have other keys.
    converter.register_structure_hook_func(_is_report, lambda value, _: value)
    converter.register_unstructure_hook_func(_is_report, lambda value: value)
    configure_tagged_union(events.Event, converter, tag_name="event")
    return converter


def _is_report(kind: object) -> bool:
    return kind is Report


def to_line(event: events.Event) -> str:
    """Write an event as one line of JSON, the same bytes for the same event."""
    data = _converter().unstructure(event, unstructure_as=events.Event)
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def from_line(line: str) -> events.Event:
    """Read an event from its line.

    Raises ValueError for a line that is no JSON, and cattrs' ClassValidationError for a record that
    is no event.
    """
    event: events.Event = _converter().structure(json.loads(line), events.Event)  # type: ignore[arg-type]
    return event
