"""Write the `docker run` line of one container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.launcher.description import GIB, Description, as_command
from imagegen.model.launch import Flag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.launcher.description import Launched
    from imagegen.model.launch import Contract, Reason


def flags_of(contract: Contract, reasons: Mapping[str, Reason]) -> tuple[Flag, ...]:
    """List the flags of `docker run` that a contract asks for by itself."""
    alone = Description("", contract, {}, {}, "gpu" if "driver" in contract else "cpu", reasons)
    found = [*_flags(alone)][2:-1]
    if contract.get("privileged"):
        found = [flag for flag in found if not flag.words[0].startswith("--cap-add")]
        found.append(alone.flag("docker.privileged", "--privileged"))
    else:
        devices = contract.get("devices", ())
        found += [alone.flag("docker.device", f"--device={one}") for one in devices]
    for one in contract.get("mounts", ()):
        pair = f"{one['host'].rstrip('/')}:{one['path'].rstrip('/')}"
        found.append(alone.flag("docker.mount", "-v", pair))
    env = contract.get("env", {}).items()
    found += [alone.flag("docker.env", "-e", f"{name}={value}") for name, value in env]
    return tuple(found)


def docker(description: Description) -> Launched:
    """Write the line that starts a container of the image on this node."""
    return as_command(_flags(description), _host(description))


def _flags(description: Description) -> Iterator[Flag]:
    say, contract = description.flag, description.contract
    yield say("docker.run", "docker", "run")
    yield say("docker.detach", "-itd", "--rm")
    if description.user is not None:
        yield say("docker.user", "--user", str(description.user.uid))
    if description.device == "gpu" and description.cdi:
        yield say("docker.cdi", "--device", "nvidia.com/gpu=all")
    elif description.device == "gpu":
        yield say("docker.gpus", "--gpus", "all")
    shm = int(contract.get("shm_bytes", 0))
    if shm:
        size = f"{shm // GIB}g" if shm % GIB == 0 else str(shm)
        yield say("docker.shm", f"--shm-size={size}")
    for name, limit in contract.get("ulimits", {}).items():
        yield say(f"docker.ulimit.{name}", "--ulimit", f"{name}={limit}")
    several = description.nodes > 1 or description.given.host_network
    if contract.get("network") == "host" or several:
        yield say("docker.net", "--net=host")
    yield from _rights(description)
    yield say("docker.image", description.image)


def _rights(description: Description) -> Iterator[Flag]:
    """Give the capabilities and devices of the contract, or every right where it is asked for."""
    contract, given = description.contract, description.given
    if given.privileged:
        yield Flag(("--privileged",), given.privileged)
    elif description.privileged:
        yield description.flag("docker.privileged", "--privileged")
    else:
        for cap in contract.get("caps", ()):
            yield description.flag(f"docker.cap.{cap}", f"--cap-add={cap}")
        for device in contract.get("devices", ()) if given.devices else ():
            yield description.flag("docker.device", f"--device={device}")
    for one in given.mounts:
        yield Flag(("-v", f"{one.host.rstrip('/')}:{one.path.rstrip('/')}"), one.reason)


def _host(description: Description) -> Iterator[Flag]:
    """Say what the host needs for huge pages."""
    need = description.given.hugepages
    if need:
        text = f"# the host needs {description.pages} huge pages of {need.size}, "
        text += f"{need.per_gpu} x {description.gpus_per_node} GPUs + {need.more}: "
        text += f"`imagegen doctor {description.image}` there says what is missing"
        yield Flag((), need.reason, shown=text)
