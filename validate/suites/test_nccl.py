"""Check which copies of NCCL there are, for what they were built, and how they are set."""

import os
import re
from shlex import quote
from typing import List

from validate.check import check, fail, skip
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes import nccl, net_plugin
from validate.probes.aside import export, one_line, renamed
from validate.probes.files import header_version, names, under
from validate.probes.libraries import (
    back_on_the_path,
    environment,
    flavour,
    instead_of,
    libraries,
    nccl_copies,
    out_of_the_way,
)
from validate.probes.native import OUT, call_functions
from validate.probes.sysfs import interfaces_up, rdma_devices, with_address
from validate.remedy import Remedy, at_launch, in_image, in_shell

OMPI_INTERFACES = ("OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include")


def _said(image: Situation, path: str) -> str:
    """Return the version that the library reports; before 2.3.4 it is only in its bytes."""
    called = image.once(
        path, lambda: call_functions(path, {"ncclGetVersion": OUT}, environment(image, path))
    )
    if called.problem:
        fail(called.problem)
    number = called.value("ncclGetVersion")
    return nccl.nccl_version(number) if number else nccl.built(path)[0]


@check(
    "nccl.version",
    "NCCL loads and is the version that the recipe names, by its own word",
    cause="another NCCL comes first on the loader's path, or was installed over it",
    remedy=in_image("imagegen build", look="ldconfig -p | grep libnccl; echo $LD_LIBRARY_PATH"),
)
def test_version(image: Situation, measure: Measure) -> None:
    """ncclGetVersion(int *) of the libnccl.so.2 that dlopen finds, in a process of its own"""
    path = libraries(image).first(nccl.LIBRARY)
    if not path:
        fail("{} is nowhere on the loader's path, nor in a wheel".format(nccl.LIBRARY))
    found = _said(image, path)
    measure("{} from {}".format(found or "no version", path))
    if not same_version(image.expected.version("nccl"), found):
        text = "{} from {}, the recipe says {}"
        promised = image.expected.version("nccl")
        why = instead_of(image, nccl.LIBRARY, promised)
        fail(text.format(found or "no version", path, promised), *why)
    line = back_on_the_path(image, "nccl", path)
    if line:
        fail("{} is not on the loader's path".format(path), "its folder was taken out", line)


@check(
    "nccl.cuda-tag",
    "NCCL was built for the CUDA of the recipe",
    severity="warn",
    cause="the package of another CUDA was installed",
    remedy=in_image("imagegen build", look="dpkg -l 'libnccl*'"),
    needs=("nccl.version",),
)
def test_cuda_tag(image: Situation, measure: Measure) -> None:
    """`NCCL version X+cudaY.Z` in the bytes of libnccl.so.2"""
    _, built = nccl.built(libraries(image).first(nccl.LIBRARY))
    measure("CUDA {}".format(built or "not in its bytes"))
    exact = str(image.expected.fact("nccl", "cuda") or "")
    if built and exact and built != exact:
        fail("built for CUDA {}, the recipe says {}".format(built, exact))
    if built and not exact and image.expected.has("cuda"):
        promised = image.expected.version("cuda")
        if built.partition(".")[0] != promised.partition(".")[0]:
            fail("built for CUDA {}, the recipe has {}".format(built, promised))


@check(
    "nccl.header",
    "programs compiled with `-lnccl` get the header and the library of one version",
    severity="warn",
    cause="the development package was upgraded without the library, or the other way round",
    remedy=in_image("imagegen build", look="dpkg -l 'libnccl*'"),
    needs=("nccl.version",),
)
def test_header(image: Situation, measure: Measure) -> None:
    """NCCL_MAJOR, MINOR and PATCH of nccl.h, and the link libnccl.so"""
    if flavour(image) == "runtime":
        skip("not-applicable", "a runtime image has no headers")
    paths = [under(image.root, path) for path in nccl.HEADERS]
    found = {
        path: header_version(path, nccl.VERSION_MACROS) for path in paths if os.path.isfile(path)
    }
    if not found:
        skip("not-installed", "there is no header of NCCL")
    here = _said(image, libraries(image).first(nccl.LIBRARY))
    measure(", ".join("{} {}".format(path, version) for path, version in found.items()))
    others = ["{} says {}".format(p, version) for p, version in found.items() if version != here]
    if others:
        fail("{}, the library {}".format(", ".join(others), here))
    if not libraries(image).loader.first("libnccl.so"):
        fail("the header is there, the link libnccl.so is not")


@check(
    "nccl.copies",
    "which NCCLs are in the image: a program may carry one of its own",
    severity="warn",
    cause="a wheel brings an NCCL beside the one of the system: each program has its own",
    remedy=in_image("imagegen build   # on one release for all", look="dpkg -l 'libnccl*'"),
    needs=("nccl.version",),
)
def test_copies(image: Situation, measure: Measure) -> None:
    """libnccl.so.2 on the loader's path and in wheels, and `NCCL version` in the bytes of
    libtorch_cuda and of Horovod's extensions, against those of the recipe and of its PyTorch"""
    copies = nccl_copies(image)
    measure("; ".join(str(one) for one in copies))
    torch = str(image.expected.fact("torch", "nccl") or "")
    promised = [one for one in (image.expected.version("nccl"), torch) if one]
    strange = [c for c in copies if not any(same_version(one, c.version) for one in promised)]
    if len({one.version for one in copies}) > 1 and strange:
        files = [c.path for c in strange if os.path.basename(c.path).startswith(nccl.LIBRARY)]
        lines = [out_of_the_way(image, path)[1] for path in files]
        remedy = in_shell(one_line(lines)) if len(files) == len(strange) else Remedy()
        fail("; ".join(str(one) for one in copies), remedy=remedy)


@check(
    "nccl.conf",
    "no setting that is left in a file or the environment turns a transport off",
    severity="warn",
    cause="it was left over from debugging; NCCL says nothing about it at its usual log level",
)
def test_conf(image: Situation, measure: Measure) -> None:
    """/etc/nccl.conf, ~/.nccl.conf, $NCCL_CONF_FILE and every NCCL_* variable"""
    found = nccl.settings(image.root, image.env)
    seen = ["{}={} ({})".format(name, *setting) for name, setting in sorted(found.items())]
    measure(", ".join(seen) or "nothing is set")
    rdma = bool(rdma_devices(image.root)) or image.expected.has("rdma")
    wrong = nccl.suspicious(found, rdma)
    if wrong:
        named = [text.partition("=")[0] for text in wrong]
        lines = [nccl.removal(name, found[name][1]) for name in named]
        fail("; ".join(wrong), remedy=in_shell(one_line(lines)))


@check(
    "nccl.ifname",
    "of the network interfaces that NCCL and Open MPI are told to use one is up, with an address",
    tier="live",
    cause="the name is of another machine: NCCL stops with words that do not say so",
)
def test_ifname(image: Situation, measure: Measure) -> None:
    """NCCL_SOCKET_IFNAME (prefixes, ^, =), OMPI_MCA_btl_tcp_if_include and oob_tcp_if_include
    against /sys/class/net/*/operstate; an IPv4 address (ioctl SIOCGIFADDR), or an IPv6 one that is
    not link-local (/proc/net/if_inet6)"""
    asked = {"NCCL_SOCKET_IFNAME": nccl.settings(image.root, image.env).get("NCCL_SOCKET_IFNAME")}
    wanted = {name: setting[0] for name, setting in asked.items() if setting and setting[0]}
    wanted.update({name: image.env[name] for name in OMPI_INTERFACES if image.env.get(name)})
    if not wanted:
        skip("not-applicable", "no interface is named")
    there = interfaces_up(image.root) + [
        n for n in names(under(image.root, "/sys/class/net")) if n == "lo"
    ]
    measure(", ".join("{}={}".format(*pair) for pair in wanted.items()))
    usable = with_address(image.root, there)
    for name, value in wanted.items():
        if _by_network(name, value):
            continue
        chosen = _chosen(name, value, there)
        first = next((one for one in usable if one != "lo"), "")
        remedy = at_launch("docker run --network host IMAGE   # a pod: hostNetwork: true")
        remedy = export({name: first}) if first else remedy
        if not chosen:
            text = "{}={}, but the container has {}"
            fail(text.format(name, value, ", ".join(there) or "no interface"), remedy=remedy)
        if not set(chosen) & set(usable):
            text = "{}={}: up, but without an IP address: {}".format(name, value, ", ".join(chosen))
            fail(text, "NCCL and Open MPI pass over an interface without an address", remedy)


def _by_network(name: str, value: str) -> bool:
    """Return whether interfaces are chosen by network (CIDR), as Open MPI allows; NCCL does not."""
    asked = value.split(",") if name in OMPI_INTERFACES else []
    return any(re.match(r"[\d.]+/\d+$", one) for one in asked)


def _chosen(name: str, value: str, there: List[str]) -> List[str]:
    """Return the interfaces that a setting chooses: Open MPI takes whole names, NCCL prefixes."""
    if name == "NCCL_SOCKET_IFNAME":
        return nccl.chosen_interfaces(value, there)
    return [one for one in value.split(",") if one in there]


@check(
    "plugin.nearmiss",
    "no net plugin was renamed to switch it off and left so",
    severity="warn",
    cause="it was switched off by renaming its library, and not back (or mistyped)",
)
def test_nearmiss(image: Situation, measure: Measure) -> None:
    """bak.libnccl-net.so, libnccl-net.so_bak, libnccl-net.so.bak and libncc-net.so on the loader's
    path"""
    found = net_plugin.disabled(libraries(image).loader.folders)
    measure("none")
    if found:
        fail(", ".join(found), remedy=_named_back(found))


def _named_back(found: List[str]) -> Remedy:
    """Return the line that gives a plugin its name again; where another one has it, it is kept."""
    back = os.path.join(os.path.dirname(found[0]), net_plugin.DEFAULT)
    first = back if not os.path.lexists(back) else renamed(found[0])
    pairs = [(found[0], first), *((path, renamed(path)) for path in found[1:])]
    lines = ["mv {} {}".format(quote(path), quote(name)) for path, name in pairs]
    return in_shell("; ".join([*lines, "ldconfig"]))
