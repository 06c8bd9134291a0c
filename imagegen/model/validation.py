"""What `validate` said of an image."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


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
