"""Find files that are truncated or damaged, among those that a command loads."""

import os
import re
import struct
from typing import Dict, Iterable, List, NamedTuple, Sequence

from validate.fixtures import Situation
from validate.probes import changed_files, package_lists
from validate.probes.dlopen import loader_path
from validate.probes.dpkg import install_again
from validate.probes.elf import PT_LOAD
from validate.probes.files import names, under
from validate.probes.interpreter import find_python
from validate.probes.programs import interpreter_of
from validate.probes.sites import extension_modules, frameworks, site_packages

SECONDS_TO_READ = 40.0
LIBRARY = re.compile(r"\.so(\.\d+)*$")
TEXT = (b"/*", b"INPUT", b"GROUP", b"OUTP", b"#", b"\n")
"""How a script for the linker begins, which may be called lib*.so."""

DISTRIBUTION = "/usr/lib/python3/dist-packages"


class Damage(NamedTuple):
    """Hold a file that is not whole, how that shows, and the package that it is of, if known."""

    path: str
    how: str
    owner: str = ""
    of_wheel: bool = False

    def __str__(self) -> str:
        return "{} ({})".format(self.path, self.how)

    @property
    def remedy(self) -> str:
        """Return the command line that brings the file again; empty if no package of apt has it.

        A wheel may have been compiled for the image, or be of another index than pip's own.
        """
        if not self.owner or self.of_wheel:
            return ""
        return install_again(self.owner)


def not_whole(path: str) -> str:
    """Say how the size of a library or program contradicts its own headers; empty if it does not.

    Source: elf(5). Only 64-bit little-endian objects are read.
    """
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            head = file.read(64)
            if not size:
                return "it is empty"
            if head[:4] != b"\x7fELF":
                return "" if head.startswith(TEXT) else "it is no ELF file"
            if head[4:6] != b"\x02\x01":
                return ""
            ends = [64]
            if len(head) == 64:
                (segments, sections) = struct.unpack_from("<QQ", head, 32)
                length, count, section, number = struct.unpack_from("<HHHH", head, 54)
                ends += [segments + length * count, sections + section * number]
                file.seek(segments)
                ends += _ends(file.read(length * count), length)
    except (OSError, struct.error):
        return ""
    if size >= max(ends):
        return ""
    return "it has {} bytes, its headers describe {}".format(size, max(ends))


def _ends(table: bytes, length: int) -> List[int]:
    """Return where in the file each loaded segment ends."""
    found = []
    for at in range(0, len(table) - 55, length or 56):
        kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", table, at)
        found += [offset + size] if kind == PT_LOAD else []
    return found


def damaged(image: Situation, argv: Sequence[str], said: str) -> List[Damage]:
    """List the files that are not whole, of those that a command loads or that its message names.

    First by their headers, which is quick; if all headers fit, by the checksums of their packages.
    """
    sites = _sites(image, argv)
    files = list(dict.fromkeys(_loaded_by(image, argv, sites) + _named(said)))
    found = [Damage(path, how) for path, how in _by_headers(files)]
    known = _installed(image, [one.path for one in found] or files, sites)
    if not found:
        listed = list(known.values())
        every = package_lists.Excluded([])
        seen = changed_files.look(image.root, listed, lambda _: True, every, SECONDS_TO_READ)
        return [_different(image.root, one) for one in seen.changed]
    return [_with_owner(one, known) for one in found]


def _installed(
    image: Situation, paths: Sequence[str], sites: Sequence[str]
) -> Dict[str, package_lists.Listed]:
    """Map the real paths of files to what their packages say of them.

    What the recipe itself changes is left out.
    """
    wanted = {os.path.realpath(path) for path in paths}
    ends = {os.path.basename(path) for path in wanted}
    listed = list(package_lists.of_packages(image.root, package_lists.diversions(image.root)))
    listed += package_lists.of_wheels(sites, {one.path for one in listed})
    found: Dict[str, package_lists.Listed] = {}
    folders: Dict[str, str] = {}
    for one in listed:
        folder, name = os.path.split(one.path)
        if name in ends and one.path not in image.expected.patched:
            # The same file may have another name here: /lib is a link to /usr/lib.
            if folder not in folders:
                folders[folder] = os.path.realpath(_here(image.root, folder))
            real = os.path.join(folders[folder], name)
            if real in wanted:
                found[real] = one
    return found


def _here(root: str, path: str) -> str:
    """Return where a path is; one of a wheel is below `root` already."""
    return path if root == "/" or path.startswith(root) else under(root, path)


def _by_headers(files: Iterable[str]) -> List[List[str]]:
    pairs = [[path, not_whole(path)] for path in files if not path.endswith((".py", ".pyc"))]
    return [pair for pair in pairs if pair[1]]


def _different(root: str, one: package_lists.Listed) -> Damage:
    how = "it is not what {} installed, by its {} sum".format(one.owner, one.algorithm)
    return Damage(_here(root, one.path), how, one.owner, one.of_wheel)


def _with_owner(one: Damage, known: Dict[str, package_lists.Listed]) -> Damage:
    of = known.get(os.path.realpath(one.path))
    return one._replace(owner=of.owner, of_wheel=of.of_wheel) if of else one


def _named(said: str) -> List[str]:
    """List the files that a message names: those of a traceback, and libraries by their path."""
    found = re.findall(r'File "(/[^"]+)"|(/[^\s:\'",()]+\.so[.\d]*)', said)
    paths = [os.path.realpath(one or other) for one, other in found]
    return [path for path in dict.fromkeys(paths) if os.path.isfile(path)]


def _sites(image: Situation, argv: Sequence[str]) -> List[str]:
    """Return the folders that packages are installed in, if the command runs the image's Python."""
    if find_python(image.env, image.expected) not in argv:
        return []
    return [path for path in site_packages(image) or [DISTRIBUTION] if os.path.isdir(path)]


def _loaded_by(image: Situation, argv: Sequence[str], sites: Sequence[str]) -> List[str]:
    """List the programs of a command, the extensions of its Python, and all that these need."""
    lib_dir = image.expected.os.get("lib_dir", "/usr/lib")
    loader = loader_path(image.root, image.env, lib_dir)
    starts = [word if "/" in word else loader.first(word) for word in argv]
    starts = [word for word in starts if word.startswith("/") and os.path.isfile(word)]
    starts += list(filter(None, map(interpreter_of, starts)))
    for site in sites:
        starts += [os.path.join(site, one) for one in names(site) if LIBRARY.search(one)]
        starts += list(extension_modules(os.path.join(site, "numpy")))
    for folder in frameworks(image) if sites else []:
        starts += list(extension_modules(folder))
    if image.expected.has("openmpi"):
        prefix = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
        if sites or any(word.startswith(prefix) for word in argv):
            for folder in (prefix + "/lib", lib_dir + "/openmpi"):  # its plug-ins
                starts += list(extension_modules(under(image.root, folder)))
    return [path for path in loader.closure(starts) if os.path.isfile(path)]
