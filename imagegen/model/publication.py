"""Define the record of an image in a registry."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Publication:
    """An image in a registry; `digest` is what the registry itself answered."""

    image_id: str
    reference: str
    digest: str
    previous: str = ""
