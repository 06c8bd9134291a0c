"""The colours of outcomes, as rich names them. Nothing is said by colour alone."""

from __future__ import annotations

STYLES = {
    "built": "green",
    "up-to-date": "green",
    "cached": "cyan",
    "late": "yellow",
    "cancelled": "yellow",
    "failed": "bold red",
}
