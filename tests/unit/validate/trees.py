"""Make up machines: small folders that stand for `/`, and their expectation files."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from validate.expected import Expected, load
from validate.pytest_run import run_suites
from validate.remedy import KINDS, SHELL
from validate.run_options import RunOptions

if TYPE_CHECKING:
    from validate.check import CheckResult

LIB_DIR = "/usr/lib/x86_64-linux-gnu"
RECIPE: dict[str, Any] = {
    "schema": 1,
    "image": "imagegen/cpu:test",
    "tool": "0.1.0",
    "device": "cpu",
    "os": {"id": "debian12", "ID": "debian", "VERSION_ID": "12", "lib_dir": LIB_DIR},
    "env": {},
    "components": {
        "validate": {"version": "0.1.0"},
        "rdma": {
            "version": "44.0",
            "variant": "rdma-core",
            "facts": {"pabi": "34", "providers": ["mlx5"], "tools": []},
        },
        "ssh": {"version": "9.2", "facts": {"port": "2222"}},
    },
    "omitted": {"horovod": "it does not compile here"},
    "suites": ["limits", "rdma", "validate"],
    "contract": {},
}


def write(root: Path, path: str, text: str = "") -> Path:
    """Write a file of the made-up machine."""
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    return target


def expected(folder: Path, **changes: Any) -> Expected:
    """Return the recipe above with some keys changed, read by the real loader."""
    return load(str(write(folder, "image.json", json.dumps({**RECIPE, **changes}))))


def findings(
    root: Path, suite: str, recipe: Expected, *, static: bool = False
) -> dict[str, CheckResult]:
    """Return the results of one suite's checks on a made-up machine, by id."""
    found, broken = run_suites([suite], recipe, str(root), RunOptions(static=static))
    assert broken == []
    for one in found:
        assert_remedy(one)
    return {one.check.id: one for one in found}


def assert_remedy(one: CheckResult) -> None:
    """Assert that a finding has a remedy of a known kind, and that a shell can read its line."""
    if one.outcome not in ("failed", "warned"):
        return
    assert one.kind in KINDS, one
    assert one.remedy or one.look, one
    assert one.remedy.count("   # ") < 2, one  # a comment hides what comes after it
    if one.kind == SHELL:
        assert readable(one.remedy), one


@cache
def readable(line: str) -> bool:
    """Return whether bash can parse a line; a test may have taken it off the PATH."""
    argv = ["bash", "-n", "-c", line]
    ended = subprocess.run(argv, executable="/bin/bash", stdin=subprocess.DEVNULL, check=False)
    return ended.returncode == 0


def hca(root: Path, name: str = "mlx5_0", *, state: str = "4: ACTIVE", number: int = 0) -> None:
    """Make an RDMA device of the kernel with one port, as /sys shows it."""
    port = f"/sys/class/infiniband/{name}/ports/1"
    write(root, f"{port}/state", f"{state}\n")
    write(root, f"{port}/rate", "100 Gb/sec (4X EDR)\n")
    write(root, f"{port}/link_layer", "InfiniBand\n")
    write(root, f"/sys/class/infiniband_verbs/uverbs{number}/ibdev", f"{name}\n")


def device_nodes(root: Path, count: int = 1) -> None:
    """Make the nodes that `--device=/dev/infiniband` brings."""
    write(root, "/dev/infiniband/rdma_cm")
    for number in range(count):
        write(root, f"/dev/infiniband/uverbs{number}")


def pci_card(root: Path, vendor: str, kind: str, address: str = "0000:3b:00.0") -> None:
    """Make a PCI function, such as vendor 0x15b3 and class 0x020700 for an InfiniBand card."""
    write(root, f"/sys/bus/pci/devices/{address}/vendor", f"{vendor}\n")
    write(root, f"/sys/bus/pci/devices/{address}/class", f"{kind}\n")


def verbs_stack(root: Path, *, abi: str = "34", provider_abi: str = "34") -> None:
    """Make loadable libibverbs, librdmacm and mlx5 provider, with the marks that are read."""
    top = root / LIB_DIR.lstrip("/")
    (top / "libibverbs").mkdir(parents=True)
    library = _a_library().read_bytes()
    (top / "libibverbs.so.1.14.44.0").write_bytes(library + f"IBVERBS_PRIVATE_{abi}".encode())
    (top / "libibverbs.so.1").symlink_to("libibverbs.so.1.14.44.0")
    (top / "librdmacm.so.1").write_bytes(library)
    provider = top / f"libibverbs/libmlx5-rdmav{provider_abi}.so"
    provider.write_bytes(library + f"IBVERBS_PRIVATE_{provider_abi}".encode())
    write(root, "/etc/libibverbs.d/mlx5.driver", "driver mlx5\n")


def _a_library() -> Path:
    """Return any shared library of the machine that runs the tests."""
    ctypes.CDLL("libm.so.6")
    maps = Path("/proc/self/maps").read_text().splitlines()
    return Path(next(line.split()[-1] for line in maps if "libm.so.6" in line))


def private_key(root: Path, path: str, mode: int = 0o600) -> None:
    """Write a file that looks like an OpenSSH key."""
    begin, end = "-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"
    os.chmod(write(root, path, f"{begin}\nb3BlbnNzaC1rZXktdjEAAAAA\n{end}\n"), mode)  # noqa: PTH101
