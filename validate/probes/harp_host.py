"""Measure what HARP, a network stack in user space, needs of the host and of the launch.

Numbers and paths: Tencent Cloud's documents on TACO Train (set-up of HARP, and of TKE).
"""

import glob
import mmap
import os
import re
from typing import List, NamedTuple, Optional

from validate.probes import sysfs
from validate.probes.files import read, under

CONFIG = "/usr/local/tfabric/tools/config/ztcp*.conf"
MOUNT = "/dev/hugepages"
GIB = 1 << 30
VIRTIO = "0x1af4"
PAGES_PER_GPU, PAGES_MORE = 5, 10
"""50 pages on a machine of 8 GPUs."""

SETUP = "curl -s -L http://mirrors.tencent.com/install/GPU/taco/harp_setup.sh | sudo bash"
"""The command that sets HARP up, to run on the host; from the vendor's article on TKE."""


class Pages(NamedTuple):
    """Hold the number of 1 GiB huge pages of the host, and the default page size in KiB."""

    total: int
    free: int
    default_kib: int


def config_files(root: str) -> List[str]:
    """List the files that the set-up on the host writes and that are not empty."""
    found = glob.glob(under(root, CONFIG))
    return sorted(path for path in found if os.path.isfile(path) and os.path.getsize(path))


def pages(root: str) -> Pages:
    """Count the 1 GiB huge pages of the host."""
    top = under(root, "/sys/kernel/mm/hugepages/hugepages-1048576kB")
    default = re.search(r"Hugepagesize: +(\d+) kB", read(under(root, "/proc/meminfo")))
    total, free = [read(os.path.join(top, kind + "_hugepages")) or "0" for kind in ("nr", "free")]
    return Pages(int(total), int(free), int(default.group(1)) if default else 0)


def pages_needed(gpus: int) -> int:
    """Return how many 1 GiB huge pages HARP needs for some GPUs."""
    return PAGES_PER_GPU * gpus + PAGES_MORE


def mounted_page_size(root: str) -> str:
    """Return `pagesize=` of the hugetlbfs at /dev/hugepages; empty if none is mounted there."""
    for line in read(under(root, "/proc/mounts")).splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[1] == MOUNT and fields[2] == "hugetlbfs":
            found = re.search(r"pagesize=(\w+)", fields[3])
            return found.group(1) if found else "default"
    return ""


def map_one_page(root: str) -> str:
    """Try to map one page and say why it fails; empty if it works. Nothing is left behind."""
    path = under(root, "{}/imagegen-validate-{}".format(MOUNT, os.getpid()))
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except OSError as error:
        return "cannot write to {}: {}".format(MOUNT, (error.strerror or "").lower())
    try:
        os.ftruncate(descriptor, GIB)
        mmap.mmap(descriptor, GIB).close()
    except (OSError, ValueError) as error:
        return "cannot map a page of 1 GiB: {}".format(error)
    finally:
        os.close(descriptor)
        os.unlink(path)
    return ""


def cgroup_pages(root: str) -> Optional[int]:
    """Return how many 1 GiB pages the container may use (cgroup v2, else v1); None for no limit."""
    top = under(root, "/sys/fs/cgroup")
    places = ("hugetlb.1GB.max", "hugetlb/hugetlb.1GB.limit_in_bytes")
    limit = next(filter(None, (read(os.path.join(top, place)) for place in places)), "max")
    return int(limit) // GIB if limit.isdigit() and int(limit) < 1 << 60 else None


def network_cards(root: str) -> List[str]:
    """List the PCI addresses of virtio network cards, also of those that HARP has taken over."""
    return sysfs.pci_functions(root, VIRTIO, [sysfs.ETHERNET_CLASS])


def privileged(root: str) -> bool:
    """Return whether this process has the capabilities of `--privileged` (SYS_ADMIN, SYS_RAWIO)."""
    status = read(under(root, "/proc/self/status"))
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    bits = int(found.group(1), 16) if found else 0
    return bool(bits >> 21 & 1 and bits >> 17 & 1)
