"""Look for the clues of components in the contents of an image.

The clues are data: `found_by` of each component.yaml, which `imagegen request --like` follows too
(imagegen/inspection/clues.py).
"""

import os
import re
from fnmatch import fnmatchcase
from typing import Iterator, NamedTuple, Optional, Tuple

from validate.components import Clue
from validate.discovery.contents import Contents

USUAL = {
    "wheel": r"^(.+)$",
    "conda": r"^(.+)$",
    "deb": r"^(?:\d+:)?(\d+(?:\.\d+)*)",
    "env": r"^v?(\d+(?:\.\d+)+)",
    "library": r"\.so\.(\d+\.\d+(?:\.\d+)*)$",
    "folder": r"(\d+(?:\.\d+)+)",
}
"""Where the version stands in what a clue of a kind finds."""


class Sighting(NamedTuple):
    """Hold what shows a component: its version, where it was seen, and its variant."""

    version: str
    evidence: str
    variant: str = ""


def sighting(clues: Tuple[Clue, ...], image: Contents) -> Optional[Sighting]:
    """Return the strongest sighting of a component; None if nothing shows it.

    One with a version is stronger than one without. A clue for a value of a release, such as
    torchvision, shows no component.
    """
    found = [one for clue in clues if not clue.value for one in _seen(clue, image)]
    return next((one for one in found if one.version), None)


def _seen(clue: Clue, image: Contents) -> Iterator[Sighting]:
    pattern = re.compile(clue.version or USUAL[clue.kind])
    for text, evidence in _things(clue, image):
        match = pattern.search(text)
        yield Sighting(match.group(1) if match else "", evidence, clue.variant)


def _things(clue: Clue, image: Contents) -> Iterator[Tuple[str, str]]:
    """Yield the text with the version, and the evidence, of all that a clue matches."""
    if clue.kind == "library":
        for path in image.libraries:
            if fnmatchcase(os.path.basename(path), clue.name):
                yield path, path
    named = {"wheel": image.wheels, "deb": image.debs, "conda": image.conda, "env": image.env}
    for name, version in sorted(named.get(clue.kind, {}).items()):
        if fnmatchcase(name, clue.name) and version:
            yield version, "{} {} {}".format(clue.kind, name, version)
