"""Find libibverbs and the provider library that it loads for each driver.

rdma-core loads `LIBDIR/libibverbs/lib<driver>-rdmav<NN>.so`, where NN is the private ABI of exactly
its own build (IBVERBS_PABI_VERSION); `/etc/libibverbs.d/<driver>.driver` names the drivers.
"""

import os
import re
from typing import Dict, List, NamedTuple

from validate.probes.binary import marks
from validate.probes.files import names, read, under, walk

PRIVATE_ABI = rb"IBVERBS_PRIVATE_[0-9]+"
PROVIDER_FILE = re.compile(r"lib(.+)-rdmav([0-9]+)\.so$")


class Provider(NamedTuple):
    """Hold a provider library: its driver, the ABI in its name, and the ABIs that it needs."""

    driver: str
    path: str
    abi: str
    wants: List[str]


def declared_drivers(root: str) -> List[str]:
    """List the drivers that /etc/libibverbs.d declares, as written: a name or a path."""
    top = under(root, "/etc/libibverbs.d")
    found = []
    for name in names(top):
        for line in read(os.path.join(top, name)).splitlines():
            words = line.split()
            if len(words) == 2 and words[0] == "driver":
                found.append(words[1])
    return found


def providers(root: str, lib_dir: str) -> Dict[str, Provider]:
    """Map each driver to its provider library; a broken link does not count."""
    folder = os.path.join(lib_dir, "libibverbs")
    found = {}
    for name in names(under(root, folder)):
        match = PROVIDER_FILE.match(name)
        path = under(root, os.path.join(folder, name))
        if match and os.path.exists(path):
            wants = [abi_of(text) for text in marks(path, PRIVATE_ABI)]
            found[match.group(1)] = Provider(match.group(1), path, match.group(2), wants)
    return found


def private_abis(library: str) -> List[str]:
    """List the private ABIs that a libibverbs offers: one, unless something is very wrong."""
    return [abi_of(text) for text in marks(library, PRIVATE_ABI)]


def abi_of(symbol: str) -> str:
    """Return the number at the end of a private symbol."""
    return symbol.rpartition("_")[2]


def release_of(library: str) -> str:
    """Return the rdma-core release in a library's real name: 44.0 in `libibverbs.so.1.14.44.0`."""
    match = re.search(r"\.so\.\d+\.\d+\.(\d+\.\d+)$", os.path.realpath(library))
    return match.group(1) if match else ""


def kernel_modules(root: str, folders: List[str]) -> List[str]:
    """List kernel modules, which must not be in an image; those of a mount are the host's."""
    found = [path for folder in folders for path in walk(root, folder)]
    return sorted(path for path in found if re.search(r"\.ko(\.xz|\.zst)?$", path))
