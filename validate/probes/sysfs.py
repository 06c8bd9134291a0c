"""RDMA devices, PCI functions and network interfaces as the kernel shows them in /sys.

A container sees the host's PCI bus there also where the device itself was not passed to it: that is
how "no hardware" and "hardware not passed" are told apart.
"""

import os
from typing import List, NamedTuple

from validate.probes.files import names, read, under

NVIDIA, MELLANOX = "0x10de", "0x15b3"
INFINIBAND_CLASS, ETHERNET_CLASS = "0x0207", "0x0200"


class Port(NamedTuple):
    """A port of an RDMA device; `state` such as `4: ACTIVE`, `physical` such as `5: LinkUp`,
    `link_layer` InfiniBand or Ethernet; `board` is the model of the card."""

    device: str
    number: str
    state: str
    rate: str
    link_layer: str
    physical: str = ""
    board: str = ""

    @property
    def active(self) -> bool:
        return self.state.startswith("4:")

    def __str__(self) -> str:
        said = [self.state.partition(": ")[2] or self.state, self.rate, self.link_layer]
        said.insert(1, "" if self.active else self.physical.partition(": ")[2])
        text = " ".join(part for part in said if part)
        return "{}/{} {}".format(self.device, self.number, text)


class Verbs(NamedTuple):
    """A verbs device of the kernel; `node` is where user space opens it, `present` if it is
    there."""

    name: str
    device: str
    node: str
    present: bool


def rdma_devices(root: str) -> List[str]:
    """Names such as `mlx5_0`."""
    return names(under(root, "/sys/class/infiniband"))


def ports(root: str) -> List[Port]:
    """Every port of every RDMA device."""
    found = []
    for device in rdma_devices(root):
        top = under(root, "/sys/class/infiniband/{}/ports".format(device))
        for number in names(top):
            files = ("state", "rate", "link_layer", "phys_state", "../../board_id")
            found.append(Port(device, number, *(read(os.path.join(top, number, f)) for f in files)))
    return found


def verbs(root: str) -> List[Verbs]:
    """Every /sys/class/infiniband_verbs/uverbsN, and whether the container has its device node."""
    top = under(root, "/sys/class/infiniband_verbs")
    found = []
    for name in names(top):
        if name.startswith("uverbs"):
            node = "/dev/infiniband/" + name
            device = read(os.path.join(top, name, "ibdev"))
            found.append(Verbs(name, device, node, os.path.exists(under(root, node))))
    return found


def pci_functions(root: str, vendor: str, classes: List[str]) -> List[str]:
    """PCI addresses of one vendor whose class begins with one of `classes` (`0x0207`)."""
    top = under(root, "/sys/bus/pci/devices")
    return [
        address
        for address in names(top)
        if read(os.path.join(top, address, "vendor")) == vendor
        and read(os.path.join(top, address, "class"))[:6] in classes
    ]


def interfaces_up(root: str) -> List[str]:
    """Network interfaces beside `lo` that are up, or do not say (veth and tun report `unknown`)."""
    top = under(root, "/sys/class/net")
    return [
        name
        for name in names(top)
        if name not in ("lo", "bonding_masters")
        and read(os.path.join(top, name, "operstate")) in ("up", "unknown")
    ]
