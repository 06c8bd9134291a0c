"""Find the libraries of the image by name, on the loader's path and in wheels of its Python."""

import os
import re
from shlex import quote
from typing import Dict, List, NamedTuple, Tuple

from validate.fixtures import Situation
from validate.probes import cuda, nccl
from validate.probes.aside import library_aside, one_line, without_line
from validate.probes.dlopen import LoaderPath, loader_path
from validate.probes.dpkg import package_of
from validate.probes.files import distinct_files, names, read, under
from validate.probes.import_errors import without
from validate.probes.ldcache import OF_DISTRIBUTION
from validate.probes.sites import sites
from validate.remedy import Remedy, in_image, in_shell

ASKED = re.compile(r"lib.+\.so(\.\d+)?$")
"""Names by which programs ask for libraries."""
SETTINGS = "/etc/ld.so.conf.d"


class Libraries(NamedTuple):
    """Search the loader's path and `sites`, the folders that the image's Python imports from."""

    loader: LoaderPath
    sites: List[str]

    @property
    def wheel_folders(self) -> List[str]:
        """Return the library folders of NVIDIA's wheels and of PyTorch."""
        places = []
        for site in self.sites:
            top = os.path.join(site, "nvidia")
            places += [os.path.join(top, name, "lib") for name in names(top)]
            places.append(os.path.join(site, "torch", "lib"))
        return [place for place in places if os.path.isdir(place)]

    def in_wheels(self, name: str) -> List[str]:
        """List every library of this name in wheels; no file twice."""
        paths = [os.path.join(folder, name) for folder in self.wheel_folders]
        return distinct_files([path for path in paths if os.path.isfile(path)])

    def copies(self, name: str) -> List[str]:
        """List every library of this name: first what dlopen takes, last those in wheels."""
        return distinct_files(self.loader.find(name) + self.in_wheels(name))

    def first(self, name: str) -> str:
        """Return the library that counts as the image's own; empty if there is none."""
        return next(iter(self.copies(name)), "")


def libraries(image: Situation) -> Libraries:
    """Return the libraries of the image, looked up once in a run."""
    found: Libraries = image.once("libraries", lambda: _look(image))
    return found


def _look(image: Situation) -> Libraries:
    lib_dir = image.expected.os.get("lib_dir", "/usr/lib")
    return Libraries(loader_path(image.root, image.env, lib_dir), sites(image))


def _inside(image: Situation, path: str) -> str:
    return path if image.root == "/" else "/" + os.path.relpath(path, image.root)


def out_of_the_way(image: Situation, path: str, whole_folder: bool = False) -> Tuple[str, Remedy]:
    """Return cause and remedy of a library that should not be on the loader's path.

    The setting that names its folder goes, if nothing else is lost by that, or if the whole folder
    should not be there; else the library itself gets another name.
    """
    path = _inside(image, path)
    folder = os.path.dirname(path)
    cause, remedy = "it was copied there", library_aside(image.root, path)
    owner = package_of(image.root, path)[0]
    if owner:
        cause = "the package {} brings it".format(owner)
    if folder in image.env.get("LD_LIBRARY_PATH", "").split(":"):
        cause, remedy = "LD_LIBRARY_PATH names {}".format(folder), without(image.env, folder)
    else:
        file = _setting(image, folder)
        if file:
            cause = "{} names {}".format(file, folder)
            if whole_folder or _alone_in(image, folder):
                remedy = in_shell(without_line(file, folder) + "; ldconfig")
    return cause, remedy


def _setting(image: Situation, folder: str) -> str:
    """Return the settings file that names a folder; empty if it is the distribution's, or none."""
    for name in names(under(image.root, SETTINGS)):
        file = os.path.join(SETTINGS, name)
        lines = [line.strip() for line in read(under(image.root, file)).splitlines()]
        if folder in [line.rstrip("/") for line in lines] and not OF_DISTRIBUTION.match(name):
            return file
    return ""


def _alone_in(image: Situation, folder: str) -> bool:
    """Return whether every library of a folder is in another folder of the loader too."""
    lib_dir = str(image.expected.os.get("lib_dir", "/usr/lib"))
    loader, here = loader_path(image.root, image.env, lib_dir), under(image.root, folder)
    others = [one for one in loader.folders if os.path.realpath(one) != os.path.realpath(here)]
    there = {name for one in others for name in names(one)}
    return {name for name in names(here) if ASKED.match(name)} <= there


def strays_out_of_the_way(image: Situation, twice: Dict[str, List[str]]) -> Tuple[str, Remedy]:
    """Return cause and remedy for libraries of which there are several copies.

    Of each, one copy stays: the one that is most likely the image's own.
    """
    causes: List[str] = []
    lines: List[str] = []
    for paths in twice.values():
        rank = sorted(paths, key=lambda path: _own(image, path))  # stable: the loader's order
        for path in rank[:-1]:
            cause, remedy = out_of_the_way(image, path)
            causes += [] if cause in causes else [cause]
            lines += [] if remedy in lines else [remedy]
    return "; ".join(causes), in_shell(one_line(lines))


def _own(image: Situation, path: str) -> int:
    """Rank a copy of a library: the higher, the more likely it is the image's own."""
    inside = _inside(image, path)
    folder = os.path.dirname(inside)
    promised = str(image.expected.env.get("LD_LIBRARY_PATH", "")).split(":")
    if package_of(image.root, inside)[0]:
        return 5
    if folder in promised or os.path.basename(_setting(image, folder)).startswith("imagegen"):
        return 4
    if folder in image.env.get("LD_LIBRARY_PATH", "").split(":"):
        return 0
    if _setting(image, folder):
        return 1
    return 2 if folder.startswith("/usr/local/") else 3


def instead_of(image: Situation, name: str, version: str) -> Tuple[str, Remedy]:
    """Return cause and remedy if the library in use is of another version than the recipe's.

    If there are several copies, the first one is taken off the path. A single copy is replaced.
    """
    copies = libraries(image).copies(name)
    if len(copies) > 1:
        return out_of_the_way(image, copies[0])
    remedy = "imagegen build   # brings {} of release {}".format(name, version)
    return "another release was installed over it", in_image(remedy)


def nccl_copies(image: Situation) -> List[nccl.Copy]:
    """List every NCCL of the image, once in a run: their files are large."""
    there = libraries(image)
    found: List[nccl.Copy] = image.once(
        "nccl copies", lambda: nccl.copies(there.copies(nccl.LIBRARY), there.sites)
    )
    return found


def back_on_the_path(image: Situation, component: str, path: str) -> Remedy:
    """Return the command line that makes a wheel's library known to the loader, as the recipe does.

    Without it only PyTorch finds the library. Empty if the loader knows it, or if the recipe does
    not take it from a wheel.
    """
    variant = image.expected.components[component].get("variant")
    if variant != "pypi" or libraries(image).loader.first(os.path.basename(path)):
        return Remedy()
    return on_the_path(os.path.dirname(path), component)


def on_the_path(folder: str, component: str) -> Remedy:
    """Return the line that lets the loader look into a folder."""
    line = "echo {} > {}/imagegen-{}.conf; ldconfig"
    return in_shell(line.format(quote(folder), SETTINGS, component))


def version_in_name(path: str, wheel: str) -> str:
    """Return the version of a library from its real name, or from the wheel that it belongs to.

    Such a name is `libcudnn.so.8.2.0`; such a wheel is `cudnn` of nvidia-cudnn-cu11. Empty if
    neither has a version. `libcudart.so.11.0`, as in wheels, names an ABI, not a version.
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
    """Return the skip code for a check that needs a driver where there is none."""
    return "gpu-not-passed" if cuda.gpus(image.root) else "no-gpu-hw"


def flavour(image: Situation) -> str:
    """Return `devel` (headers and nvcc) or `runtime`; empty if the recipe does not say."""
    return str(image.expected.fact("cuda", "flavour", ""))


def environment(image: Situation, path: str) -> Dict[str, str]:
    """Return the environment for a process that loads a library.

    A library of a wheel finds those of the other wheels, as it does when PyTorch loads it. In a
    tree of files LD_LIBRARY_PATH names all folders, because the loader finds libraries there by
    path only.
    """
    there, here = libraries(image), os.path.dirname(path)
    library_path = [image.env.get("LD_LIBRARY_PATH", "")]
    folders = library_path if image.root == "/" else there.loader.folders
    if here in there.wheel_folders:
        folders = [here, *there.wheel_folders, *folders]
    joined = ":".join(filter(None, folders))
    return dict(image.env, LD_LIBRARY_PATH=joined) if joined else image.env
