"""Find RDMA devices, PCI functions and network interfaces in /sys.

A container sees the host's PCI bus there, also if the device itself was not passed to it. This is
how "no hardware" and "hardware not passed" are told apart.
"""

import fcntl
import os
import socket
import struct
from typing import List, NamedTuple

from validate.probes.files import names, read, under

NVIDIA, MELLANOX = "0x10de", "0x15b3"
INFINIBAND_CLASS, ETHERNET_CLASS = "0x0207", "0x0200"


class Port(NamedTuple):
    """Hold a port of an RDMA device.

    `state` is such as `4: ACTIVE`, `physical` such as `5: LinkUp`, `link_layer` InfiniBand or
    Ethernet; `board` is the model of the card.
    """

    device: str
    number: str
    state: str
    rate: str
    link_layer: str
    physical: str = ""
    board: str = ""

    @property
    def active(self) -> bool:
        """Return whether the port has a link."""
        return self.state.startswith("4:")

    def __str__(self) -> str:
        parts = [self.state.partition(": ")[2] or self.state, self.rate, self.link_layer]
        parts.insert(1, "" if self.active else self.physical.partition(": ")[2])
        text = " ".join(part for part in parts if part)
        return "{}/{} {}".format(self.device, self.number, text)


class Verbs(NamedTuple):
    """Hold a verbs device of the kernel.

    `node` is the file by which programs open it; `present` says whether that file exists.
    """

    name: str
    device: str
    node: str
    present: bool


def rdma_devices(root: str) -> List[str]:
    """List the names of the RDMA devices, such as `mlx5_0`."""
    return names(under(root, "/sys/class/infiniband"))


def ports(root: str) -> List[Port]:
    """List every port of every RDMA device."""
    found = []
    for device in rdma_devices(root):
        top = under(root, "/sys/class/infiniband/{}/ports".format(device))
        for number in names(top):
            files = ("state", "rate", "link_layer", "phys_state", "../../board_id")
            found.append(Port(device, number, *(read(os.path.join(top, number, f)) for f in files)))
    return found


def verbs(root: str) -> List[Verbs]:
    """List each /sys/class/infiniband_verbs/uverbsN and whether its device node is here."""
    top = under(root, "/sys/class/infiniband_verbs")
    found = []
    for name in names(top):
        if name.startswith("uverbs"):
            node = "/dev/infiniband/" + name
            device = read(os.path.join(top, name, "ibdev"))
            found.append(Verbs(name, device, node, os.path.exists(under(root, node))))
    return found


def pci_functions(root: str, vendor: str, classes: List[str]) -> List[str]:
    """List the PCI addresses of one vendor whose class begins with one of `classes` (`0x0207`)."""
    top = under(root, "/sys/bus/pci/devices")
    return [
        address
        for address in names(top)
        if read(os.path.join(top, address, "vendor")) == vendor
        and read(os.path.join(top, address, "class"))[:6] in classes
    ]


def interfaces_up(root: str) -> List[str]:
    """List the network interfaces, except `lo`, that are up or `unknown` (veth and tun are)."""
    top = under(root, "/sys/class/net")
    return [
        name
        for name in names(top)
        if name not in ("lo", "bonding_masters")
        and read(os.path.join(top, name, "operstate")) in ("up", "unknown")
    ]


def default_route(root: str) -> str:
    """Return the interface of the IPv4 default route; empty if there is none."""
    rows = [line.split() for line in read(under(root, "/proc/net/route")).splitlines()]
    return next((row[0] for row in rows if len(row) > 7 and row[1] == row[7] == "00000000"), "")


SIOCGIFADDR = 0x8915
"""Asks the kernel for the IPv4 address of an interface: netdevice(7)."""
IFNAMSIZ, IFREQ_BYTES = 16, 40
LINK_LOCAL = "20"
"""The scope in /proc/net/if_inet6 of addresses that no router forwards."""


def with_address(root: str, interfaces: List[str]) -> List[str]:
    """List the interfaces with an IP address that others can reach: IPv4, or IPv6 not link-local.

    In a tree of files the routes show the IPv4 addresses. A tree without a table of routes says
    nothing, so every interface is returned.
    """
    table = under(root, "/proc/net/route")
    if root != "/" and not os.path.exists(table):
        return interfaces
    rows = [line.split() for line in read(under(root, "/proc/net/if_inet6")).splitlines()]
    six = {row[5] for row in rows if len(row) > 5 and row[3] != LINK_LOCAL}
    if root == "/":
        return [name for name in interfaces if name in six or has_ipv4(name)]
    four = {line.split()[0] for line in read(table).splitlines()[1:] if line.strip()}
    return [name for name in interfaces if name in six | four | {"lo"}]


def has_ipv4(interface: str) -> bool:
    """Ask the kernel whether an interface of this network namespace has an IPv4 address."""
    request = struct.pack("{}s".format(IFREQ_BYTES), interface.encode()[: IFNAMSIZ - 1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            fcntl.ioctl(one.fileno(), SIOCGIFADDR, request)
        except OSError:
            return False
    return True
