"""Make a command line to paste from the description of a training launch, with a reason per flag.

All functions are pure. The flags are those of TACO Train's own guides for bare metal with RDMA and
for a VPC with HARP, and of the arena examples for plain sockets. Open MPI 4.1 and 5.0 both accept
them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

from imagegen.errors import ConfigError, Problem
from imagegen.model.launch import Flag, Launch, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from imagegen.model.catalog import Contract

Form = Literal["docker", "mpirun"]
GIB = 1024**3
SOCKETS, NONE = "sockets", "none"
"""The transport and the acceleration that need no component."""

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class LaunchRequest:
    """What to launch, and how.

    `contract` is as in image.json. `components` maps a component to its version. `launches` has for
    every component of the catalog what a launch adds for it. `gpus_per_node` is also the number of
    ranks on a node of a CPU image. `batch` is the batch of one rank. Without `nodes`, all ranks run
    where the command runs. Without `iface`, NCCL and MPI choose the interfaces.
    """

    image: str
    contract: Contract
    components: Mapping[str, str]
    launches: Mapping[str, Launch]
    device: str
    form: Form = "docker"
    nodes: tuple[str, ...] = ()
    gpus_per_node: int = 1
    transport: str = SOCKETS
    accel: str = NONE
    model: str = "resnet50"
    batch: int = 32
    iface: str = ""
    script: str = ""

    @property
    def given(self) -> Launch:
        """Return what the transport adds to the launch; nothing for sockets."""
        every = self.launches.values()
        return next((one for one in every if self.transport in one.transports), Launch())

    @property
    def accelerated(self) -> Launch:
        """Return what the acceleration adds to the launch."""
        every = self.launches.values()
        return next((one for one in every if self.accel in one.accels), Launch())


@dataclass(frozen=True)
class LaunchCommand:
    """A command line, flag by flag; the first one is the program."""

    flags: tuple[Flag, ...]

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the command line as a list of words."""
        return tuple(word for flag in self.flags for word in flag.words)


def command(request: LaunchRequest) -> LaunchCommand:
    """Make the command of a launch.

    Raises ConfigError with everything that the image or the request lacks.
    """
    problems = tuple(_problems(request))
    if problems:
        raise ConfigError(*problems)
    return LaunchCommand(tuple(_FORMS[request.form](request)))


def render(command: LaunchCommand, *, explain: bool = False) -> str:
    """Write the command to paste; `explain` adds the reason of each flag below it as comments."""
    texts = [flag.text for flag in command.flags]
    pasteable = " \\\n  ".join(texts)
    if not explain:
        return pasteable
    width = max(map(len, texts))
    lines = [f"# {flag.text:<{width}}  # {flag.why}" for flag in command.flags]
    return "\n".join([pasteable, "", *lines])


def _problems(request: LaunchRequest) -> Iterator[Problem]:
    transports = {way: name for name, one in request.launches.items() for way in one.transports}
    accels = {way: name for name, one in request.launches.items() for way in one.accels}
    yield from _unknown(request.transport, "transport", [SOCKETS, *sorted(transports)])
    yield from _unknown(request.accel, "acceleration", [NONE, *sorted(accels)])
    needed = transports.get(request.transport)
    yield from _lacks(request, needed, "transport", request.transport, SOCKETS)
    if request.form == "mpirun":
        needed = accels.get(request.accel)
        yield from _lacks(request, needed, "acceleration", request.accel, NONE)
        yield from _lacks_for_ranks(request)
    for name, count in (("ranks on a node", request.gpus_per_node), ("batch", request.batch)):
        if count < 1:
            text = f"{name}: {count} is too few"
            yield Problem(text, hint="give a whole number from 1 on")
    for value in (request.image, request.model, request.iface, request.script):
        if not value.isprintable():
            text = f"value {value!r} has a control character"
            yield Problem(text, hint="give it without line breaks and tabs")
    for node in request.nodes:
        if not _HOST.fullmatch(node):
            yield Problem(f"node `{node}` is not a host name", hint="give names as in `gpu1,gpu2`")
    if len(set(request.nodes)) < len(request.nodes):
        yield Problem("a node is named twice", hint="name each node once")


def _unknown(asked: str, what: str, known: list[str]) -> Iterator[Problem]:
    if asked not in known:
        near = get_close_matches(asked, known, 1)
        yield Problem(
            f"there is no {what} `{asked}`",
            evidence=(f"known: {', '.join(known)}",),
            hint=f"did you mean `{near[0]}`?" if near else "choose one of them",
        )


def _lacks(
    request: LaunchRequest, needed: str | None, what: str, asked: str, instead: str
) -> Iterator[Problem]:
    """Report the component that a transport or an acceleration needs and the image lacks."""
    if needed is not None and needed not in request.components:
        has = ", ".join(f"{name} {version}" for name, version in sorted(request.components.items()))
        yield Problem(
            f"{what} `{asked}` needs component `{needed}`, which the image does not have",
            evidence=(f"image: {request.image}", f"it has: {has or 'nothing'}"),
            hint=f"choose an image with `{needed}`, or {what} `{instead}`",
        )


def _lacks_for_ranks(request: LaunchRequest) -> Iterator[Problem]:
    if not _program(request):
        starters = " or ".join(f"`{n}`" for n, one in request.launches.items() if one.program)
        text = f"the image has no {starters}, so no `mpirun` either"
        yield Problem(text, evidence=(f"image: {request.image}",), hint="choose another image")
    if request.device != "gpu" and request.transport != SOCKETS:
        yield Problem(
            f"transport `{request.transport}` is NCCL's, and a CPU image trains through MPI",
            evidence=(f"image: {request.image}",),
            hint="choose transport `sockets`",
        )
    if not request.script:
        yield Problem("there is no script to run", hint="name the script that every rank runs")


def _program(request: LaunchRequest) -> str:
    """Find the program that starts the ranks, by its full path; empty where the image has none.

    With its full path, mpirun starts its daemons on other nodes from the same folder.
    """
    here = (request.launches[name] for name in request.components if name in request.launches)
    return next((one.program for one in here if one.program), "")


def _docker(request: LaunchRequest) -> Iterator[Flag]:
    yield Flag(("docker", "run"), "start a container of the image on this node")
    yield Flag(("-itd", "--rm"), "in the background, with a terminal; gone when it stops")
    if request.device == "gpu":
        yield Flag(("--gpus", "all"), "every GPU of the node, through the NVIDIA runtime")
    contract = request.contract
    shm = int(contract.get("shm_bytes", 0))
    if shm:
        size = f"{shm // GIB}g" if shm % GIB == 0 else str(shm)
        why = "data loaders and ranks of one node share memory; docker gives 64 MB"
        yield Flag((f"--shm-size={size}",), why)
    for name, limit in contract.get("ulimits", {}).items():
        yield Flag(("--ulimit", f"{name}={limit}"), _ULIMITS.get(name, "the image asks for it"))
    if contract.get("network") == "host" or len(request.nodes) > 1 or request.given.host_network:
        why = "ranks of other nodes, and RDMA devices, are reached in the network of the host"
        yield Flag(("--net=host",), why)
    yield from request.given.flags or _rights(request)
    yield Flag((request.image,), "the image")


_ULIMITS: Mapping[str, str] = {
    "memlock": "RDMA registers memory, which has to stay locked; -1 is no limit",
    "stack": "64 MiB of stack, as the guides of NVIDIA's framework images ask",
}


def _rights(request: LaunchRequest) -> Iterator[Flag]:
    """Give the capabilities and devices that the contract names, not `--privileged`.

    `--privileged` would open every device of the host.
    """
    for cap in request.contract.get("caps", ()):
        why = _CAPS.get(cap, "the image asks for it; --privileged would give all of them")
        yield Flag((f"--cap-add={cap}",), why)
    if request.given.devices:
        for device in request.contract.get("devices", ()):
            why = "the RDMA devices only; --privileged would open every device of the host"
            yield Flag((f"--device={device}",), why)


_CAPS: Mapping[str, str] = {
    "IPC_LOCK": "lock memory for RDMA; --privileged would give every capability",
    "SYS_PTRACE": "Open MPI copies between ranks of a node without a detour through shared memory",
}


def _mpirun(request: LaunchRequest) -> Iterator[Flag]:
    per_node = request.gpus_per_node
    nodes = max(1, len(request.nodes))
    unit = "GPU" if request.device == "gpu" else "process"
    yield Flag((_program(request),), "the image's own Open MPI, on every node")
    yield Flag(("-np", str(nodes * per_node)), f"ranks in all: one for each {unit}")
    if request.nodes:
        hosts = ",".join(f"{node}:{per_node}" for node in request.nodes)
        yield Flag(("-H", hosts), "the nodes, with the ranks that each takes")
    elif request.device != "gpu":
        yield Flag(("-H", f"localhost:{per_node}"), "slots for all ranks, however few the cores")
    yield Flag(("--allow-run-as-root",), "containers run as root, which mpirun refuses otherwise")
    yield Flag(("-bind-to", "none"), "each rank runs threads of its own on any core")
    yield Flag(("-map-by", "slot"), "fill one node before the next, so neighbours share a node")
    if request.device == "gpu":
        yield from _nccl(request)
    yield from _accel(request)
    if request.device == "gpu":
        yield _export("LD_LIBRARY_PATH", "ranks on other nodes find the same libraries")
    yield _export("PATH", "ranks on other nodes find the same programs")
    yield from _mca(request)
    why = "the training script, which every rank runs"
    yield Flag(("python3", request.script), why)
    yield Flag((f"--model={request.model}",), "the model to train")
    yield Flag((f"--batch-size={request.batch}",), "samples in a step of each rank")


_FORMS: Mapping[Form, Callable[[LaunchRequest], Iterator[Flag]]] = {
    "docker": _docker,
    "mpirun": _mpirun,
}


def _export(setting: str, why: str) -> Flag:
    return Flag(("-x", setting), why)


_OF_NCCL = (
    Variable("NCCL_DEBUG=INFO", "NCCL says which network it really uses"),
    Variable("NCCL_SOCKET_IFNAME={iface}", "NCCL's TCP: set-up, and data without RDMA"),
)


def _nccl(request: LaunchRequest) -> Iterator[Flag]:
    variables = [*_OF_NCCL]
    for one in request.given.variables:
        names = [other.name for other in variables]
        variables.insert(names.index(one.before) if one.before in names else len(names), one)
    return _exports(request, variables)


def _accel(request: LaunchRequest) -> Iterator[Flag]:
    return _exports(request, request.accelerated.variables)


def _exports(request: LaunchRequest, variables: Iterable[Variable]) -> Iterator[Flag]:
    """Export the variables that hold for this launch, with their values filled in."""
    values = {
        "iface": request.iface,
        "gpus_per_node": str(request.gpus_per_node),
        "first_node": request.nodes[0] if request.nodes else "localhost",
    }
    for one in variables:
        wanted = one.transport in ("", request.transport)
        wanted = wanted and (len(request.nodes) > 1 or not one.several_nodes)
        if wanted and (request.iface or "{iface}" not in one.setting):
            yield _export(one.setting.format_map(values), one.why)


def _mca(request: LaunchRequest) -> Iterator[Flag]:
    """Choose how MPI sends messages: only small ones on GPUs, all of them on CPUs."""
    ob1 = request.given.mpi_over_tcp or request.device != "gpu"
    if ob1:
        yield Flag(("-mca", "pml", "ob1"), "MPI itself over TCP and shared memory")
    if request.iface:
        why = "the interface of MPI's own messages"
        yield Flag(("-mca", "btl_tcp_if_include", request.iface), why)
    if ob1:
        yield Flag(("-mca", "btl", "^openib"), "MPI itself opens no RDMA device")
