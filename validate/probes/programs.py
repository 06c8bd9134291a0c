"""Find programs on a PATH, and find out which of them are the same."""

import os
from typing import Dict, List, Sequence


def on_path(names: Sequence[str], path: str) -> List[str]:
    """List every executable of these names in every folder of PATH, in its order."""
    found = []
    for folder in path.split(":"):
        for name in names:
            candidate = os.path.join(folder, name)
            if folder and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                found.append(candidate)
    return found


def find_program(name: str, path: str) -> str:
    """Return the program that a shell finds; empty if there is none."""
    return next(iter(on_path([name], path)), "")


def interpreter_of(script: str) -> str:
    """Return the program in the first line of a script, such as `/usr/bin/python3`."""
    try:
        with open(script, "rb") as file:
            line = file.readline(256).decode("utf-8", "replace")
    except OSError:
        return ""
    words = line[2:].split() if line.startswith("#!") else []
    return words[0] if words else ""


def parse_environment(text: str) -> Dict[str, str]:
    """Parse /etc/environment as pam_env does: NAME=value, without the quotes around the value."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            found[name.replace("export ", "").strip()] = value.strip().strip("\"'")
    return found
