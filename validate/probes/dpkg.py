"""Find the package of the distribution that brings a file, also one that was lost since."""

import os
from shlex import quote
from typing import Iterator, List, Tuple

from validate.probes.files import names, under
from validate.remedy import Remedy, in_image, in_shell

LISTS = "/var/lib/dpkg/info"
MERGED = ("/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/", "/libx32/")
"""Folders that are links to those of the same name in /usr where /usr is merged. A package may list
its files under either name.
"""


def other_names(path: str) -> List[str]:
    """Return the names under which a package may list a path: with and without /usr."""
    if path.startswith(MERGED):
        return [path, "/usr" + path]
    short = path[len("/usr") :]
    return [path, short] if path.startswith("/usr/") and short.startswith(MERGED) else [path]


def _lists(root: str) -> Iterator[Tuple[str, bytes]]:
    folder = under(root, LISTS)
    for name in names(folder):
        if name.endswith(".list"):
            with open(os.path.join(folder, name), "rb") as file:
                yield name[: -len(".list")], b"\n" + file.read() + b"\n"


def package_of(root: str, path: str) -> Tuple[str, str]:
    """Return the package that brings a path, and the path as the package lists it; else empty.

    The path is taken as it is, and by its folder's real name: links between folders are followed.
    """
    folder, file = os.path.split(path)
    real = os.path.realpath(under(root, folder))
    inside = real if root == "/" else "/" + os.path.relpath(real, os.path.realpath(root))
    paths = dict.fromkeys(other_names(path) + other_names(os.path.join(inside, file)))
    for package, text in _lists(root):
        for one in paths:
            if b"\n" + one.encode() + b"\n" in text:
                return package, one
    return "", ""


def packages_with(root: str, name: str) -> List[str]:
    """List the packages that bring a file of this name, wherever it lies."""
    end = "/{}\n".format(name).encode()
    return [package for package, text in _lists(root) if end in text]


def install_again(*packages: str) -> str:
    """Return the line that brings the files of packages back.

    An image has no package lists; those that the line downloads are removed again. Settings stay as
    they are: dpkg would ask about those that were changed.
    """
    line = "apt-get update && apt-get install -y --reinstall -o Dpkg::Options::=--force-confold {}"
    line += "; rm -rf /var/lib/apt/lists/*"
    return line.format(" ".join(packages)) + "   # as root, with a network; else: imagegen build"


def lost_library(root: str, *libraries: str) -> Remedy:
    """Return what brings libraries that the loader does not find.

    Where a package of the image lists one of this name, it was lost after the installation.
    """
    known = {name: packages_with(root, name) for name in libraries}
    packages = [found[0] for found in known.values() if found]
    looking = "find / -xdev -name {}".format(quote(libraries[0] + "*"))
    if len(packages) == len(libraries):
        return in_shell(install_again(*dict.fromkeys(packages)), look=looking)
    return in_image(
        "imagegen build   # no package of this image brings {}".format(
            " or ".join(name for name in libraries if not known[name])
        ),
        look=looking,
    )


def whole_again(root: str, path: str) -> Remedy:
    """Return what replaces a damaged file: its package, where it is of one."""
    package = package_of(root, path)[0] if path.startswith("/") else ""
    packages = [package] if package else packages_with(root, os.path.basename(path))[:1]
    if packages:
        return in_shell(install_again(*packages))
    return in_image("imagegen build   # brings a whole {}".format(os.path.basename(path)))


def programs_packages(root: str, program: str) -> List[str]:
    """List the packages that bring a program of this name, in a folder of programs."""
    found = (packages_with(root, "{}/{}".format(folder, program)) for folder in ("bin", "sbin"))
    return [package for packages in found for package in packages]


def lost_program(root: str, *programs: str) -> Remedy:
    """Return what brings programs back that were lost after their installation."""
    packages = [name for one in programs for name in programs_packages(root, one)[:1]]
    known = len(packages) == len(programs)
    return (
        in_shell(install_again(*dict.fromkeys(packages))) if known else in_image("imagegen build")
    )
