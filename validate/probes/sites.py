"""Find the folders that the image's Python imports from, and what lies in them."""

import os
from typing import Dict, Iterator, List

from validate.fixtures import Situation
from validate.probes.files import names
from validate.probes.interpreter import LOCATE, ask, find_python

SECONDS = 30.0
LOADED = "files that training loads"
"""The key of these real paths in the memory of a Situation; os.elf-deps leaves them there."""
KEPT_BESIDE = ("__pycache__", "tests", "include")
"""Folders of packages that hold no extension which training loads."""


def _located(image: Situation) -> Dict[str, List[str]]:
    python = find_python(image.env, image.expected)
    answer = image.once("locate", lambda: ask(python, LOCATE, image.env, SECONDS))
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
