"""Ask pip of the image whether the installed packages fit together."""

import re
from shlex import quote
from typing import Sequence

from validate.fixtures import Situation
from validate.probes.interpreter import IMPORT_SECONDS, OWN_VERSION, find_python
from validate.probes.requirements_met import all_met
from validate.probes.sites import as_started, sites
from validate.process import Result, run
from validate.remedy import Remedy, in_image, in_shell

NEEDS = re.compile(r" requires ([A-Za-z0-9._-]+), which is not installed")
WANTS = re.compile(r" has requirement ([^;]+?)(?:; .*)?, but you ")
KEY = "pip check"
"""The key of the answer in Situation."""


def agrees(image: Situation) -> bool:
    """Return whether all installed packages find what they require; pip may know more if not."""
    facts = as_started(image).facts
    same_python = facts.get("version") == OWN_VERSION
    return same_python and all_met(sites(image))


def checked(image: Situation) -> Result:
    """Return how `pip check` ended; it runs once in a run."""
    python = find_python(image.env, image.expected)
    argv = [python, "-m", "pip", "--disable-pip-version-check", "check"]
    found: Result = image.once(KEY, lambda: run(argv, IMPORT_SECONDS, image.env))
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
