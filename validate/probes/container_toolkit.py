"""Find how the NVIDIA container toolkit put GPUs into a container, and IMEX channels.

Sources: NVIDIA Container Toolkit, "Support for Container Device Interface"; cdi.cncf.io, "CDI
specification"; NVIDIA, "IMEX service for NVLink networks" and the DRA driver's ComputeDomain.
"""

import os
import re
from typing import List, NamedTuple, Tuple

from validate.probes.files import names, read, under

CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")
CONFIG = "/etc/nvidia-container-runtime/config.toml"
RELEASE = re.compile(r"\.so\.(\d+\.\d+(?:\.\d+)*)")
CHANNELS = "/dev/nvidia-caps-imex-channels"
CHANNEL_DRIVER = "nvidia-caps-imex-channels"
MULTI_NODE = re.compile(r"\bGB[23]00\b")
"""GPUs whose NVLink leads to other machines."""
STATUS = "/var/lib/dpkg/status"
LARGEST = 1 << 26
TOOLKIT = "nvidia-container-toolkit"


class Specification(NamedTuple):
    """Hold a CDI specification of NVIDIA's: its file and the releases of the driver in it."""

    path: str
    drivers: Tuple[str, ...]


def specifications(root: str) -> List[Specification]:
    """List the CDI specifications of NVIDIA GPUs on this host."""
    found = []
    for folder in CDI_FOLDERS:
        for name in names(under(root, folder)):
            text = read(under(root, os.path.join(folder, name)))
            if name.endswith((".yaml", ".json")) and "nvidia.com/gpu" in text:
                lines = [line for line in text.splitlines() if "libcuda.so." in line]
                seen = {one for line in lines for one in RELEASE.findall(line)}
                found.append(Specification(os.path.join(folder, name), tuple(sorted(seen))))
    return found


def mode(root: str, visible: str) -> str:
    """Return how the toolkit works here: `cdi`, `legacy`, … ; empty if nothing shows it.

    In CDI mode it sets NVIDIA_VISIBLE_DEVICES to `void` in the container. On the host its settings
    say it.
    """
    said = re.search(r'^mode *= *"(\w+)"', read(under(root, CONFIG)), re.MULTILINE)
    if said:
        return said.group(1)
    return "cdi" if visible == "void" else ""


def version(root: str) -> str:
    """Return the release of the toolkit's package on this host; empty if it is not here."""
    text = read(under(root, STATUS), LARGEST)
    found = re.search(
        r"^Package: {}\n(?:.+\n)*?Version: (?:\d+:)?([\d.]+)".format(TOOLKIT), text, re.MULTILINE
    )
    return found.group(1) if found else ""


def channels(root: str) -> List[str]:
    """List the IMEX channels that the container has."""
    return [name for name in names(under(root, CHANNELS)) if name.startswith("channel")]


def has_imex(root: str) -> bool:
    """Return whether the driver of the host serves IMEX channels."""
    return CHANNEL_DRIVER in read(under(root, "/proc/devices"))
