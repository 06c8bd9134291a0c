"""Decide what an image is held to: its expectation file, or what is found in it."""

import json
import os
import sys

from validate.check import CheckResult
from validate.discovery.infer import document, inferred
from validate.expected import DEFAULT_PATH, Expected, load
from validate.streams import put_out

WORDS = (
    ("the recipe's", "the image's"),
    ("the recipe says", "its package says"),
    ("the recipe has", "the image has"),
    ("the recipe names", "its package names"),
    ("the recipe sets", "the image sets"),
    ("; image.json would list what the recipe itself changes", ""),
    ("the matrix", "the Dockerfile"),
)
"""Words of checks about an image that has a recipe -> those for any other."""
REBUILD, ANEW = "imagegen build", "docker build ."


def expectation(path: str, root: str) -> Expected:
    """Return what to hold the image to.

    Without the file that every image of imagegen has, this is what is found in the image. Raises
    ExpectationError for a file that cannot be used.
    """
    if path == DEFAULT_PATH and not os.path.lexists(DEFAULT_PATH):
        return inferred(root, dict(os.environ))
    return load(path)


def put_inferred(root: str) -> int:
    """Print an expectation file of what is found, and return the exit code."""
    text = json.dumps(document(root, dict(os.environ)), indent=2, sort_keys=True)
    problem = put_out([text + "\n"])
    if problem:
        sys.stderr.write("error: cannot write: {}\n\nhint: name another file\n".format(problem))
    return 2 if problem else 0


def in_its_words(result: CheckResult, expected: Expected) -> CheckResult:
    """Return a result in words that fit an image without a recipe of imagegen."""
    if not expected.inferred:
        return result
    measured, cause = _reworded(result.measured, expected), _reworded(result.cause, expected)
    remedy = result.remedy.replace(REBUILD, ANEW)
    return result._replace(remedy=remedy, measured=measured, cause=cause)


def _reworded(text: str, expected: Expected) -> str:
    for word, other in WORDS:
        text = text.replace(word, other if not expected.path else word.replace("recipe", "file"))
    return text
