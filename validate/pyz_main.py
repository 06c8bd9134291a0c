"""Start the checks from one file: the `__main__` of validate.pyz, for any Python.

It unpacks the file into a new folder, which it removes in the end, because pytest reads its files
from a disk. It starts Python again without the user's settings and packages (-I -S), so that only
what is in the file counts. Python 2 has to be able to read this module.
"""

import os
import sys

try:
    import zipfile
except ImportError:  # its own imports are left out of a minimal Python; main() says so
    zipfile = None  # type: ignore

if sys.version_info[0] > 2:
    from typing import List, Optional  # noqa: F401 - in comments, for Python 2

OLDEST = (3, 6)
PLACES = ("", "/dev/shm", "/var/tmp", "/run", "~", ".")
ALONE = ["-I", "-S", "-B"]
NEEDED = (
    "shutil zipfile zlib json tempfile argparse subprocess _posixsubprocess ctypes _ctypes socket"
    " _socket select fcntl struct difflib ast concurrent xml logging unittest email inspect pyexpat"
)
"""Modules of the standard library that some distributors put into packages of their own."""
WHOLE = (
    "apt-get update && apt-get install -y python3"
    "   # or `imagegen validate IMAGE`, which brings its own Python"
)


def complain(text, hint):
    # type: (str, str) -> int
    """Write an error for a user, and return the exit code of bad usage."""
    sys.stderr.write("error: %s\n\nhint: %s\n" % (text, hint))
    return 2


def lacking():
    # type: () -> List[str]
    """List the modules of the standard library that are not there."""
    from importlib.util import find_spec

    return [
        one for one in NEEDED.split() if one not in sys.builtin_module_names and not find_spec(one)
    ]


def extracted(archive):
    # type: (str) -> Optional[List[str]]
    """Unpack what this Python needs into a new folder; return the folders to import from.

    The first one is the new folder. None where no folder can be written.
    """
    import tempfile

    for place in PLACES:
        try:
            parent = os.path.expanduser(place) or None
            folder = tempfile.mkdtemp(prefix="validate-", dir=parent)
        except (IOError, OSError):
            continue
        try:
            with zipfile.ZipFile(archive) as packed:
                wanted = packages(packed)
                tops = ("validate/",) + tuple("wheels/%s/" % name for name in wanted)
                packed.extractall(folder, [n for n in packed.namelist() if n.startswith(tops)])
            return [folder] + [os.path.join(folder, "wheels", name) for name in wanted]
        except (IOError, OSError):
            removed(folder)
    return None


def removed(folder):
    # type: (str) -> None
    """Remove what was unpacked."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def packages(packed):
    # type: (zipfile.ZipFile) -> List[str]
    """List the packages for this Python; a newer one takes those of the newest."""
    import json

    sets = json.loads(packed.read("pythons.json").decode("utf-8"))
    newest = max(int(minor) for minor in sets)
    names = sets[str(min(sys.version_info[1], newest))]  # type: List[str]
    return names  # noqa: RET504 - mypy has to know the type


def main():
    # type: () -> int
    """Run the checks and return their exit code."""
    if sys.version_info[:2] < OLDEST:
        text = "validate.pyz runs on Python 3.6 and later, this is %d.%d" % sys.version_info[:2]
        return complain(text, "`imagegen validate IMAGE` brings a Python of its own")
    without = lacking()
    if without:
        text = "this Python has only a part of its standard library; it lacks %s"
        return complain(text % ", ".join(without), WHOLE)
    archive = os.path.abspath(sys.argv[0])
    if not (sys.flags.isolated and sys.flags.no_site) and sys.executable:
        os.execv(sys.executable, [sys.executable] + ALONE + [archive] + sys.argv[1:])
    folders = extracted(archive)
    if folders is None:
        return complain(
            "no folder for temporary files can be written", "docker run --tmpfs /tmp IMAGE"
        )
    try:
        sys.path[:] = folders + [one for one in sys.path if one != archive]
        sys.argv[0] = "validate"
        from validate.cli import main as run

        return run(sys.argv[1:])
    finally:
        removed(folders[0])


if __name__ == "__main__":
    sys.exit(main())
