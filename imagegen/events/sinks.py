"""Give one stream of events to several subscribers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from imagegen.events.events import Event, Sink


def fan_out(*sinks: Sink) -> Sink:
    """Make a sink that gives each event to all of these, in their order."""

    def emit(event: Event) -> None:
        for sink in sinks:
            sink(event)

    return emit
