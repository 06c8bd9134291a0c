"""Find combinations in an image that are known to fail, from known_bad.json.

imagegen writes that file from `dockerfiles/known-bad` (imagegen/catalog/known_bad.py). A row names
components, which their packages show or the expectation file promises, and packages.
"""

import fnmatch
import io
import json
import os
import re
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Tuple

from validate.expected import Expected
from validate.probes.files import names, read, under

FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "known_bad.json")
DPKG_STATUS = "/var/lib/dpkg/status"
LARGEST_STATUS = 1 << 26

Packages = Dict[str, Dict[str, str]]
"""Kind (`wheel`, `deb`, `conda`) -> name -> version."""


class Bad(NamedTuple):
    """Hold a row that an image matches, and what of the image matches it."""

    name: str
    symptom: str
    workaround: str
    where: str
    source: str
    there: Tuple[str, ...]


def packages_of(root: str, sites: Iterable[str]) -> Packages:
    """List the packages of an image by their kind; names of wheels are as the index compares them.

    `sites` are the folders of the image's Python packages.
    """
    found: Packages = {"wheel": {}, "deb": _debs(root), "conda": {}}
    for site in sites:
        for name in names(site):
            if name.endswith(".dist-info"):
                wheel, _, version = name[: -len(".dist-info")].rpartition("-")
                found["wheel"].setdefault(plain(wheel), version)
        for name in names(os.path.join(site, "../../../conda-meta")):
            if name.endswith(".json") and name.count("-") >= 2:
                package, version, _ = name.rsplit("-", 2)
                found["conda"].setdefault(package, version)
    return found


def plain(name: str) -> str:
    """Return the name of a Python package as the index compares it."""
    return re.sub("[-_.]+", "-", name).lower()


def _debs(root: str) -> Dict[str, str]:
    found = {}
    text = read(under(root, DPKG_STATUS), LARGEST_STATUS)
    for stanza in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Status): (.*)$", stanza, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed") and "Version" in fields:
            version = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", fields["Version"])
            found[fields["Package"]] = version.group(1) if version else fields["Version"]
    return found


def in_range(version: str, wanted: str) -> bool:
    """Return whether a version is in a range: `any`, `2.17` (and all below it), `>=2.4,<2.4.6`."""
    if wanted == "any":
        return True
    return all(_holds(version, part.strip()) for part in wanted.split(","))


_COMPARE: Dict[str, Callable[[List[int], List[int]], bool]] = {
    ">=": lambda have, other: have >= other,
    "<=": lambda have, other: have <= other,
    ">": lambda have, other: have > other,
    "<": lambda have, other: have < other,
    "==": lambda have, other: have == other,
    "!=": lambda have, other: have != other,
}


def _holds(version: str, part: str) -> bool:
    match = re.match(r"(>=|<=|==|!=|>|<)?\s*(.*?)(\.\*)?$", part)
    if match is None or not re.match(r"\d", version):
        return False
    have, other = _numbers(version), _numbers(match.group(2))
    if not match.group(1) or match.group(3):
        same = have[: len(other)] == other
        return not same if match.group(1) == "!=" else same
    longest = max(len(have), len(other))
    have, other = ([*one, *[0] * (longest - len(one))] for one in (have, other))
    return _COMPARE[match.group(1)](have, other)


def _numbers(version: str) -> List[int]:
    found = re.match(r"\d+(\.\d+)*", version)
    return [int(part) for part in found.group(0).split(".")] if found else []


HOST = "host"
"""The kind of the packages that the machine has, not the image."""


def rows() -> List[Dict[str, Any]]:
    """Read the rows that this image came with, those of machines left out."""
    return [row for row in _all_rows() if HOST not in row["packages"]]


def host_rows() -> List[Dict[str, Any]]:
    """Read the rows that name software of the machine."""
    return [row for row in _all_rows() if HOST in row["packages"]]


def _all_rows() -> List[Dict[str, Any]]:
    with io.open(FILE, encoding="utf-8") as file:
        return list(json.load(file))


def matching(
    known: Iterable[Dict[str, Any]], expected: Expected, packages: Packages, env: Dict[str, str]
) -> List[Bad]:
    """Return the rows that an image matches. A row that a variable makes good is left out.

    A machine has what a row names beside components, such as a GPU: no image shows it, so an image
    for such machines matches.
    """
    found = []
    for row in known:
        if any(env.get(name) == value for name, value in row["unless_env"].items()):
            continue
        there = _there(row, expected, packages)
        if there:
            texts = {key: str(row[key]) for key in Bad._fields if key != "there"}
            found.append(Bad(there=tuple(there), **texts))
    return found


def _there(row: Dict[str, Any], expected: Expected, packages: Packages) -> List[str]:
    """Return what an image has of all that a row names; empty if it lacks one of them."""
    there = []
    for name, one in row["components"].items():
        shown = _component(name, one, expected, packages)
        if not shown:
            return []
        there.append(shown)
    for kind, wanted in row["packages"].items():
        for name, constraint in wanted.items():
            version = packages[kind].get(name, "")
            if not in_range(version, constraint) or not version:
                return []
            there.append("{} {} {}".format(kind, name, version))
    if row["several"]:
        wheels = sorted(fnmatch.filter(packages["wheel"], row["several"]))
        if len(wheels) < 2:
            return []
        there += ["wheel {} {}".format(name, packages["wheel"][name]) for name in wheels]
    return there


def _component(name: str, one: Dict[str, Any], expected: Expected, packages: Packages) -> str:
    """Return how an image has a component in one of the ranges; empty if it has not.

    A name without packages that is promised nowhere is a fact of machines, such as `gpu`.
    """
    if not one["packages"] and not expected.has(name):
        machine = expected.device == "gpu"
        return "on machines with {} {}".format(name, " or ".join(one["is"])) if machine else ""
    versions = [
        ("{} {} {}".format(kind, found, packages[kind][found]), packages[kind][found])
        for kind, glob in one["packages"]
        for found in sorted(fnmatch.filter(packages[kind], glob))
    ]
    if expected.has(name):
        promised = expected.version(name)
        versions.append(("{} {}".format(name, promised), promised))
    for shown, version in versions:
        if any(in_range(version, constraint) for constraint in one["is"]):
            return shown
    return ""
