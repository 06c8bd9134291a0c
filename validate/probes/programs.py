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


def interpreter_of(script: str, path: str = "") -> str:
    """Return the program that runs a script, from its first line, such as `/usr/bin/python3`.

    `#!/usr/bin/env python3` asks for the first python3 on PATH. pip begins a script with `/bin/sh`
    where the path of Python is too long for the first line; the second one has it.
    """
    try:
        with open(script, "rb") as file:
            first, second = (file.readline(4096).decode("utf-8", "replace") for _ in range(2))
    except OSError:
        return ""
    words = first[2:].split() if first.startswith("#!") else []
    if words and words[0].endswith("/env"):
        asked = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return find_program(asked[0], path) if asked else ""
    if words and words[0].endswith("/sh") and second.startswith("'''exec' "):
        return second.split()[1].strip("\"'")
    return words[0] if words else ""


def parse_environment(text: str) -> Dict[str, str]:
    """Parse /etc/environment as pam_env does: NAME=value, without the quotes around the value."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            found[name.replace("export ", "").strip()] = value.strip().strip("\"'")
    return found
