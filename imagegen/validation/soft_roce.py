"""Validate the RDMA verbs of an image on an emulated machine (`imagegen validate --soft-roce`).

The image's own root file system is booted in QEMU with a kernel that has Soft-RoCE, an RDMA device
in software. There `validate` runs the rdma suite, and two programs of the image really send data
through the device.
"""

from __future__ import annotations

import re
import shlex
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.engine.images import local_images
from imagegen.engine.machine import qemu
from imagegen.engine.machine.guest_kernel import ensure_kernel, with_job
from imagegen.errors import EngineError, ValidationError
from imagegen.model.validation import ValidationRecord
from imagegen.validation.in_container import contract_of
from imagegen.validation.reports import read_report, with_check

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from imagegen.engine.client import Engine
    from imagegen.engine.images.local_image import LocalImage
    from imagegen.model.launch import Contract
    from imagegen.model.validation import Report

TIER = "soft-roce"
BOOT_SECONDS = 600
DEVICE = "rxe0"

# Row 1 of the GID table is RoCE v2 with IPv4. The repeats are few, because the processor is
# emulated.
TRAFFIC = {
    "rdma.pingpong": f"ibv_rc_pingpong -d {DEVICE} -g 1 -n 100",
    "rdma.write-bw": f"ib_write_bw -d {DEVICE} -x 1 -F -s 65536 -n 50",
}
# Both programs wait on TCP port 18515 (0x4853); the client starts when the server listens there.
_TRAFFIC_SHELL = """traffic() {
  timeout 60 $2 > /tmp/server 2>&1 &
  for _ in $(seq 100); do
    grep -qE ':4853 [0-9A-F:]+ 0A' /proc/net/tcp /proc/net/tcp6 && break
    sleep 0.1
  done
  timeout 60 $2 127.0.0.1 > /tmp/client 2>&1
  code=$?
  wait
  answer "$1" $code /tmp/client
}
"""
_ANSWER_SHELL = """answer() {
  { echo "@begin $1 $2"; cat "$3"; echo; echo "@end $1"; } > /dev/ttyS1
}
"""
REPORT = "/tmp/report.json"
_VALIDATE_AND_TRAFFIC = (
    _TRAFFIC_SHELL,
    f": > {REPORT}",
    f"timeout 300 validate --only rdma,limits --require rdma --json {REPORT}",
    "code=$?",
    f"answer validate $code {REPORT}",
    "[ $code = 0 ] || exit",
    *(f"traffic {name} '{argv}'" for name, argv in TRAFFIC.items()),
)

_ULIMITS = {"memlock": ("l", 1024), "nofile": ("n", 1), "stack": ("s", 1024), "nproc": ("u", 1)}
"""Options of the shell's `ulimit`, with the bytes of their unit."""

_DEFAULT_SHM = 64 << 20


@dataclass(frozen=True)
class Guest:
    """Hold exit code and text of each answer of a machine, and how the machine ended."""

    told: Mapping[str, tuple[int, str]]
    powered: qemu.Powered


def validate_on_soft_roce(
    engine: Engine, ref: str, cache: Path, seconds: int, on_line: Callable[[str], None]
) -> ValidationRecord:
    """Boot the image that `ref` names now, and validate it there, in at most `seconds`.

    The kernel is kept in the folder `cache`. Raises ValidationError where there is no such image or
    `validate` could not run in it, and EngineError where no machine can be booted.
    """
    image = local_images.find(engine, ref)
    if image is None:
        hint = "build it first: `imagegen build`, or pull it"
        raise ValidationError.of(f"the engine has no image `{ref}`", hint=hint)
    started = time.monotonic()
    script = "\n".join([*setting(engine, image), *_VALIDATE_AND_TRAFFIC, ""])
    guest = boot_image(engine, image.id, script, cache, seconds, on_line)
    report = report_of(ref, guest)
    for check in report["checks"][-len(TRAFFIC) :]:
        on_line(f"{check['id']}  {check['outcome']}  {check['measured']}")
    return ValidationRecord(
        image_id=image.id,
        tag=ref,
        tier=TIER,
        passed=report["exit_code"] == 0,
        counts=report["counts"],
        seconds=time.monotonic() - started,
        report=report,
    )


def boot_image(
    engine: Engine,
    image_id: str,
    script: str,
    cache: Path,
    seconds: int,
    on_line: Callable[[str], None],
) -> Guest:
    """Run a script as root in the root file system of an image, on a virtual machine."""
    if lost := qemu.missing_programs():
        text = "programs of the Soft-RoCE machine are missing: " + ", ".join(lost)
        raise EngineError.of(text, hint="imagegen doctor --fix")
    kernel = ensure_kernel(cache, on_line)
    with tempfile.TemporaryDirectory(prefix="imagegen-guest-") as name:
        initrd, disk, answer = (Path(name, part) for part in ("initrd", "disk", "answer"))
        initrd.write_bytes(with_job(kernel.initrd.read_bytes(), script))
        on_line("packing the root file system of the image")
        qemu.pack_root(engine, image_id, disk)
        on_line(f"booting it with the Soft-RoCE device {DEVICE}")
        machine = qemu.VirtualMachine(kernel.kernel, initrd, disk, answer, seconds)
        powered = qemu.boot(machine, on_line)
        text = answer.read_text(errors="replace") if answer.is_file() else ""
    return Guest(answers(text), powered)


def setting(engine: Engine, image: LocalImage) -> list[str]:
    """Write the first lines of a script that runs on the machine.

    They set the image's environment and what its contract needs at a launch, make the device, and
    define `answer NAME CODE FILE`, which sends a file to the host. Raises ValidationError.
    """
    env = local_images.inspect(engine, image.id)["Config"].get("Env") or ()
    return setting_of(env, contract_of(image.id, image.labels))


def setting_of(env: Sequence[str], contract: Contract) -> list[str]:
    """Write the lines from an environment and a contract; see `setting`."""
    size = int(contract.get("shm_bytes", 0)) or _DEFAULT_SHM
    return [
        "#!/bin/sh",
        *(f"export {shlex.quote(name)}={shlex.quote(value)}" for name, value in _pairs(env)),
        "export HOME=/root",
        f"mount -t tmpfs -o size={size} shm /dev/shm",
        *_limits(contract.get("ulimits", {})),
        _ANSWER_SHELL,
        "stty -F /dev/ttyS1 raw",
        f"rdma link add {DEVICE} type rxe netdev eth0 || answer device $? /dev/null",
    ]


def _pairs(env: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (one.partition("=") for one in env)]


def _limits(ulimits: Mapping[str, int]) -> list[str]:
    found = []
    for name, value in ulimits.items():
        option, unit = _ULIMITS.get(name, ("", 1))
        if option:
            number = int(value)
            found.append(f"ulimit -{option} {'unlimited' if number < 0 else number // unit}")
    return found


def answers(text: str) -> dict[str, tuple[int, str]]:
    """Map the name of each complete answer of the machine to its exit code and text."""
    found = re.findall(r"^@begin (\S+) (\d+)\n(.*?)\n@end \1$", text, re.MULTILINE | re.DOTALL)
    return {name: (int(code), answer) for name, code, answer in found}


def report_of(ref: str, guest: Guest) -> Report:
    """Make the report of `validate` with the checks of the traffic. Raises ValidationError."""
    if "device" in guest.told:
        text = f"`rdma link add` failed in `{ref}`: there is no Soft-RoCE device to look at"
        hint = "iproute2 5.1 or later has to be in the image"
        raise ValidationError.of(text, evidence=guest.powered.tail, hint=hint)
    try:
        code, text = guest.told["validate"]
        report: Report = {**read_report(text), "exit_code": code}
    except (KeyError, ValueError):
        raise _no_report(ref, guest.powered) from None
    for name in TRAFFIC:
        report = _joined(report, name, guest.told.get(name))
    return report


def _no_report(ref: str, powered: qemu.Powered) -> Exception:
    if powered.timed_out:
        text = f"the Soft-RoCE machine of `{ref}` did not end in its time"
    elif powered.up:
        text = f"`validate` left no report in the Soft-RoCE machine of `{ref}`"
    else:
        text = f"the Soft-RoCE machine of `{ref}` did not start"
    return ValidationError.of(text, evidence=[line for line in powered.tail if line.strip()][-12:])


def _joined(report: Report, name: str, answer: tuple[int, str] | None) -> Report:
    """Add the check of one program; it is skipped where `validate` has already found the reason."""
    if answer is None:
        culprit = next((c["id"] for c in report["checks"] if c["outcome"] == "failed"), "validate")
        return with_check(report, name, "skipped", culprit, reason="blocked-by")
    if answer[0] == 0:
        return with_check(report, name, "passed", measured(answer[1]))
    last = ([line for line in answer[1].splitlines() if line.strip()] or ["it said nothing"])[-1]
    return with_check(report, name, "failed", f"exit code {answer[0]}: {last.strip()}")


def measured(text: str) -> str:
    """Read how much a program moved; perftest's row has the average in its fourth column."""
    row = re.search(
        r"^ *(\d+)[ \t]+(\d+)[ \t]+[\d.]+[ \t]+([\d.]+)[ \t]+[\d.]+ *$", text, re.MULTILINE
    )
    if row:
        return f"{row[2]} x {row[1]} bytes, {row[3]} MB/s under emulation"
    lines = [line for line in text.splitlines() if " iters in " in line]
    return lines[-1].strip() if lines else "it ended well"
