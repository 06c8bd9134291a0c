"""Check that what Python finds installed is what is there."""

from typing import List, Tuple

from validate.check import check, fail, skip, warn
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes.aside import moved_out
from validate.probes.distributions import (
    Distribution,
    hollow,
    in_folder,
    left_by_pip,
    lost_links,
    twice,
)
from validate.probes.dpkg import package_of
from validate.probes.sites import site_packages
from validate.remedy import Remedy, in_image, in_shell


@check(
    "py.dists",
    "each distribution is installed once in a folder, and its modules are there",
    cause="an install was copied over another one, or was cut short",
    remedy=in_image("imagegen build   # or install the one that is wanted again"),
)
def test_dists(image: Situation, measure: Measure) -> None:
    """names and versions of *.dist-info, *.egg-info and *.egg-link in each folder of packages of
    the image's Python, their METADATA and top_level.txt; what pip left with `~`; where *.pth,
    *.egg-link and editable installs lead"""
    folders = site_packages(image)
    if not folders:
        skip("not-installed", "the image's Python names no folder of packages")
    found = {folder: in_folder(folder) for folder in folders}
    several = [one for folder in folders for one in twice(found[folder])]
    measure("{} in {}".format(sum(map(len, found.values())), ", ".join(folders)))
    seen = ["{} is there {} times: {}".format(s[0].name, len(s), _named(s)) for s in several]
    if any(len({one.version for one in same}) > 1 for same in several):
        cause = "programs read either version: which one is a matter of chance"
        fail("; ".join(seen[:4]), cause, _once(image, several))
    empty = [text for folder in folders for text in hollow(found[folder])]
    if empty:
        fail("; ".join(empty[:4]))
    left = [path for folder in folders for path in left_by_pip(folder)]
    lost = [one for folder in folders for one in lost_links(folder)]
    if several:
        warn("; ".join(seen[:4]), "", _once(image, several))
    if left or lost:
        seen = ["{} was left by pip".format(path) for path in left]
        seen += ["{} leads to {}, which is not there".format(*one) for one in lost]
        removed = ["rm -rf '{}'".format(path) for path in left]
        warn("; ".join(seen[:4]), "", in_shell("; ".join([*removed, *map(_unlinked, lost)])))


def _unlinked(lost: Tuple[str, str]) -> str:
    file, path = lost
    if file.endswith(".egg-link"):
        return "rm -f '{}'".format(file)
    return "sed -i '\\#{}#d' '{}'".format(path, file)


def _named(several: List[Distribution]) -> str:
    return " and ".join(one.path for one in several)


def _once(image: Situation, several: List[List[Distribution]]) -> Remedy:
    """Return what removes the copies that are not wanted, if all of them are known.

    Wanted is what a package of the distribution brought, else the version that the recipe names.
    """
    unwanted = [path for same in several for path in _unwanted(image, same)]
    kept = [same for same in several if not _unwanted(image, same)]
    if kept:
        names = ", ".join(same[0].name for same in kept)
        look = "ls -d {}".format(" ".join(one.path for one in kept[0]))
        return in_image("install once, in one step of the recipe: {}".format(names), look)
    return in_shell(moved_out(unwanted))


def _unwanted(image: Situation, same: List[Distribution]) -> List[str]:
    owned = [one for one in same if package_of(image.root, one.path)[0]]
    if not owned and image.expected.has(same[0].name):
        promised = image.expected.version(same[0].name)
        owned = [one for one in same if same_version(promised, one.version)]
    return [one.path for one in same if one not in owned] if len(owned) == 1 else []
