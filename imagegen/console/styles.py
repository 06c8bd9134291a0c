"""Name the colours of outcomes for rich. No meaning is in a colour alone."""

from __future__ import annotations

STYLES = {
    "built": "green",
    "up-to-date": "green",
    "cached": "cyan",
    "late": "yellow",
    "cancelled": "yellow",
    "failed": "bold red",
}
