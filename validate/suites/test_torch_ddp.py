"""Check that processes of PyTorch find each other: a process group over gloo, and `torchrun`."""

import os
import re
from shlex import quote
from typing import Dict, List, Tuple

from validate.check import check, fail, skip
from validate.fixtures import Measure, Situation
from validate.probes import nccl, process_group
from validate.probes import rank_interfaces as ifaces
from validate.probes.aside import export, unset
from validate.probes.own_address import OWN_ADDRESS
from validate.probes.sysfs import interfaces_up, with_address
from validate.probes.training import torch_and_horovod
from validate.remedy import Remedy, at_launch, in_image, in_shell, only_look

BETWEEN = at_launch(
    "docker run --network NET IMAGE   # every container in one network; a pod: a NetworkPolicy that"
    " lets its ranks talk",
    look="ip route; ip -brief address",
)
NOT_THERE = "all ranks get the same setting, and this host and the peer name interfaces otherwise"
BLANKS = "a blank counts as a part of the name, and between commas gloo expects a name"
LOOK = only_look("ip -brief address; ip route")
WRONG_WAY = (
    "ranks tell each other this address, and it is of a network that the peer is not in, or a "
    "firewall is between them"
)
REBUILD = in_image("imagegen build   # its recipe mends this release")
LIBUV = "this PyTorch was built without libuv, for which its rendezvous asks if nothing else is set"
EVERY_FLAG = in_shell(
    "sed -i 's/for s in Std:/for s in map(Std, range(4)):/' \"$(python3 -c "
    "'import torch.distributed.elastic.multiprocessing.api as m; print(m.__file__)')\""
)

Known = Tuple[str, str, Remedy]
KNOWN: Tuple[Known, ...] = (
    (r"libuv", LIBUV, export({"USE_LIBUV": "0"})),
    (
        r"Unable to find address for|[Nn]ame or service not known|in name resolution",
        "the host's name leads to no address: gloo tells the other ranks the address of that name",
        OWN_ADDRESS,
    ),
    (
        r"'NoneType' object has no attribute 'get'",
        "torchrun of PyTorch before 2.0 does not work on Python 3.11 (pytorch/pytorch#92319)",
        in_shell(EVERY_FLAG),
    ),
    (
        r"No usable temporary directory",
        "torchrun keeps what ranks print in a folder for temporary files, and none can be written",
        at_launch("docker run --tmpfs /tmp:mode=1777 IMAGE   # a pod: an emptyDir at /tmp"),
    ),
    (
        r"start new thread|Resource temporarily unavailable|Cannot fork",
        "the container may not start more processes or threads",
        at_launch("docker run --pids-limit=-1 IMAGE   # a pod: podPidsLimit of the kubelet"),
    ),
    (
        r"Cannot allocate memory|MemoryError|bad_alloc|SIGKILL|Signal 9",
        "the container may not use more memory",
        at_launch("docker run --memory=8g IMAGE   # a pod: resources.limits.memory"),
    ),
    (
        r"built without torch\.distributed|no attribute 'init_process_group'",
        "this build of PyTorch leaves torch.distributed out",
        in_image("imagegen build   # on a build of PyTorch that has it"),
    ),
)


def _fail(problem: str, env: Dict[str, str], *more: Known) -> None:
    """Fail with the cause of a problem, if it is a known one."""
    for pattern, cause, remedy in (*more, *_of_interface(env), *KNOWN):
        if re.search(pattern, problem):
            fail(problem, cause, remedy)
    fail(problem)


def _of_interface(env: Dict[str, str]) -> List[Known]:
    """Return what gloo says of an interface that is named and not there."""
    named = env.get("GLOO_SOCKET_IFNAME", "")
    cause = "GLOO_SOCKET_IFNAME={} names no interface with an address here".format(named)
    remedy = unset(["GLOO_SOCKET_IFNAME"])
    pattern = r"Unable to find (?:interface|address) for: *(?:{})\b"
    names = [re.escape(one) for one in named.split(",") if one]
    return [(pattern.format("|".join(names)), cause, remedy)] if names else []


@check(
    "ddp.iface",
    "the interfaces that ranks of PyTorch are told to use are there, and lead to the peers",
    tier="live",
    cause="the name is of another machine, or of a network that the peers are not in",
    remedy=LOOK,
)
def test_iface(image: Situation, measure: Measure) -> None:
    """GLOO_SOCKET_IFNAME (whole names) and NCCL_SOCKET_IFNAME (prefixes, =, ^) against
    /sys/class/net, operstate and an address; with --peers each peer has them too, and opens a
    connection to the address of each of them here; if gloo is told nothing, to that of this host's
    name"""
    named, there = ifaces.named_interfaces(image), ifaces.interfaces(image.root)
    measure("; ".join(one.text for one in named) or "neither is set: by the name of this host")
    if there:
        usable = with_address(image.root, interfaces_up(image.root))
        for one in named:
            labelled = ifaces.with_labels(there, one.asked, image.root)
            _is_there(one, labelled, [*usable, *labelled[len(there) :]])
        others = [peer for peer in image.peers if peer != os.uname().nodename]
        if others:
            _leads_to(others, named, there)


def _is_there(one: ifaces.Named, there: List[str], usable: List[str]) -> None:
    remedy = export({one.name: usable[0]}) if len(usable) > 1 else unset([one.name])
    if one.place != "the environment":
        remedy = in_shell(nccl.removal(one.name, one.place))
    absent = one.absent(there)
    if absent:
        text = "{} in {} names {}, here are {}"
        said = text.format(one.text, one.place, one.missing(there), ", ".join(there))
        tidy = one.tidy(there)
        if tidy and one.place == "the environment":
            fail(said, BLANKS, export({one.name: tidy}))
        fail(said, BLANKS if tidy else "", remedy)
    idle = [name for name in one.choose(there) if name not in ("lo", *usable)]
    if idle and (one.name == ifaces.GLOO or not set(one.choose(there)) & set(usable)):
        cause = "an interface that is down, or has no address, leads to no peer"
        text = "{} in {}: {} is not up, or has no address"
        fail(text.format(one.text, one.place, ", ".join(idle)), cause, remedy)


def _leads_to(others: List[str], named: List[ifaces.Named], there: List[str]) -> None:
    """Fail if a peer lacks an interface, or does not reach this host at its address."""
    ways = [
        (one.text, name, ifaces.address_of(name))
        for one in named
        for name in one.choose(ifaces.with_labels(there, one.asked))
    ]
    if not any(one.name == ifaces.GLOO for one in named):
        ways.append(("the name of this host", "", ifaces.own_address()))
    addresses = [address for _, _, address in ways if address and not address.startswith("127.")]
    for seen in ifaces.seen_from(others, addresses):
        if not seen.result.ok:
            continue  # peers.login says why
        best = ifaces.towards(seen.peer)
        for one in named:
            bases = [name for name in one.asked if name.partition(":")[0] in seen.there]
            if one.absent([*seen.there, *bases]):
                text = "{} names {} on {}: there are {}"
                lost = text.format(
                    one.text, one.missing(seen.there), seen.peer, ", ".join(seen.there)
                )
                fail(lost, NOT_THERE, export({one.name: best}) if best else LOOK)
        for text, name, address in ways:
            if address and address not in seen.reached:
                where = "{} ({})".format(name, address) if name else address
                setting = text.partition("=")[0] if name else ifaces.GLOO
                remedy = export({setting: best}) if best and best != name else BETWEEN
                said = "{}: {} does not reach this host at {}".format(text, seen.peer, where)
                fail(said, WRONG_WAY, remedy)


@check(
    "ddp.init",
    "a program makes a process group over gloo, as torch.distributed does without GPUs",
    tier="live",
    cause="gloo finds no interface or port, or this PyTorch cannot make a group at all",
    remedy=only_look(
        "RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29400 python3 -c "
        "'import torch.distributed as d; d.init_process_group(\"gloo\")'"
    ),
    needs=("torch.import", "ddp.iface"),
)
def test_init(image: Situation, measure: Measure) -> None:
    """torch.distributed.init_process_group("gloo") and an all_reduce, in two ranks of torchrun; if
    that fails, in one process without it. 100 s each; variables of a job that runs, such as RANK,
    are left out"""
    version = str(torch_and_horovod(image).torch.facts.get("version", ""))
    group = process_group.Group((), (), "no torchrun")
    if process_group.has_torchrun(version):
        group = process_group.by_torchrun(image)
    group = group if group.ok else process_group.alone(image)
    measure("; ".join(group.ranks))
    if not group.ok:
        _fail(group.problem, image.env)


@check(
    "ddp.torchrun",
    "`torchrun` starts ranks that meet where they are told to, and add up what each gives",
    tier="live",
    cause="torchrun is missing, belongs to another Python, or does not fit this one",
    remedy=REBUILD,
    needs=("torch.import", "ddp.init", "os.tmp"),
)
def test_torchrun(image: Situation, measure: Measure) -> None:
    """`torchrun --nproc_per_node 2` of a script: init_process_group("gloo"), all_reduce of rank + 1
    is 3 in both ranks, and both have the PyTorch that `import torch` finds; 100 s. localhost, and
    the hosts of MASTER_ADDR, PET_MASTER_ADDR and PET_RDZV_ENDPOINT, lead to an address"""
    facts = torch_and_horovod(image).torch.facts
    if not process_group.has_torchrun(str(facts.get("version", ""))):
        skip("not-applicable", "torchrun came with PyTorch 1.10")
    group = process_group.by_torchrun(image)
    measure("; ".join(group.ranks))
    for name, host in process_group.unresolved(image.env) if image.root == "/" else ():
        fail(*_lost(name, host))
    if not group.ok:
        # The variable alone is not enough: torchrun itself does not read it everywhere.
        _fail(group.problem, image.env, ("libuv", LIBUV, REBUILD))
    if list(group.torch) != [str(facts.get("file", ""))]:
        fail(
            "its ranks import {}".format(" and ".join(group.torch)),
            "the torchrun that PATH finds belongs to another PyTorch than `import torch`",
            in_image("imagegen build", look="type -a torchrun"),
        )


def _lost(name: str, host: str) -> Tuple[str, str, Remedy]:
    """Return what to say of a host of the rendezvous that leads to no address."""
    cause = "ranks meet at that host, and its name leads to no address here"
    if not name:
        line = "{ echo '127.0.0.1 localhost'; cat /etc/hosts; } > /run/hosts && "
        return host, cause, in_shell(line + "cat /run/hosts > /etc/hosts", look="cat /etc/hosts")
    start = "docker run --network NET IMAGE   # or --add-host {}:ADDRESS; a pod: a headless Service"
    look = "getent hosts {}".format(quote(host))
    return "{} names {}".format(name, host), cause, at_launch(start.format(host), look=look)
