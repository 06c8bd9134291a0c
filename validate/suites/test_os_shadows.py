"""Check which libraries hide others of the same name, and which are loaded into every process."""

import os
import re
from shlex import quote
from typing import Dict, List

from validate.check import check, fail
from validate.fixtures import Measure, Situation
from validate.probes.aside import pattern, unset
from validate.probes.dlopen import LoaderPath, loader_path
from validate.probes.files import names, read, under
from validate.probes.libraries import strays_out_of_the_way
from validate.remedy import Remedy, in_shell

FAMILIES = re.compile(r"lib(nccl|cudnn|cudart|mpi|ibverbs|rdmacm)\.so\.\d+(\.0)?$")
"""Names as programs ask for them; `libcudart.so.11.0` has a zero."""
PRELOADED = "/etc/ld.so.preload"


def _loader(image: Situation) -> LoaderPath:
    lib_dir = str(image.expected.os.get("lib_dir", "/usr/lib"))
    return loader_path(image.root, image.env, lib_dir)


def _found(loader: LoaderPath) -> Dict[str, List[str]]:
    asked = {n for folder in loader.folders for n in names(folder) if FAMILIES.match(n)}
    return {name: loader.find(name) for name in sorted(asked)}


@check(
    "os.shadowed",
    "the loader knows one copy of each library that training loads: none hides another one",
    severity="warn",
    cause="a folder in LD_LIBRARY_PATH or /etc/ld.so.conf.d brings a second one",
)
def test_shadowed(image: Situation, measure: Measure) -> None:
    """libnccl, libcudnn, libcudart, libmpi, libibverbs and librdmacm in LD_LIBRARY_PATH, the
    loader's cache and its folders, in the order of dlopen(3). Copies in wheels, or found by
    RUNPATH, are not looked at: torch.loaded-libs reads what a process really loads"""
    found = _found(_loader(image))
    measure(", ".join(found) or "none of them is there")
    text = "{} is {}, which hides {}"
    hidden = [text.format(n, p[0], ", ".join(p[1:])) for n, p in found.items() if len(p) > 1]
    if hidden:
        twice = {name: paths for name, paths in found.items() if len(paths) > 1}
        fail("; ".join(hidden), *strays_out_of_the_way(image, twice))


@check(
    "os.preload",
    "what is loaded into every process is there",
    severity="warn",
    cause="the loader complains in every process, and mpirun takes that for an answer",
)
def test_preload(image: Situation, measure: Measure) -> None:
    """every library that $LD_PRELOAD and /etc/ld.so.preload name, as the loader finds it"""
    loader, lost = _loader(image), []
    asked = [(name, "LD_PRELOAD") for name in re.split("[: ]+", image.env.get("LD_PRELOAD", ""))]
    asked += [(name, PRELOADED) for name in read(under(image.root, PRELOADED)).split()]
    asked = [(name, where) for name, where in asked if name and "$" not in name]
    for name, where in asked:
        there = os.path.isfile(under(image.root, name)) if "/" in name else loader.first(name)
        lost += [] if there else [(name, where)]
    measure(", ".join(name for name, _ in asked) or "nothing")
    if lost:
        text = "; ".join("{} in {} is not there".format(*one) for one in lost)
        gone = [name for name, where in lost if where != PRELOADED]
        rest = [name for name, where in asked if where != PRELOADED and name not in gone]
        file = [name for name, where in lost if where == PRELOADED]
        fail(text, remedy=_without(gone, rest, file))


def _without(gone: List[str], rest: List[str], file: List[str]) -> Remedy:
    """Return the line that takes lost libraries out of the variable and of the file."""
    lines = ["sed -i -E 's|{}||' {}".format(pattern(name), PRELOADED) for name in file]
    if not gone:
        return in_shell("; ".join(lines))
    lines += ["sed -i 's|^LD_PRELOAD=|# &|' /etc/environment"]
    if not rest:
        return unset(["LD_PRELOAD"], "; ".join(lines))
    return in_shell("; ".join([*lines, "export LD_PRELOAD={}".format(quote(" ".join(rest)))]))
