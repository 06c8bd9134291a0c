"""Write numbers for people, and clean text that comes from other programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]"
)


def human_bytes(count: int) -> str:
    """Write a number of bytes in decimal units, as registries and disks do: `4.9 GB`."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def human_seconds(seconds: float) -> str:
    """Write a duration for people: `12.3s`, `6m12s` or `1h02m`."""
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def clean(text: str) -> str:
    """Remove from foreign text, such as build output, what would control the terminal."""
    return _ESCAPES.sub("", text.replace("\t", "    "))


def short_step(step: str) -> str:
    """Write a step in one short line, without its mounts and the settings that every step has."""
    text = re.sub(r"--mount=\S+ *", "", step)
    text = re.sub(r"\. /mnt/env\.sh &&\s*|apt-get update &&\s*", "", text)
    return re.sub(r"\s+", " ", text).strip()


FEW = 5
"""The most names that an error lists, where there is a command that lists them all."""


def few(names: Sequence[str], nearest: Sequence[str], command: str) -> str:
    """List names in one line: all of them if they are few, else the nearest.

    `1.11.0, 1.12.0 … and 155 more: imagegen catalog torch`.
    """
    if len(names) <= FEW + 1:
        return ", ".join(names)
    shown = nearest[:FEW]
    return f"{', '.join(shown)} … and {len(names) - len(shown)} more: {command}"


def few_like(word: str, names: Sequence[str], command: str) -> str:
    """List names in one line, those first that look most like a word if there are many."""
    from difflib import get_close_matches

    spelled = {name.casefold(): name for name in names}
    near = get_close_matches(word.casefold(), spelled, FEW, 0)
    return few(names, [spelled[name] for name in near], command)
