"""pip of the image, asked whether packages agree with one another."""

from validate.plugin import Situation
from validate.probes.interpreter import find
from validate.process import Begun, Result

KEY = "pip check"
"""What Situation keeps the answer under."""
SECONDS = 60.0


def begin(image: Situation) -> Begun:
    python = find(image.env, str(image.expected.fact("python", "interpreter", "")))
    return Begun([python, "-m", "pip", "--disable-pip-version-check", "check"], SECONDS, image.env)


def checked(image: Situation) -> Result:
    """How `pip check` ended; once in a run."""
    found: Result = image.once(KEY, lambda: begin(image).result())
    return found
