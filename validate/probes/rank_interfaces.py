"""Find the interfaces by which ranks of PyTorch reach each other, and try them from the peers."""

import fcntl
import os
import re
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import List, NamedTuple, Sequence, Tuple

from validate.fixtures import Situation
from validate.probes import nccl, peers
from validate.probes.files import names, under
from validate.probes.sysfs import IFNAMSIZ, IFREQ_BYTES, SIOCGIFADDR, has_ipv4
from validate.process import Result

GLOO, NCCL = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"
ADDRESS_AT = 20
CONNECT_SECONDS = 5

VISIT = """\
echo imagegen-answer
echo there=$(ls /sys/class/net)
{tries}
echo imagegen-answer
"""
TRY = "timeout {seconds} bash -c ': < /dev/tcp/{address}/{port}' 2> /dev/null && echo {address}=yes"
"""bash opens a connection by itself: a peer needs no Python and no other program for it."""


class Named(NamedTuple):
    """Hold a setting that names interfaces, with its value and where it stands."""

    name: str
    value: str
    place: str

    @property
    def text(self) -> str:
        """Return the setting as it is written."""
        return "{}={}".format(self.name, self.value)

    def choose(self, there: Sequence[str]) -> List[str]:
        """Return the interfaces that the setting chooses.

        gloo takes whole names, NCCL prefixes; `=` asks NCCL for whole names, `^` leaves out.
        """
        if self.name == NCCL:
            return nccl.chosen_interfaces(self.value, list(there))
        return [one for one in there if one in self.asked]

    @property
    def asked(self) -> List[str]:
        """Return the names in the list, without what NCCL puts before it.

        NCCL passes over an empty name. gloo does so after the last comma, and fails elsewhere.
        """
        if self.name == NCCL:
            return [one for one in self.value.lstrip("^=").split(",") if one]
        asked = self.value.split(",")
        return asked if asked[-1] else asked[:-1] or asked

    def absent(self, there: Sequence[str]) -> List[str]:
        """Return the names that choose nothing and have to: gloo needs all, NCCL needs any."""
        if self.name == NCCL:
            return [] if self.choose(there) else self.asked
        return [one for one in self.asked if one not in there]

    def missing(self, there: Sequence[str]) -> str:
        """Say in words what is named and not there."""
        if self.name == NCCL:
            return "none of the interfaces"
        lost = [
            one if one.strip() == one != "" else "`{}`".format(one) for one in self.absent(there)
        ]
        return "{}, which is not one".format(" and ".join(lost))

    def tidy(self, there: Sequence[str]) -> str:
        """Return the value without blanks and empty names, if that is all that is wrong with it."""
        start = "".join(re.findall(r"^[\s^=]*", self.value)) if self.name == NCCL else ""
        asked = [one.strip() for one in self.value[len(start) :].split(",") if one.strip()]
        one = self._replace(value="".join(start.split()) + ",".join(asked))
        return "" if one.absent(there) or one.value == self.value or not asked else one.value


def named_interfaces(image: Situation) -> List[Named]:
    """Return the settings that are made; NCCL reads those of its files too."""
    found = [Named(GLOO, image.env[GLOO], "the environment")] if image.env.get(GLOO) else []
    value, place = nccl.settings(image.root, image.env).get(NCCL, ("", ""))
    return found + ([Named(NCCL, value, place)] if value else [])


def interfaces(root: str) -> List[str]:
    """List all network interfaces, `lo` too."""
    found = names(under(root, "/sys/class/net"))
    return [one for one in found if one != "bonding_masters"]


def with_labels(there: Sequence[str], asked: Sequence[str], root: str = "/") -> List[str]:
    """Return interfaces, and the labels of addresses among those asked for, such as `eth0:1`.

    gloo looks for a name among the labels of addresses. Only the kernel can be asked about them.
    """
    labels = [one for one in asked if ":" in one and one.partition(":")[0] in there]
    return [*there, *(one for one in labels if root == "/" and has_ipv4(one))]


def address_of(interface: str) -> str:
    """Return the IPv4 address of an interface of this network namespace; empty if it has none."""
    request = struct.pack("{}s".format(IFREQ_BYTES), interface.encode()[: IFNAMSIZ - 1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            answer = fcntl.ioctl(one.fileno(), SIOCGIFADDR, request)
        except OSError:
            return ""
    return socket.inet_ntoa(answer[ADDRESS_AT : ADDRESS_AT + 4])


def own_address() -> str:
    """Return the address to which the name of this host leads, as gloo asks; empty if to none."""
    try:
        return str(socket.getaddrinfo(os.uname().nodename, None)[0][4][0])
    except OSError:
        return ""


def address_towards(peer: str) -> str:
    """Return the address of this host with which packets to a peer leave; empty if to nowhere."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(peer, 9, 0, socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as one:
            one.connect(address)  # sends nothing
            return str(one.getsockname()[0])
    except OSError:
        return ""


def towards(peer: str) -> str:
    """Return the interface by which packets to a peer leave; empty if nobody knows."""
    mine = address_towards(peer)
    return next((name for name in interfaces("/") if mine and address_of(name) == mine), "")


class PeerView(NamedTuple):
    """Hold what a peer said: its interfaces, and the addresses of this host that it reaches."""

    peer: str
    result: Result
    there: Tuple[str, ...]
    reached: Tuple[str, ...]


def seen_from(hosts: Sequence[str], addresses: Sequence[str]) -> List[PeerView]:
    """Let each peer try to open a connection to each address of this host, over ssh."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen(1024)
        port = listener.getsockname()[1]
        lines = [TRY.format(seconds=CONNECT_SECONDS, address=one, port=port) for one in addresses]
        script = VISIT.format(tries="\n".join(lines))
        seconds = peers.SECONDS + CONNECT_SECONDS * len(addresses)
        with ThreadPoolExecutor(peers.AT_A_TIME) as pool:
            return list(pool.map(lambda host: _ask(host, script, seconds), hosts))


def _ask(host: str, script: str, seconds: float) -> PeerView:
    result, facts = peers.ask_peer(host, script, seconds)
    reached = tuple(name for name, value in facts.items() if value == "yes")
    return PeerView(host, result, tuple(facts.get("there", "").split()), reached)
