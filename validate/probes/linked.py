"""Ask the loader which files a program or a library would load."""

import os
import re
from typing import Dict

from validate.process import run


def found_by_loader(path: str) -> Dict[str, str]:
    """Map the names that an object needs to real paths, as `ldd` finds them; empty: not found."""
    lines = re.findall(r"^\s*(\S+) => (not found|/\S+)", run(["ldd", path]).out, re.MULTILINE)
    return {name: os.path.realpath(to) if to[0] == "/" else "" for name, to in lines}


def loaded_library(path: str, stem: str) -> str:
    """Return the real path of the `stem`.so that an object would load; empty if there is none."""
    found = found_by_loader(path)
    return next((to for name, to in found.items() if name.startswith(stem + ".so")), "")
