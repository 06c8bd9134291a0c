"""Find every copy of NCCL in an image, and the settings that change NCCL without being seen.

Settings: NVIDIA/nccl, docs/userguide env.rst; what is read from the bytes of the library was
measured on the wheels of 2.14.3 to 2.30.7.
"""

import os
from shlex import quote
from typing import Dict, List, NamedTuple, Tuple

from validate.probes.aside import unset
from validate.probes.binary import marks
from validate.probes.files import read, under
from validate.probes.lightcc import extensions

LIBRARY = "libnccl.so.2"
BUILD = rb"NCCL version ([0-9]+\.[0-9]+\.[0-9]+[^+\0 ]*\+cuda[0-9]+\.[0-9]+)"
SYMBOL = rb"ncclNetPlugin_v([0-9]+)"
HEADERS = ("/usr/include/nccl.h", "/usr/local/cuda/include/nccl.h")
VERSION_MACROS = ("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH")

STATIC_IN = ("libtorch_cuda.so", "libtorch_cuda_cpp.so")
"""Libraries of PyTorch's wheels that contain an NCCL of their own, before torch 2."""


class Copy(NamedTuple):
    """Hold one NCCL: its path, release, CUDA at build time, and the plugin ABIs it accepts."""

    path: str
    version: str
    cuda: str
    accepts: Tuple[int, ...]

    def __str__(self) -> str:
        return "{}+cuda{} in {}".format(self.version or "?", self.cuda or "?", self.path)


def nccl_version(number: int) -> str:
    """Convert what ncclGetVersion returns: 2804 is 2.8.4; since 2.9, 20909 is 2.9.9."""
    if number < 10000:
        return "{}.{}.{}".format(number // 1000, number % 1000 // 100, number % 100)
    return "{}.{}.{}".format(number // 10000, number % 10000 // 100, number % 100)


def built(path: str) -> Tuple[str, str]:
    """Return (version, CUDA) from the bytes of a library; empty if they are not there."""
    found = next(iter(marks(path, BUILD)), "")
    release, _, cuda = found.partition("+cuda")
    return release, cuda


def copy(path: str) -> Copy:
    """Read the facts of an NCCL from the bytes of a library."""
    release, cuda = built(path)
    accepts = sorted(int(number) for number in marks(path, SYMBOL))
    return Copy(path, release, cuda, tuple(accepts))


def inside(sites: List[str]) -> List[str]:
    """List the libraries of PyTorch and Horovod that may contain an NCCL of their own."""
    found = []
    for site in sites:
        found += [os.path.join(site, "torch/lib", name) for name in STATIC_IN]
    return [path for path in found if os.path.isfile(path)] + extensions(sites)


def copies(dynamic: List[str], sites: List[str]) -> List[Copy]:
    """List every NCCL: first the libraries, then those that are linked into other libraries."""
    held = [one for one in map(copy, inside(sites)) if one.version]
    return [copy(path) for path in dynamic] + held


def settings(root: str, env: Dict[str, str]) -> Dict[str, Tuple[str, str]]:
    """Map each setting to its value and the place that sets it.

    The environment wins over files, the file in the home folder over the one in /etc.
    """
    home = env.get("HOME", "/root")
    files = ["/etc/nccl.conf", os.path.join(home, ".nccl.conf"), env.get("NCCL_CONF_FILE", "")]
    found: Dict[str, Tuple[str, str]] = {}
    for path in filter(None, files):
        for line in read(under(root, path)).splitlines():
            name, equals, value = line.partition("#")[0].strip().partition("=")
            if equals:
                found[name.strip()] = (value.strip(), path)
    for name, value in env.items():
        if name.startswith("NCCL_"):
            found[name] = (value, "the environment")
    return found


def suspicious(found: Dict[str, Tuple[str, str]], rdma: bool) -> List[str]:
    """List the settings that turn a transport off or flood the log, in words.

    `rdma` is true if there is RDMA to turn off, or if the image was made for it.
    """
    off = ["NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"] + (["NCCL_IB_DISABLE"] if rdma else [])
    wrong = [name for name in off if found.get(name, ("", ""))[0] not in ("", "0")]
    # `lo` with other interfaces does no harm; alone it reaches no other machine.
    if found.get("NCCL_SOCKET_IFNAME", ("", ""))[0].lstrip("=") == "lo":
        wrong.append("NCCL_SOCKET_IFNAME")
    if found.get("NCCL_NET_PLUGIN", ("", ""))[0] == "none":
        wrong.append("NCCL_NET_PLUGIN")
    if found.get("NCCL_DEBUG", ("", ""))[0].upper() in ("INFO", "TRACE"):
        wrong.append("NCCL_DEBUG")
    return ["{}={} in {}".format(name, *found[name]) for name in wrong]


def removal(setting: str, place: str) -> str:
    """Return the line that takes a setting out of use; in a file it becomes a comment.

    A variable is also taken out of /etc/environment, which sessions read.
    """
    comment = "sed -i 's|^ *{} *=|# &|' {}"
    if place != "the environment":
        return comment.format(setting, quote(place))
    return str(unset([setting], comment.format(setting, "/etc/environment")))


def chosen_interfaces(wanted: str, there: List[str]) -> List[str]:
    """Choose the interfaces that NCCL_SOCKET_IFNAME selects.

    Names are prefixes; `=` before the list asks for whole names, `^` leaves them out.
    """
    without, whole = wanted.startswith("^"), wanted.lstrip("^").startswith("=")
    asked = [name.partition(":")[0] for name in wanted.lstrip("^=").split(",") if name]

    def matches(name: str) -> bool:
        return any(name == one if whole else name.startswith(one) for one in asked)

    return [name for name in there if matches(name) != without]
