"""Ask pip of the image whether the installed packages fit together."""

import re
from shlex import quote
from typing import Sequence

from validate.fixtures import Situation, SlowProbe
from validate.probes.interpreter import IMPORT_SECONDS, find_python
from validate.process import Result, RunningCommand
from validate.remedy import Remedy, in_image, in_shell

NEEDS = re.compile(r" requires ([A-Za-z0-9._-]+), which is not installed")
WANTS = re.compile(r" has requirement ([^;]+?)(?:; .*)?, but you ")
KEY = "pip check"
"""The key of the answer in Situation."""


def begin_check(image: Situation) -> RunningCommand:
    """Start `pip check` in the image's Python."""
    python = find_python(image.env, image.expected)
    return RunningCommand(
        [python, "-m", "pip", "--disable-pip-version-check", "check"], IMPORT_SECONDS, image.env
    )


def checked(image: Situation) -> Result:
    """Return how `pip check` ended; it runs once in a run."""
    found: Result = image.once(KEY, lambda: begin_check(image).result())
    return found


def install(python: str, *words: str) -> str:
    """Return the line with which pip installs into a Python of the distribution too.

    Debian 12, Ubuntu 24.04 and later refuse that without the variable (PEP 668); a pip that is
    older does not know it.
    """
    line = "PIP_BREAK_SYSTEM_PACKAGES=1 {} -m pip install {}".format(python, " ".join(words))
    return line + "   # as root, with an index in reach; else: imagegen build"


def uninstall(python: str, name: str) -> str:
    """Return the line with which pip removes what it installed over the distribution's package."""
    return "PIP_BREAK_SYSTEM_PACKAGES=1 {} -m pip uninstall -y {}".format(python, name)


def agreed(python: str, conflicts: Sequence[str]) -> Remedy:
    """Return what ends the conflicts that `pip check` prints."""
    looking = "{} -m pip check".format(python)
    found = [match.group(1) for line in conflicts
             for match in [NEEDS.search(line) or WANTS.search(line)] if match]  # fmt: skip
    if not found:
        return in_image("imagegen build", look=looking)
    wanted = [quote(re.sub(r"[() ]", "", one)) for one in dict.fromkeys(found)]
    return in_shell(install(python, *wanted), look=looking)


SLOW_PROBE = SlowProbe(KEY, begin_check, lambda result: result)
