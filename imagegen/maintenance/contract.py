"""Compare what an image needs with this host, and say what is missing here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.maintenance.doctor import Finding
from imagegen.model.constraint import matches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.model.launch import Contract

ROOT = Path("/")
_DRIVER = re.compile(r"Kernel Module(?: for \S+)? +([0-9.]+)")
_SIZES = {"M": 1024, "G": 1024 * 1024}
"""KiB in the units of huge pages."""


@dataclass(frozen=True)
class Machine:
    """What a host has of the things that contracts name.

    `pages` maps a size of huge pages in KiB to how many there are; `runtimes` is None where no
    engine answers.
    """

    root: Path
    driver: str
    gpus: int
    pages: Mapping[int, int]
    modules: frozenset[str]
    runtimes: tuple[str, ...] | None


def machine(runtimes: tuple[str, ...] | None, root: Path = ROOT) -> Machine:
    """Read the facts of a host from /proc and /sys below a folder."""
    found = _DRIVER.search(_read(root / "proc/driver/nvidia/version"))
    gpus = root / "proc/driver/nvidia/gpus"
    pages = {
        int(folder.name.rpartition("-")[2].removesuffix("kB")): int(_read(nr) or 0)
        for folder in sorted((root / "sys/kernel/mm/hugepages").glob("hugepages-*kB"))
        for nr in (folder / "nr_hugepages",)
    }
    lines = _read(root / "proc/modules").splitlines()
    return Machine(
        root=root,
        driver=found[1] if found else "",
        gpus=len(list(gpus.iterdir())) if gpus.is_dir() else 0,
        pages=pages,
        modules=frozenset(line.split()[0] for line in lines if line.split()),
        runtimes=runtimes,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def missing(
    contract: Contract, host: Machine, gpus: int, commands: Mapping[str, str]
) -> list[Finding]:
    """Judge the host by a contract; `gpus` are those of a node, 0 for all that it has.

    `commands` says how each thing is had on a host: `driver`, `toolkit`, `device`, `hugepages`,
    `mount`, and `mount-NAME` for one of them.
    """
    found = [*_driver(contract, host, commands), *_devices(contract, host, commands)]
    found += _pages(contract, host, gpus or host.gpus, commands)
    for one in contract.get("mounts", ()):
        there = (host.root / one["host"].strip("/")).is_dir()
        detail = f"{one['host']} {'is there' if there else 'is missing on this host'}"
        hint = commands.get(f"mount-{one['name']}") or commands.get("mount", "")
        found.append(_finding("mount", "ok" if there else "fail", detail, "" if there else hint))
    return found


def _finding(name: str, level: str, detail: str, hint: str = "") -> Finding:
    return Finding(name, "ok" if level == "ok" else "fail", detail, hint)


def _driver(contract: Contract, host: Machine, commands: Mapping[str, str]) -> Iterator[Finding]:
    wanted = contract.get("driver", "")
    if not wanted:
        return
    hint = commands.get("driver", "")
    if not host.driver:
        yield _finding("driver", "fail", f"no GPU driver here, the image needs {wanted}", hint)
    elif not matches(wanted, host.driver):
        text = f"the driver is {host.driver}, the image needs {wanted}"
        yield _finding("driver", "fail", text, hint)
    else:
        yield _finding("driver", "ok", f"{host.driver}, the image needs {wanted}")
    if host.runtimes is not None and "nvidia" not in host.runtimes:
        text = "the engine has no NVIDIA runtime"
        yield _finding("toolkit", "fail", text, commands.get("toolkit", ""))


def _devices(contract: Contract, host: Machine, commands: Mapping[str, str]) -> Iterator[Finding]:
    for device in contract.get("devices", ()):
        if (host.root / device.strip("/")).exists():
            yield _finding("device", "ok", f"{device} is there")
        else:
            text = f"{device} is missing on this host"
            yield _finding("device", "fail", text, commands.get("device", ""))


def _pages(
    contract: Contract, host: Machine, gpus: int, commands: Mapping[str, str]
) -> Iterator[Finding]:
    need = contract.get("hugepages")
    if need is None:
        return
    wanted = need["per_gpu"] * gpus + need["more"]
    size = int(need["size"][:-2]) * _SIZES[need["size"][-2]]
    have = host.pages.get(size, 0)
    text = f"{have} huge pages of {need['size']}, {wanted} needed for {gpus} GPUs"
    hint = commands.get("hugepages", "").replace("{pages}", str(wanted))
    level = "ok" if have >= wanted else "fail"
    yield _finding("hugepages", level, text, "" if level == "ok" else hint)
