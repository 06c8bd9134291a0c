"""Find files that are truncated or damaged, among those that a command loads."""

import os
import re
import struct
from shlex import quote
from typing import Dict, Iterable, List, NamedTuple, Sequence

from validate.fixtures import Situation
from validate.probes.dlopen import loader_path
from validate.probes.dpkg import install_again
from validate.probes.elf import PT_LOAD
from validate.probes.files import names, under
from validate.probes.installed_files import Installed, changed, installed
from validate.probes.interpreter import find_python
from validate.probes.pip import install
from validate.probes.programs import interpreter_of
from validate.process import run

SECONDS_TO_READ = 40.0
LIBRARY = re.compile(r"\.so(\.\d+)*$")
TEXT = (b"/*", b"INPUT", b"GROUP", b"OUTP", b"#", b"\n")
"""How a script for the linker begins, which may be called lib*.so."""

SITES = "import sys; print(chr(10).join(p for p in sys.path if p.startswith(chr(47))))"


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
        """Return the command line that brings the file again; empty if no package has it."""
        if not self.owner:
            return ""
        if self.of_wheel:
            return install("python3", "--force-reinstall", "--no-deps", quote(self.owner))
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

    First by their headers, which is quick; if all headers fit, by the digests of their packages.
    """
    sites = _sites(image, argv)
    files = _loaded_by(image, argv, sites) + _named(said)
    found = [Damage(path, how) for path, how in _by_headers(files)]
    known = installed(image.root, [one.path for one in found] or files, sites)
    if not found:
        return [_different(one) for one in changed(known, SECONDS_TO_READ)]
    owners: Dict[str, Installed] = {one.path: one for one in known}
    return [_with_owner(one, owners) for one in found]


def _by_headers(files: Iterable[str]) -> List[List[str]]:
    pairs = [[path, not_whole(path)] for path in files if not path.endswith((".py", ".pyc"))]
    return [pair for pair in pairs if pair[1]]


def _different(one: Installed) -> Damage:
    how = "it is not what {} installed, by its {} sum".format(one.owner, one.algorithm)
    return Damage(one.path, how, one.owner, one.of_wheel)


def _with_owner(one: Damage, owners: Dict[str, Installed]) -> Damage:
    known = owners.get(os.path.realpath(one.path))
    return one._replace(owner=known.owner, of_wheel=known.of_wheel) if known else one


def _named(said: str) -> List[str]:
    """List the files that a message names: those of a traceback, and libraries by their path."""
    found = re.findall(r'File "(/[^"]+)"|(/[^\s:\'",()]+\.so[.\d]*)', said)
    paths = [os.path.realpath(one or other) for one, other in found]
    return [path for path in dict.fromkeys(paths) if os.path.isfile(path)]


def _sites(image: Situation, argv: Sequence[str]) -> List[str]:
    """Return the folders that the image's Python imports from, if the command runs it."""
    python = find_python(image.env, image.expected)
    if python not in argv:
        return []
    found = run([python, "-I", "-c", SITES], env=image.env).out.split("\n")
    usual = ["/usr/lib/python3/dist-packages"]
    return [path for path in dict.fromkeys([*found, *usual]) if os.path.isdir(path)]


def _loaded_by(image: Situation, argv: Sequence[str], sites: Sequence[str]) -> List[str]:
    """List the programs of a command, the extensions of its Python, and all that these need."""
    lib_dir = image.expected.os.get("lib_dir", "/usr/lib")
    loader = loader_path(image.root, image.env, lib_dir)
    starts = [word if "/" in word else loader.first(word) for word in argv]
    starts = [word for word in starts if word.startswith("/") and os.path.isfile(word)]
    starts += list(filter(None, map(interpreter_of, starts)))
    for site in sites:
        for name in sorted({*image.expected.components, "numpy", "nvidia"} & {*names(site)}):
            starts += _libraries_below(os.path.join(site, name))
        starts += [p for p in _libraries_in(site, os.listdir(site)) if os.path.isfile(p)]
    if image.expected.has("openmpi"):
        prefix = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
        if sites or any(word.startswith(prefix) for word in argv):
            for folder in (prefix + "/lib", lib_dir + "/openmpi"):  # its plug-ins
                starts += _libraries_below(under(image.root, folder))
    return [path for path in loader.closure(starts) if os.path.isfile(path)]


def _libraries_below(folder: str) -> List[str]:
    found: List[str] = []
    for top, _, files in os.walk(folder):
        found += _libraries_in(top, files)
    return found


def _libraries_in(folder: str, files: Iterable[str]) -> List[str]:
    return [os.path.join(folder, name) for name in sorted(files) if LIBRARY.search(name)]
