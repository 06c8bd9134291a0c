"""Interpret cuDNN's version numbers, and find the libraries that it consists of since version 8."""

import os
import re
from typing import Dict, List

from validate.probes.files import names

HEADERS = ("cudnn_version.h", "cudnn.h")
"""Headers with the version: the first one since 8, the second one before."""

VERSION_MACROS = ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL")
INCLUDES = ("/usr/include", "/usr/local/cuda/include")


def cudnn_version(number: int) -> str:
    """Convert what cudnnGetVersion returns: 8200 is 8.2.0; since 9, 90100 is 9.1.0."""
    if number >= 90000:
        return "{}.{}.{}".format(number // 10000, number % 10000 // 100, number % 100)
    return "{}.{}.{}".format(number // 1000, number % 1000 // 100, number % 100)


def major_minor_patch(promised: str) -> str:
    """Return the parts of a version that the library itself knows: 8.2.0.53 is 8.2.0."""
    return ".".join(promised.split(".")[:3])


def soname(promised: str) -> str:
    """Return the SONAME of the library of a version, such as `libcudnn.so.8`."""
    return "libcudnn.so." + promised.partition(".")[0]


def parts(library: str, major: str) -> List[str]:
    """List the libraries of the same cuDNN beside one library: `libcudnn_ops.so.9` and so on."""
    folder = os.path.dirname(library)
    pattern = re.compile(r"libcudnn(_\w+)?\.so\.{}$".format(re.escape(major)))
    return [os.path.join(folder, name) for name in names(folder) if pattern.match(name)]


def file_versions(paths: List[str]) -> Dict[str, List[str]]:
    """Map each version in a real file name to the parts that have it; files of wheels have none."""
    found: Dict[str, List[str]] = {}
    for path in paths:
        suffix = os.path.basename(os.path.realpath(path)).partition(".so.")[2]
        if "." in suffix:
            found.setdefault(suffix, []).append(os.path.basename(path))
    return found
