"""pip of the image, asked whether packages agree with one another."""

from validate.probes.interpreter import IMPORT_SECONDS, find
from validate.process import Begun, Result
from validate.pytest_plugin import Situation

KEY = "pip check"
"""What Situation keeps the answer under."""


def begin(image: Situation) -> Begun:
    python = find(image.env, str(image.expected.fact("python", "interpreter", "")))
    return Begun(
        [python, "-m", "pip", "--disable-pip-version-check", "check"], IMPORT_SECONDS, image.env
    )


def checked(image: Situation) -> Result:
    """How `pip check` ended; once in a run."""
    found: Result = image.once(KEY, lambda: begin(image).result())
    return found
