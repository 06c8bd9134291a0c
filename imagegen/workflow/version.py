"""`imagegen --version` shows which imagegen this is, and where it reads its data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from imagegen import __version__
from imagegen.config.payload import shipped_root
from imagegen.engine.host import process

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console

COMMIT = re.compile(r"[0-9a-f]{7,40}(-dirty)?")
UNKNOWN = "unknown"


def show_version(console: Console) -> None:
    """Show the version, the commit, and the folder of the data that travels with the tool."""
    root = shipped_root()
    console.line(f"imagegen {__version__}, commit {commit_of(root)}")
    console.line(f"payload: {root}")


def commit_of(root: Path) -> str:
    """Read the commit that the build wrote beside the data, or ask git in a checkout."""
    if (root / "COMMIT").is_file():
        return (root / "COMMIT").read_text(encoding="utf-8").strip()
    if not (root / ".git").exists():
        return UNKNOWN
    asked = (
        "git",
        "-C",
        str(root),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    )
    try:
        ended = process.run(asked, lambda _: None)
    except OSError:
        return UNKNOWN
    commit = ended.tail[-1] if ended.code == 0 and ended.tail else ""
    return commit if COMMIT.fullmatch(commit) else UNKNOWN
