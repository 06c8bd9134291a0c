"""Find the folder where imagegen keeps what it did and fetched on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of imagegen's state: `$IMAGEGEN_STATE`, else by the XDG base directories.

    Raises ConfigError for a user without a home directory.
    """
    environ = os.environ if environ is None else environ
    if environ.get("IMAGEGEN_STATE"):
        return Path(environ["IMAGEGEN_STATE"])
    xdg = environ.get("XDG_STATE_HOME", "")
    if xdg.startswith("/"):  # the XDG specification says to ignore relative paths
        return Path(xdg) / "imagegen"
    try:
        return Path(environ.get("HOME") or Path.home()) / ".local" / "state" / "imagegen"
    except RuntimeError:
        text = "this user has no home directory to keep the journal in"
        raise ConfigError.of(text, hint="set `IMAGEGEN_STATE` to a directory") from None
