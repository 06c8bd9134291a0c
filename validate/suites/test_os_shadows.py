"""Check which libraries hide others of the same name, and which are loaded into every process."""

import os
import re
from shlex import quote
from typing import Dict, List, Sequence, Tuple

from validate.check import check, fail
from validate.endings import Complaint
from validate.fixtures import Measure, Situation
from validate.probes.aside import pattern, unset
from validate.probes.dlopen import LoaderPath, loader_path
from validate.probes.files import names, read, under
from validate.probes.libraries import strays_out_of_the_way
from validate.process import run
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
    cause=(
        "the loader complains in every process, and mpirun takes that for an answer; the other "
        "checks leave these lines out"
    ),
)
def test_preload(image: Situation, measure: Measure) -> None:
    """every library that $LD_PRELOAD, $LD_AUDIT and /etc/ld.so.preload name, as the loader finds
    it; what the loader says when it starts a program"""
    loader, lost = _loader(image), []
    asked = [(name, "LD_PRELOAD") for name in re.split("[: ]+", image.env.get("LD_PRELOAD", ""))]
    asked += [(name, "LD_AUDIT") for name in image.env.get("LD_AUDIT", "").split(":")]
    asked += [(name, PRELOADED) for name in read(under(image.root, PRELOADED)).split()]
    asked = [(name, where) for name, where in asked if name and "$" not in name]
    for name, where in asked:
        there = os.path.isfile(under(image.root, name)) if "/" in name else loader.first(name)
        lost += [] if there else [(name, where)]
    measure(", ".join(name for name, _ in asked) or "nothing")
    seen = ["{} in {} is not there".format(*one) for one in lost]
    for one in _complaints(image):
        if (one.library, one.setting) not in lost:
            seen.append("{} in {} does not load: {}".format(*one))
            lost.append((one.library, one.setting))
    if lost:
        fail("; ".join(seen), remedy=_without(lost, asked))


def _complaints(image: Situation) -> Sequence[Complaint]:
    """Return what the loader says at the start of a program; a tree of files has no loader."""
    return run(["true"], env=image.env).complaints if image.root == "/" else ()


def _without(lost: Sequence[Tuple[str, str]], asked: Sequence[Tuple[str, str]]) -> Remedy:
    """Return the line that takes lost libraries out of the variables and of the file."""
    lines, variables = [], []
    for name in (name for name, where in lost if where == PRELOADED):
        lines.append("sed -i -E 's|{}||' {}".format(pattern(name), PRELOADED))
    for variable in dict.fromkeys(where for _, where in lost if where != PRELOADED):
        lines.append("sed -i 's|^{}=|# &|' /etc/environment".format(variable))
        rest = [one for one, where in asked if where == variable and (one, where) not in lost]
        if rest:
            joined = " " if variable == "LD_PRELOAD" else ":"
            lines.append("export {}={}".format(variable, quote(joined.join(rest))))
        else:
            variables.append(variable)
    return unset(variables, "; ".join(lines)) if variables else in_shell("; ".join(lines))
