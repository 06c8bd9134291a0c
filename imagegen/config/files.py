"""Write files so that no reader ever sees half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from imagegen.errors import ConfigError


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under a temporary name and move it into place.

    Raises ConfigError where that cannot be done.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        text = f"cannot write `{path}`"
        raise ConfigError.of(text, evidence=[str(error)]) from error
