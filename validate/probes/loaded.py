"""Find libraries that a process of PyTorch and Horovod loads twice, and which Horovod calls."""

import os
from typing import Dict, List, Sequence, Tuple

from validate.probes import nccl
from validate.probes.elf import read_elf
from validate.probes.libraries import version_in_name

WHEELS = {
    "libnccl": "nccl",
    "libcudnn": "cudnn",
    "libcudart": "cuda_runtime",
    "libmpi": "",
    "libibverbs": "",
    "libtorch_cpu": "",
    "libc10": "",
}
"""Family of a library -> the wheel of NVIDIA that brings it."""


def families(mapped: Sequence[str]) -> Dict[str, List[str]]:
    """Group the files that are mapped in a process by the family of their library."""
    found: Dict[str, List[str]] = {}
    for path in mapped:
        if family_of(path) in WHEELS:
            found.setdefault(family_of(path), []).append(path)
    return found


def family_of(path: str) -> str:
    """Return the family of a library: `/usr/lib/libnccl.so.2.20.5` belongs to `libnccl`."""
    return os.path.basename(path).partition(".so")[0]


def library_release(path: str) -> str:
    """Return the release of a library, from its bytes, its name or its wheel; empty if unknown."""
    if family_of(path) == "libnccl":
        return nccl.built(path)[0]
    return version_in_name(path, WHEELS[family_of(path)])


def describe_copies(paths: Sequence[str]) -> str:
    """Describe the copies of one library in words, each with its release."""
    return ", ".join("{} {}".format(library_release(path), path).strip() for path in paths)


def mixed(twice: Dict[str, List[str]], extension: str) -> Tuple[str, ...]:
    """List the families that Horovod's extension needs and the process has in several releases.

    Horovod may call one release and PyTorch another. The extension needs NCCL if it was built with
    `HOROVOD_NCCL_LINK=SHARED`.
    """
    elf = read_elf(extension)
    linked = {family_of(name) for name in (elf.needed if elf else ())}
    return tuple(
        sorted(f for f, paths in twice.items() if f in linked and len(_releases(paths)) > 1)
    )


def _releases(paths: Sequence[str]) -> List[str]:
    return sorted(set(filter(None, map(library_release, paths))))
