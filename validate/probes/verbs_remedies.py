"""Say what mends the verbs libraries of an image, its providers and its tools."""

from shlex import quote
from typing import List, Sequence

from validate.fixtures import Situation
from validate.probes.aside import aside
from validate.probes.dpkg import install_again, package_of, programs_packages
from validate.remedy import Remedy, in_image, in_shell

TOOLS = ("ibverbs-utils", "infiniband-diags", "perftest", "iproute2")


def packages_back(image: Situation, *names: str) -> Remedy:
    """Return what brings packages back: the distribution does, and OFED comes with the image."""
    if image.expected.components["rdma"].get("variant", "") == "rdma-core":
        return in_shell(install_again(*names))
    return in_image("imagegen build", look="dpkg -l {}".format(" ".join(names)))


def one_build(image: Situation, paths: Sequence[str]) -> Remedy:
    """Return what leaves providers of one build: those of no package get another name."""
    if any(package_of(image.root, path)[0] for path in paths):
        return packages_back(image, "libibverbs1", "ibverbs-providers")
    return in_shell("; ".join(aside(image.root, path) for path in paths))


def tools_back(image: Situation, programs: Sequence[str]) -> Remedy:
    """Return what brings programs back, also those that were removed from a package."""
    packages = [name for one in programs for name in programs_packages(image.root, one)[:1]]
    return in_shell(install_again(*(dict.fromkeys(packages) or TOOLS)))


def modules_aside(paths: Sequence[str]) -> Remedy:
    """Return the line that gives kernel modules another name, within one file system."""
    tops: List[str] = sorted({"/".join(path.split("/")[:4]) for path in paths})
    line = "find {} -xdev -type f -name '*.ko*' -exec mv {{}} {{}}.disabled ';'"
    return in_shell("; ".join(line.format(quote(top)) for top in tops))
