"""Name the colours of outcomes for rich. No meaning is in a colour alone."""

from __future__ import annotations

STYLES = {"built": "green", "up-to-date": "green", "failed": "bold red"}
