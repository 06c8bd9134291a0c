"""pip of the image, asked whether packages agree with one another."""

from validate.fixtures import Situation, SlowProbe
from validate.probes.interpreter import IMPORT_SECONDS, find_python
from validate.process import Result, RunningCommand

KEY = "pip check"
"""What Situation keeps the answer under."""


def begin_check(image: Situation) -> RunningCommand:
    python = find_python(image.env, image.expected)
    return RunningCommand(
        [python, "-m", "pip", "--disable-pip-version-check", "check"], IMPORT_SECONDS, image.env
    )


def checked(image: Situation) -> Result:
    """How `pip check` ended; once in a run."""
    found: Result = image.once(KEY, lambda: begin_check(image).result())
    return found


SLOW_PROBE = SlowProbe(KEY, begin_check, lambda result: result)
