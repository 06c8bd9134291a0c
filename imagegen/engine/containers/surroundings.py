"""Read the facts of the engine's machine that can change the result of a check in a container.

The facts are: kernel and architecture; what the engine reports about itself (version, runtimes,
default runtime, storage, cgroups, security, cores, memory), its settings file and the limits of its
process, which containers inherit; PCI devices that are GPUs, accelerators or network adapters, with
their drivers; the device nodes of GPUs, RDMA and huge pages in /dev with their permissions; RDMA
devices with firmware, ports, states and GIDs; network adapters with MTU and state; loaded drivers
with their versions; reserved huge pages; the scope of ptrace.

Values that change from minute to minute are left out, for example free memory, the health of a GPU,
or what other containers do.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.engine.client import Engine, engine_errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    Facts = dict[str, str]

_OF_ENGINE = (
    *("ID", "ServerVersion", "OperatingSystem", "KernelVersion", "Architecture", "NCPU"),
    *("MemTotal", "Driver", "Runtimes", "DefaultRuntime", "CgroupDriver", "CgroupVersion"),
    "SecurityOptions",
)
_PCI_CLASSES = ("0x02", "0x03", "0x12")
"""Network controller, display controller, processing accelerator: pci.ids, device classes."""

_DRIVERS = ("nvidia", "nv_peer", "gdrdrv", "mlx", "ib_", "rdma", "irdma", "bnxt", "efa")
_NODES = ("dev/nvidia*", "dev/nvidia-caps/*", "dev/infiniband/*", "dev/hugepages*", "dev/gdrdrv")
_FILES = (
    "etc/docker/daemon.json",
    "proc/driver/nvidia/version",
    "proc/sys/kernel/yama/ptrace_scope",
    "sys/kernel/mm/hugepages/*/nr_hugepages",
    "sys/kernel/mm/memory_peers/*/version",
    "sys/class/infiniband/*/fw_ver",
    "sys/class/infiniband/*/ports/*/state",
    "sys/class/infiniband/*/ports/*/phys_state",
    "sys/class/infiniband/*/ports/*/link_layer",
    "sys/class/infiniband/*/ports/*/rate",
    "sys/class/infiniband/*/ports/*/gids/*",
    "sys/class/infiniband/*/ports/*/gid_attrs/types/*",
)


def surroundings(engine: Engine) -> Facts | None:
    """Map the name of each fact to its text; None where the engine runs on another machine.

    Raises EngineError when the engine does not answer.
    """
    with engine_errors("ask the engine for its facts"):
        info = engine.api.info()
    local = engine.endpoint.url.startswith("unix://")
    if not local or info.get("KernelVersion") != os.uname().release:  # a guest, as on a desktop
        return None
    return {**{f"engine {name}": str(info.get(name)) for name in _OF_ENGINE}, **given(Path("/"))}


def given(root: Path) -> Facts:
    """Read the facts of a machine from its own files; `root` is the top of its file system."""
    found = {_name(path, root): _text(path) for path in _all(root, _FILES)}
    found |= {_name(path, root): _rights(path) for path in _all(root, _NODES)}
    found |= {f"module {path.name}": _text(path / "version") for path in _drivers(root)}
    pid = _text(root / "var/run/docker.pid")
    found["engine limits"] = _text(root / "proc" / pid / "limits") if pid else ""
    return {**found, **_pci(root), **_net(root)}


def _all(root: Path, patterns: Iterable[str]) -> list[Path]:
    return sorted(path for pattern in patterns for path in root.glob(pattern))


def _name(path: Path, root: Path) -> str:
    return f"/{path.relative_to(root)}"


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:  # an empty GID cannot be read, nor what another user hides: both are facts
        return ""


def _rights(path: Path) -> str:
    try:
        there = path.stat()
    except OSError:
        return "gone"
    return f"{there.st_mode:o} {there.st_uid}:{there.st_gid} {there.st_rdev}"


def _drivers(root: Path) -> list[Path]:
    return [path for path in _all(root, ("sys/module/*",)) if path.name.startswith(_DRIVERS)]


def _pci(root: Path) -> Facts:
    found = {}
    for path in _all(root, ("sys/bus/pci/devices/*",)):
        kind = _text(path / "class")
        if kind.startswith(_PCI_CLASSES):
            driver = (path / "driver").resolve().name if (path / "driver").exists() else "no driver"
            ids = f"{_text(path / 'vendor')}:{_text(path / 'device')}"
            found[f"pci {path.name}"] = f"{kind} {ids} {driver}"
    return found


def _net(root: Path) -> Facts:
    """Read the state of real adapters only; those without a device come and go with containers."""
    return {
        f"net {path.name}": f"mtu {_text(path / 'mtu')} {_text(path / 'operstate')}"
        for path in _all(root, ("sys/class/net/*",))
        if (path / "device").exists()
    }
