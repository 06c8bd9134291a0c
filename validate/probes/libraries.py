"""The libraries of the image by name: on the loader's path, and in wheels of its Python."""

import os
import re
from typing import Dict, List, NamedTuple, Tuple

from validate.fixtures import Situation
from validate.probes import cuda, nccl
from validate.probes.dlopen import LoaderPath, loader_path
from validate.probes.files import distinct_files, names, read, under
from validate.probes.import_errors import without
from validate.probes.interpreter import ask, find_python

SITES = """
import json, os, sys
print(json.dumps({"sites": [path for path in sys.path if path and os.path.isdir(path)]}))
"""
SECONDS = 30.0
SETTINGS = "/etc/ld.so.conf.d"
OF_DISTRIBUTION = re.compile(r"libc\.conf$|\S+-linux-gnu\.conf$")
"""Files there that stay: what was copied into one of their folders goes."""


class Libraries(NamedTuple):
    """Where to look: `sites` are the folders that the image's Python imports from."""

    loader: LoaderPath
    sites: List[str]

    @property
    def wheel_folders(self) -> List[str]:
        """The library folders of NVIDIA's wheels, and of PyTorch."""
        places = []
        for site in self.sites:
            top = os.path.join(site, "nvidia")
            places += [os.path.join(top, name, "lib") for name in names(top)]
            places.append(os.path.join(site, "torch", "lib"))
        return [place for place in places if os.path.isdir(place)]

    def in_wheels(self, name: str) -> List[str]:
        """Every library of this name that a wheel brought, no file twice."""
        paths = [os.path.join(folder, name) for folder in self.wheel_folders]
        return distinct_files([path for path in paths if os.path.isfile(path)])

    def copies(self, name: str) -> List[str]:
        """Every library of this name: what dlopen takes first, what wheels bring last."""
        return distinct_files(self.loader.find(name) + self.in_wheels(name))

    def first(self, name: str) -> str:
        """The library that counts as the image's own; empty where there is none."""
        return next(iter(self.copies(name)), "")


def libraries(image: Situation) -> Libraries:
    """Of the image, looked up once in a run."""
    found: Libraries = image.once("libraries", lambda: _look(image))
    return found


def _look(image: Situation) -> Libraries:
    lib_dir = image.expected.os.get("lib_dir", "/usr/lib")
    return Libraries(loader_path(image.root, image.env, lib_dir), _sites(image))


def _sites(image: Situation) -> List[str]:
    answer = ask(find_python(image.env, image.expected), SITES, image.env, SECONDS)
    return [str(path) for path in answer.facts.get("sites", [])]


def out_of_the_way(image: Situation, path: str) -> Tuple[str, str]:
    """Cause and remedy of a library that comes first: where its folder was named."""
    folder = os.path.dirname(path)
    if image.root != "/":
        folder = "/" + os.path.relpath(folder, image.root)
    if folder in image.env.get("LD_LIBRARY_PATH", "").split(":"):
        return "LD_LIBRARY_PATH names {}".format(folder), without(image.env, folder)
    for name in names(under(image.root, SETTINGS)):
        file = os.path.join(SETTINGS, name)
        named = folder in read(under(image.root, file)).splitlines()
        if named and not OF_DISTRIBUTION.match(name):
            remedy = "sed -i '\\#^{}$#d' {}; ldconfig".format(folder, file)
            return "{} names {}".format(file, folder), remedy
    return "it was copied there", "dpkg -S {0} || rm {0}; ldconfig".format(path)


def instead_of(image: Situation, name: str, package: str, version: str) -> Tuple[str, str]:
    """Cause and remedy where the library that counts is of another version than the recipe's: one
    that comes before another is put out of its way, the only one is replaced."""
    copies = libraries(image).copies(name)
    if len(copies) > 1:
        return out_of_the_way(image, copies[0])
    remedy = "apt-get install --allow-downgrades '{}={}*'   # or: imagegen build"
    return "another release was installed over it", remedy.format(package, version)


def nccl_copies(image: Situation) -> List[nccl.Copy]:
    """Every NCCL of the image, looked up once in a run: their bytes are many."""
    there = libraries(image)
    found: List[nccl.Copy] = image.once(
        "nccl copies", lambda: nccl.copies(there.copies(nccl.LIBRARY), there.sites)
    )
    return found


def back_on_the_path(image: Situation, component: str, path: str) -> str:
    """The line that shows the loader what a wheel brought, as the recipe does: without it PyTorch
    alone finds the library. Empty where the loader knows it, or the recipe never said."""
    variant = image.expected.components[component].get("variant")
    if variant != "pypi" or libraries(image).loader.first(os.path.basename(path)):
        return ""
    line = "echo {} > /etc/ld.so.conf.d/imagegen-{}.conf; ldconfig"
    return line.format(os.path.dirname(path), component)


def version_in_name(path: str, wheel: str) -> str:
    """The version in the real name of a library (`libcudnn.so.8.2.0`), or of the wheel that it is
    part of (`cudnn` of nvidia-cudnn-cu11); empty where neither tells.

    `libcudart.so.11.0`, as wheels have it, names an ABI.
    """
    if not path:
        return ""
    suffix = os.path.basename(os.path.realpath(path)).partition(".so.")[2]
    if suffix.count(".") > 1:
        return suffix
    site = os.path.normpath(os.path.join(path, "../../../.."))
    pattern = re.compile(r"nvidia_{}(?:_cu\d+)?-([\d.]+)\.dist-info$".format(wheel))
    found = [pattern.match(name) for name in names(site)]
    return next((one.group(1) for one in found if one), "")


def without_driver(image: Situation) -> str:
    """The skip code of what cannot be asked for want of a driver."""
    return "gpu-not-passed" if cuda.gpus(image.root) else "no-gpu-hw"


def flavour(image: Situation) -> str:
    """`devel` (headers and nvcc), `runtime`, or empty where the recipe does not say."""
    return str(image.expected.fact("cuda", "flavour", ""))


def environment(image: Situation, path: str) -> Dict[str, str]:
    """For a process that loads a library: what a wheel brought finds the rest of the wheels, as it
    does below PyTorch; a tree of files has its libraries found only by path."""
    there, here = libraries(image), os.path.dirname(path)
    said = [image.env.get("LD_LIBRARY_PATH", "")]
    folders = said if image.root == "/" else there.loader.folders
    if here in there.wheel_folders:
        folders = [here, *there.wheel_folders, *folders]
    joined = ":".join(filter(None, folders))
    return dict(image.env, LD_LIBRARY_PATH=joined) if joined else image.env
