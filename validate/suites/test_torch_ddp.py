"""Check that processes of PyTorch find each other: a process group over gloo, and `torchrun`."""

import re
from typing import Dict, List, Tuple

from validate.check import check, fail, skip
from validate.fixtures import Measure, Situation
from validate.probes import process_group
from validate.probes.aside import export, unset
from validate.probes.own_address import OWN_ADDRESS
from validate.probes.training import torch_and_horovod
from validate.remedy import Remedy, at_launch, in_image, in_shell, only_look

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
    "ddp.init",
    "a program makes a process group over gloo, as torch.distributed does without GPUs",
    tier="live",
    cause="gloo finds no interface or port, or this PyTorch cannot make a group at all",
    remedy=only_look(
        "RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29400 python3 -c "
        "'import torch.distributed as d; d.init_process_group(\"gloo\")'"
    ),
    needs=("torch.import",),
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
    "`torchrun` starts ranks that meet and add up what each of them gives",
    tier="live",
    cause="torchrun is missing, belongs to another Python, or does not fit this one",
    remedy=REBUILD,
    needs=("torch.import", "ddp.init", "os.tmp"),
)
def test_torchrun(image: Situation, measure: Measure) -> None:
    """`torchrun --nproc_per_node 2` of a script: init_process_group("gloo"), all_reduce of rank + 1
    is 3 in both ranks, and both have the PyTorch that `import torch` finds; 100 s"""
    facts = torch_and_horovod(image).torch.facts
    if not process_group.has_torchrun(str(facts.get("version", ""))):
        skip("not-applicable", "torchrun came with PyTorch 1.10")
    group = process_group.by_torchrun(image)
    measure("; ".join(group.ranks))
    if not group.ok:
        # The variable alone is not enough: torchrun itself does not read it everywhere.
        _fail(group.problem, image.env, ("libuv", LIBUV, REBUILD))
    if list(group.torch) != [str(facts.get("file", ""))]:
        fail(
            "its ranks import {}".format(" and ".join(group.torch)),
            "the torchrun that PATH finds belongs to another PyTorch than `import torch`",
            in_image("imagegen build", look="type -a torchrun"),
        )
