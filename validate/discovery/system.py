"""Describe the system of an image as the expectation file does, from its files."""

import os
import struct
from typing import Dict

from validate.discovery.interpreters import followed
from validate.probes.binary import marks
from validate.probes.files import names, under
from validate.probes.os_release import read_os_release

PROGRAMS = ("/bin/sh", "/usr/bin/env", "/sbin/ldconfig", "/lib64/ld-linux-x86-64.so.2")
MACHINES = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 22: "s390x", 243: "riscv64"}
"""e_machine of elf(5) -> what `uname -m` prints."""
BUILT = rb"GNU C Library [^\n]{0,80} version (\d+\.\d+)"
"""What libc.so.6 prints when it is run."""


def system(root: str) -> Dict[str, str]:
    """Return the facts about the distribution; `glibc` is empty where another C library is used."""
    release = read_os_release(root)
    arch = machine(root)
    lib_dir = library_folder(root, arch)
    word, number = release.get("ID", ""), release.get("VERSION_ID", "")
    return {
        "id": word + number,
        "ID": word,
        "VERSION_ID": number,
        "arch": arch,
        "glibc": glibc(root, lib_dir),
        "lib_dir": lib_dir,
    }


def machine(root: str) -> str:
    """Return the kind of processor that the programs of the image are for."""
    for path in PROGRAMS:
        try:
            with open(under(root, followed(root, path)), "rb") as file:
                head = file.read(20)
        except OSError:
            continue
        if head[:4] == b"\x7fELF":
            (number,) = struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)
            return MACHINES.get(number, os.uname().machine)
    return os.uname().machine


def library_folder(root: str, arch: str) -> str:
    """Return the folder that the distribution puts libraries in."""
    places = ["/usr/lib/{}-linux-gnu".format(arch), "/usr/lib64", "/usr/lib"]
    with_libc = [one for one in places if "libc.so.6" in names(under(root, one))]
    there = with_libc or [one for one in places if os.path.isdir(under(root, one))]
    return next(iter(there), "/usr/lib")


def glibc(root: str, lib_dir: str) -> str:
    """Return the release of the GNU C library, from its bytes; empty if there is none."""
    for folder in (lib_dir, lib_dir.replace("/usr/", "/", 1)):
        path = folder + "/libc.so.6"
        found = marks(under(root, followed(root, path)), BUILT)
        if found:
            return found[0]
    return ""
