"""Answer the commands of one `validate` on this host: its facts, and ranks of PyTorch.

This file is sent to other hosts as text, with sweep.py: it needs only the standard library of
Python 3.6, and torch where PyTorch moves the data. Commands are lines of JSON on stdin. PyTorch is
imported once; each rank is a fork, so that a rank that hangs can be ended and leaves nothing
behind. The end of stdin ends everything.
"""

import glob
import hashlib
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any, Dict, Iterator, List

from validate.network.sweep import Torch, measured_rows, put

IDLE_SECONDS = 0.05
DMI = "/sys/class/dmi/id/"


def line_in(path: str) -> str:
    """Return the first line of a file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model na")]
    except OSError:
        names = []
    return "{} x {}".format(len(names), names[0] if names else os.uname().machine)


def _gpus() -> List[Dict[str, str]]:
    """List the GPUs of the driver whose device nodes are here: model and UUID."""
    found = []
    for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")):
        try:
            with open(path, encoding="utf-8") as file:
                pairs = [line.partition(":") for line in file]
        except OSError:
            continue
        said = {name.strip(): value.strip() for name, _, value in pairs}
        if os.path.exists("/dev/nvidia" + said.get("Device Minor", "?")):
            found.append({"model": said.get("Model", "?"), "uuid": said.get("GPU UUID", "")})
    return found


def interface_of(address: str) -> Dict[str, str]:
    """Return name, speed and MTU of the interface with an address; empty if there is none."""
    import fcntl
    import struct

    for _, name in socket.if_nameindex():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            try:
                said = fcntl.ioctl(one, 0x8915, struct.pack("256s", name[:15].encode()))
            except OSError:  # SIOCGIFADDR: it has no IPv4 address
                continue
        if socket.inet_ntoa(said[20:24]) == address:
            top = "/sys/class/net/{}/".format(name)
            return {"name": name, "speed": line_in(top + "speed"), "mtu": line_in(top + "mtu")}
    return {}


def machine_of(gpus: List[Dict[str, str]]) -> str:
    """Return a word that is the same in every container of this machine, also after it restarts."""
    parts = [line_in(DMI + name) for name in ("product_uuid", "board_serial")]
    parts += sorted(one["uuid"] for one in gpus)
    if not any(parts):
        with open("/proc/meminfo", encoding="utf-8") as file:
            parts = [_processor(), str(int(file.readline().split()[1]) // (1 << 20))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def facts() -> Dict[str, Any]:
    """Return what this host is, without an import of PyTorch."""
    gpus = _gpus()
    ends = os.environ.get("SSH_CONNECTION", "").split()
    spec = importlib.util.find_spec("torch")
    return {
        "host": os.uname().nodename,
        "boot": line_in("/proc/sys/kernel/random/boot_id"),
        "machine": machine_of(gpus),
        "processor": _processor(),
        "gpus": [one["model"] for one in gpus],
        "python": sys.executable,
        "torch": bool(spec),
        "address": ends[2] if len(ends) == 4 else "",
        "from": ends[0] if len(ends) == 4 else "",
        "interface": interface_of(ends[2]) if len(ends) == 4 else {},
    }


def _of_torch() -> Dict[str, Any]:
    """Return what PyTorch says; runs in a fork, because a fork of a process with CUDA has none."""
    import torch
    from torch import distributed

    there = distributed.is_available()
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    nccl = bool(there and gpus and distributed.is_nccl_available())
    version = torch.cuda.nccl.version() if nccl else ()
    if isinstance(version, int):  # before PyTorch 1.10
        version = divmod(version, 1000) if version < 10000 else divmod(version, 10000)
        version = (version[0], *divmod(version[1], 100))
    gloo = getattr(distributed, "is_gloo_available", lambda: there)
    return {
        "version": torch.__version__,
        "gpus": gpus,
        "models": [torch.cuda.get_device_name(number) for number in range(gpus)],
        "nccl": ".".join(map(str, version)),
        "gloo": bool(there and gloo()),
    }


def in_words(error: BaseException) -> str:
    """Return the last line of an error that says something, short enough for a report."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "{}: {}".format(type(error).__name__, (lines or [""])[0])[:300]


class Ranks:
    """Hold the ranks of one command while they run."""

    def __init__(self, spec: Dict[str, Any]) -> None:
        self.spec = spec
        self._end = time.monotonic() + spec["limit"]
        self._problem = ""
        self._left = {}  # type: Dict[int, int]
        for number in range(spec["ranks"]):
            self._left[self._forked(number)] = spec["first"] + number

    def _forked(self, number: int) -> int:
        child = os.fork()
        if child:
            return child
        code = 1
        rank = self.spec["first"] + number
        try:
            _measured(self.spec, rank, number)
            code = 0
        except BaseException as error:  # the fork may not go on in the loop of its parent
            put({"run": self.spec["run"], "rank": rank, "problem": in_words(error)})
        finally:
            os._exit(code)

    def ended(self) -> bool:
        """Say what became of ranks that ended, end all of them at the limit; true if none runs."""
        late = time.monotonic() > self._end
        for child, rank in list(self._left.items()):
            if late:
                os.kill(child, signal.SIGKILL)
                self._problem = "no end within {:.0f} s".format(self.spec["limit"])
            done, status = os.waitpid(child, 0 if late else os.WNOHANG)
            if done:
                del self._left[child]
            if done and not late and os.WIFSIGNALED(status):
                self._problem = "rank {} was ended by signal {}".format(rank, os.WTERMSIG(status))
        if not self._left:
            put({"run": self.spec["run"], "ended": True, "problem": self._problem})
        return not self._left

    def end(self) -> None:
        """End all ranks."""
        for child in self._left:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _measured(spec: Dict[str, Any], rank: int, device: int) -> None:
    os.environ.setdefault("USE_LIBUV", "0")  # without libuv PyTorch refuses to use it
    os.environ.setdefault("NCCL_DEBUG", "INFO")  # tells which network it uses
    os.environ.setdefault("NCCL_DEBUG_SUBSYS", "INIT,NET")
    transport = Torch(spec, rank, device)
    for row in measured_rows(transport, rank, spec["world"], spec["sizes"], spec["pace"]):
        put(dict(row, run=spec["run"], rank=rank))
    transport.end()


def _loaded() -> None:
    """Import PyTorch here, and say what it says, from a fork."""
    try:
        import torch
        import torch.distributed

        assert torch
    except BaseException as error:
        put({"loaded": {}, "problem": in_words(error)})
        return
    child = os.fork()
    if not child:
        try:
            put({"loaded": _of_torch(), "problem": ""})
        except BaseException as error:
            put({"loaded": {}, "problem": in_words(error)})
        finally:
            os._exit(0)
    if os.waitpid(child, 0)[1]:
        put({"loaded": {}, "problem": "PyTorch ended the process that asked it for its GPUs"})


def _port() -> None:
    with socket.socket() as one:
        one.bind(("", 0))
        put({"port": one.getsockname()[1]})


def _commands() -> Iterator[Dict[str, Any]]:
    """Give each command of stdin, and an empty one when none came for a moment."""
    kept = b""
    while True:
        ready, _, _ = select.select([0], [], [], IDLE_SECONDS)
        if not ready:
            yield {}
            continue
        data = os.read(0, 65536)
        if not data:
            return
        kept += data
        while b"\n" in kept:
            line, _, kept = kept.partition(b"\n")
            yield json.loads(line.decode())


def main() -> None:
    """Say the facts, then do what commands ask for, until they end."""
    put({"facts": facts()})
    running = []  # type: List[Ranks]
    for command in _commands():
        if command.get("do") == "load":
            _loaded()
        elif command.get("do") == "port":
            _port()
        elif command.get("do") == "run":
            running.append(Ranks(command))
        running = [one for one in running if not one.ended()]
    for one in running:
        one.end()
    os._exit(0)  # an end in order takes PyTorch seconds
