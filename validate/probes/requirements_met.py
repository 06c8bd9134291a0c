"""Read whether the installed packages of a Python fit together, as `pip check` reads it.

pip takes half a second to start. Nothing but its yes is answered here: where a package may lack
something, or where only pip knows, pip is asked, and its words are what a report shows.

Sources: pip/_internal/operations/check.py of pip 20 to 25; PyPA, "Core metadata", Requires-Dist.
"""

import importlib
from typing import Any, Dict, Iterator, List, Sequence

from validate.probes.files import names

LOOKS_AT_TAGS = (24, 1)
"""From this release on `pip check` names wheels of another platform too."""
ANYWHERE = "-none-any"


def all_met(folders: Sequence[str]) -> bool:
    """Return whether every package in these folders finds what it requires, in its versions.

    False also where that cannot be said without pip: no pip, eggs, metadata that does not parse.
    The folders have to be those of a Python of the release that this process runs on.
    """
    try:
        return _met(folders)
    except Exception:  # noqa: BLE001  (metadata may be broken in any way: pip says how)
        return False


def _met(folders: Sequence[str]) -> bool:
    from packaging.requirements import Requirement  # pytest and the checks share it
    from packaging.utils import canonicalize_name

    if any(name.endswith((".egg", ".egg-link")) for one in folders for name in names(one)):
        return False
    found: Dict[str, Any] = {}
    for one in _distributions(folders):
        found.setdefault(canonicalize_name(one.metadata["Name"]), one)
    if "pip" not in found or not _fits_here(found):
        return False
    for one in found.values():
        for text in one.requires or ():
            wanted = Requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            there = found.get(canonicalize_name(wanted.name))
            if there is None or not wanted.specifier.contains(there.version, prereleases=True):
                return False
    return True


def _distributions(folders: Sequence[str]) -> Iterator[Any]:
    try:
        metadata = importlib.import_module("importlib.metadata")
    except ImportError:  # before 3.8, where pytest brings it
        metadata = importlib.import_module("importlib_metadata")
    for folder in folders:  # an earlier folder of the path wins
        yield from metadata.distributions(path=[folder])


def _fits_here(found: Dict[str, Any]) -> bool:
    """Return whether this Python takes every wheel, if this release of pip looks at that."""
    release = [int(part) for part in found["pip"].version.split(".")[:2]]
    if tuple(release) < LOOKS_AT_TAGS:
        return True
    special = [tags for tags in map(_tags, found.values()) if tags]
    if not special:
        return True
    from packaging.tags import sys_tags

    known = {str(tag) for tag in sys_tags()}
    return all(known.intersection(tags) for tags in special)


def _tags(one: Any) -> List[str]:
    """Return the tags of a wheel that is for some platforms only; none for any other package."""
    from email.parser import HeaderParser

    from packaging.tags import parse_tag

    text = one.read_text("WHEEL") or ""
    said = HeaderParser().parsestr(text).get_all("Tag", []) if text else []
    tags = [str(tag) for line in said for tag in parse_tag(line)]
    return [] if any(tag.endswith(ANYWHERE) for tag in tags) else tags
