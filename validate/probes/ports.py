"""Find the TCP ports that are taken here, and those that ranks may take.

Sources: proc_net(5), /proc/net/tcp; the kernel's Documentation/networking/ip-sysctl.
"""

from typing import Set, Tuple

from validate.probes.files import read, under

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LISTENS = "0A"
RANGE = "/proc/sys/net/ipv4/ip_local_port_range"


def listening(root: str) -> Set[int]:
    """Return the TCP ports that programs listen on in this network."""
    found = set()
    for table in TABLES:
        for line in read(under(root, table)).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == LISTENS:
                found.add(int(fields[1].rpartition(":")[2], 16))
    return found


def for_clients(root: str) -> Tuple[int, int]:
    """Return the first and the last port that connections get; 0 and 0 if the kernel does not say.

    Ranks listen on ports of this range too.
    """
    words = read(under(root, RANGE)).split()
    return (int(words[0]), int(words[1])) if len(words) == 2 else (0, 0)
