"""Ask pip of the image whether the installed packages fit together."""

from validate.fixtures import Situation, SlowProbe
from validate.probes.interpreter import IMPORT_SECONDS, find_python
from validate.process import Result, RunningCommand

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


SLOW_PROBE = SlowProbe(KEY, begin_check, lambda result: result)
