"""Apply a patch to files of packages: `python3 apply.py FILE.patch`.

Each original is diverted first: it stays beside the new file as `NAME.distrib`, and dpkg knows of
both. A hunk has to fit exactly and once; otherwise nothing is changed.
"""

import py_compile
import re
import shutil
import subprocess
import sys


def changes(patch):
    """Read a unified diff: path -> hunks, each a pair of texts, before and after."""
    found, hunks = {}, []
    for line in patch.splitlines(keepends=True):
        if line.startswith("+++ b/"):
            hunks = found.setdefault(line[len("+++ b") :].strip(), [])
        elif line.startswith("@@ "):
            hunks.append(["", ""])
        elif hunks and re.match(r"[ +-](?!-- a/)", line):
            hunks[-1][0] += line[1:] if line[0] != "+" else ""
            hunks[-1][1] += line[1:] if line[0] != "-" else ""
    return found


def patched(path, hunks):
    """Return the new text of a file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for before, after in hunks:
        if text.count(before) != 1:
            sys.exit(f"error: {path} is another one than the patch was made for:\n{before}")
        text = text.replace(before, after)
    return text


def replace(path, text):
    """Put a new file in the place of a diverted one, and its byte code in place of the old."""
    original = path + ".distrib"
    divert = ["dpkg-divert", "--quiet", "--local", "--rename", "--divert", original, "--add", path]
    subprocess.run(divert, check=True)
    shutil.copy(original, path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    py_compile.compile(path, doraise=True)


def main(patch):
    """Apply a patch: first look whether all of it fits, then change the files."""
    with open(patch, encoding="utf-8") as file:
        found = changes(file.read())
    new = {path: patched(path, hunks) for path, hunks in found.items()}
    if not new:
        sys.exit(f"error: {patch} changes nothing")
    for path, text in new.items():
        replace(path, text)


if __name__ == "__main__":
    main(sys.argv[1])
