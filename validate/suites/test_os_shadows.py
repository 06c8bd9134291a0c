"""Libraries of one name, of which the loader takes the first."""

import re
from typing import Dict, List

from validate.check import check, fail
from validate.plugin import Measure, Situation
from validate.probes.dlopen import LoaderPath, loader_path
from validate.probes.files import names

FAMILIES = re.compile(r"lib(nccl|cudnn|cudart|mpi|ibverbs|rdmacm)\.so\.\d+(\.0)?$")
"""Names as programs ask for them; `libcudart.so.11.0` has a zero."""


def _found(loader: LoaderPath) -> Dict[str, List[str]]:
    asked = {n for folder in loader.folders for n in names(folder) if FAMILIES.match(n)}
    return {name: loader.find(name) for name in sorted(asked)}


@check(
    "os.shadowed",
    "the loader knows one copy of each library that training loads: none hides another one",
    severity="warn",
    cause="a folder in LD_LIBRARY_PATH or /etc/ld.so.conf.d brings a second one",
    remedy="unset LD_LIBRARY_PATH   # or take its folder out of /etc/ld.so.conf.d; ldconfig",
)
def test_shadowed(image: Situation, measure: Measure) -> None:
    """libnccl, libcudnn, libcudart, libmpi, libibverbs and librdmacm in LD_LIBRARY_PATH, the
    loader's cache and its folders, in the order of dlopen(3). What lies in wheels, or where a
    RUNPATH leads, is loaded beside them: torch.loaded-libs reads what was mapped in the end"""
    lib_dir = str(image.expected.os.get("lib_dir", "/usr/lib"))
    found = _found(loader_path(image.root, image.env, lib_dir))
    measure(", ".join(found) or "none of them is there")
    text = "{} is {}, which hides {}"
    hidden = [text.format(n, p[0], ", ".join(p[1:])) for n, p in found.items() if len(p) > 1]
    if hidden:
        fail("; ".join(hidden))
