"""Find the folders that the image's Python imports from, and what lies in them."""

import os
from typing import Any, Dict, Iterator, List

from validate.fixtures import Situation, SlowProbe
from validate.probes.files import names
from validate.probes.interpreter import LOCATE, Answer, answered, ask, find_python
from validate.process import RunningCommand

SECONDS = 30.0
LOADED = "files that training loads"
"""The key of these real paths in the memory of a Situation; os.elf-deps leaves them there."""
KEPT_BESIDE = ("__pycache__", "tests", "include")
"""Folders of packages that hold no extension which training loads."""


KEY = "locate"
"""The key of what Python says of itself in a Situation."""


def _begin(image: Situation) -> RunningCommand:
    python = find_python(image.env, image.expected)
    return RunningCommand([python, "-c", LOCATE], SECONDS, image.env)


def as_started(image: Situation) -> Answer:
    """Return what the image's Python says of itself, started as training starts it."""
    found: Answer = image.once(KEY, lambda: answered(_begin(image).result()))
    return found


def _located(image: Situation) -> Dict[str, Any]:
    answer = as_started(image)
    if not answer.facts:  # perhaps by a variable: py.start says so
        python = find_python(image.env, image.expected)
        apart = lambda: ask(python, LOCATE, image.env, SECONDS, apart=True)  # noqa: E731
        answer = image.once("locate apart", apart)
    return dict(answer.facts)


def sites(image: Situation) -> List[str]:
    """Return the folders that the image's Python imports from."""
    return [str(path) for path in _located(image).get("sites", [])]


def frameworks(image: Situation) -> List[str]:
    """Return the folders of the packages that train, where they are."""
    return [str(path) for path in _located(image).get("folders", [])]


def site_packages(image: Situation) -> List[str]:
    """Return the folders of `sites` that packages are installed in."""
    return [one for one in sites(image) if os.path.basename(one).endswith("-packages")]


def extension_modules(folder: str) -> Iterator[str]:
    """Yield the libraries and extension modules below a folder."""
    for name in names(folder):
        path = os.path.join(folder, name)
        if name.endswith(".so") or ".so." in name:
            yield path
        elif "." not in name and name not in KEPT_BESIDE and os.path.isdir(path):
            yield from extension_modules(path)


SLOW_PROBE = SlowProbe(KEY, _begin, answered)
