"""Boot an image in a virtual machine: its root file system on a disk, QEMU.

QEMU emulates without KVM, which laptops and guests of a cloud often do not have; so a run is the
same everywhere.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.engine import sdk
from imagegen.engine.client import HINT_FIX, Engine, engine_errors
from imagegen.engine.containers import owner
from imagegen.engine.host import process
from imagegen.engine.machine.guest_kernel import READY
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

QEMU, PACK = "qemu-system-x86_64", "sqfstar"
PROGRAMS = {QEMU: "qemu-system-x86", PACK: "squashfs-tools"}
"""Programs that the machine needs, and the Debian packages that have them."""

EXPORT_SECONDS = 900
MEMORY_MIB = 2048
EXPIRED, KILLED = 124, 137
"""Exit codes of timeout(1): the time was up; it needed a SIGKILL."""


@dataclass(frozen=True)
class VirtualMachine:
    """Say what to boot; `disk` is read only, the guest's second port is written to `answer`."""

    kernel: Path
    initrd: Path
    disk: Path
    answer: Path
    seconds: int


@dataclass(frozen=True)
class Powered:
    """Hold how a machine ended; `up` says that it had mounted the image."""

    up: bool
    timed_out: bool
    tail: tuple[str, ...]


def missing_programs() -> list[str]:
    """List the packages that have to be installed before a machine can boot."""
    return [package for program, package in PROGRAMS.items() if shutil.which(program) is None]


def qemu_command(machine: VirtualMachine) -> list[str]:
    """Make QEMU's command line; `timeout` ends it even if this program was killed.

    `-cpu max` is there because images may be built for processors newer than QEMU's default.
    Mitigations against other guests would only take time here.
    """
    append = "console=ttyS0 quiet panic=-1 mitigations=off"
    return [
        *("timeout", "--kill-after=5", str(machine.seconds)),
        *(QEMU, "-accel", "tcg,thread=multi", "-cpu", "max"),
        *("-m", str(MEMORY_MIB), "-smp", "2", "-no-reboot", "-nodefaults"),
        *("-display", "none", "-serial", "stdio", "-serial", f"file:{machine.answer}"),
        *("-kernel", str(machine.kernel), "-initrd", str(machine.initrd), "-append", append),
        *("-drive", f"file={machine.disk},format=raw,if=virtio,readonly=on"),
        *("-netdev", "user,id=net,restrict=on"),
        *("-device", "virtio-net-pci,netdev=net,romfile="),
    ]


def boot(machine: VirtualMachine, on_line: Callable[[str], None]) -> Powered:
    """Boot, report what the guest prints once the image is mounted, and wait until it is off.

    Raises EngineError where QEMU cannot be started or ends by itself with an error.
    """
    up = False

    def hear(line: str) -> None:
        nonlocal up
        line = line.rstrip("\r")
        if up:
            on_line(line)
        up = up or line == READY

    try:
        ended = process.run(qemu_command(machine), hear)
    except OSError as error:
        raise EngineError.of(f"`{QEMU}` cannot be run", hint=HINT_FIX) from error
    timed_out = ended.code in (EXPIRED, KILLED)
    if ended.code and not timed_out:
        text = f"`{QEMU}` ended with exit code {ended.code}"
        raise EngineError.of(text, evidence=ended.tail, hint=HINT_FIX)
    return Powered(up, timed_out, tuple(line.rstrip("\r") for line in ended.tail))


def pack_root(engine: Engine, image_id: str, disk: Path) -> None:
    """Write the root file system of an image as a squashfs disk, with its owners and modes.

    Raises EngineError. The image is never started, and nothing of it stays on the engine.
    """
    with engine_errors(f"export {image_id}"), engine.fresh(timeout=EXPORT_SECONDS) as api:
        created = api.create_container(
            image_id, command=["true"], name=owner.new_name(), labels=owner.own_mark()
        )
        try:
            _pack(api.export(created["Id"]), disk)
        finally:
            with suppress(sdk.errors.NotFound):
                api.remove_container(created["Id"], force=True)


def _pack(chunks: Iterable[bytes], disk: Path) -> None:
    """Pack a tar with lz4: that writes less than no compression, and is fast to unpack.

    The emulated processor is slow, so a stronger compression would take it too long.
    """
    argv = [PACK, "-comp", "lz4", "-quiet", "-no-progress", str(disk)]
    try:
        # sqfstar(1): it reads a tar from its standard input.
        packer = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise EngineError.of(f"`{PACK}` cannot be run", hint=HINT_FIX) from error
    with packer:
        assert packer.stdin is not None
        assert packer.stderr is not None
        try:
            with suppress(BrokenPipeError), packer.stdin as feed:
                for chunk in chunks:
                    feed.write(chunk)
            errors = packer.stderr.read().decode(errors="replace").splitlines()
        except BaseException:
            packer.kill()
            raise
    if packer.returncode != 0:
        text = f"`{PACK}` ended with exit code {packer.returncode}"
        raise EngineError.of(text, evidence=errors[-8:], hint="free disk, see `imagegen doctor`")
