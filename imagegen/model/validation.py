"""What `validate` said of an image."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - `events.stream` reads the types of fields
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ValidationRecord:
    """What `validate` said in a container of this image. `tier` is `static`, `full`, `partial` or
    `soft-roce`; `counts` maps outcomes to numbers; `report` is the document of `validate --json`.
    """

    image_id: str
    tag: str
    tier: str
    passed: bool
    counts: Mapping[str, int]
    seconds: float
    report: Mapping[str, object] = field(default_factory=dict)
