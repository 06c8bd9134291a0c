"""Made-up GPU machines: trees of files with small libraries in them, compiled for the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from validate.expected import load
from validate.session import run_suites

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from validate.plugin import Found

LIB_DIR = "/usr/lib/x86_64-linux-gnu"


def compiled(root: Path, path: str, source: str, *options: str) -> Path:
    """A shared object of the machine. Without a compiler the test fails."""
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", "-w", "-o", str(target), "-x", "c", "-", "-x", "none"]
    shell = ["sh", "-c", 'exec "$@"', "sh", *command, *options]
    subprocess.run(shell, input=source, text=True, check=True)
    return target


def version_function(name: str, number: int) -> str:
    """C source of `int name(int *)`, as NCCL and CUDA tell their versions."""
    return f"int {name}(int *v) {{ *v = {number}; return 0; }}\n"


def size_function(name: str, number: int) -> str:
    """C source of `size_t name(void)`, as cuDNN tells its version."""
    return f"unsigned long {name}(void) {{ return {number}; }}\n"


def write(root: Path, path: str, text: str = "") -> Path:
    """A file of the machine."""
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    return target


def gpu_on_bus(root: Path, address: str = "0000:3b:00.0") -> None:
    """A GPU as /sys shows it also where it was not passed to the container."""
    write(root, f"/sys/bus/pci/devices/{address}/vendor", "0x10de\n")
    write(root, f"/sys/bus/pci/devices/{address}/class", "0x030200\n")


def component(version: str, **facts: str) -> dict[str, Any]:
    return {"version": version, "facts": facts}


class Machine:
    """A tree that stands for `/`, and the recipe of the image that it is said to run."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.site = root / "site"
        self.components: dict[str, Any] = {
            "python": component("3.11", interpreter=sys.executable),
            "validate": component("0.1.0"),
        }
        for name in list(os.environ):
            if name.startswith(("NCCL_", "CUDA_", "LIGHT_", "LD_LIBRARY_PATH", "OMPI_MCA_")):
                monkeypatch.delenv(name)
        monkeypatch.setenv("PYTHONPATH", str(self.site))
        self.site.mkdir()

    def promise(self, name: str, version: str, **facts: str) -> None:
        self.components[name] = component(version, **facts)

    def lib(self, name: str, source: str = "", *options: str) -> Path:
        """A library in the distribution's folder."""
        return compiled(self.root, f"{LIB_DIR}/{name}", source, *options)

    def findings(self, suite: str, *, static: bool = False) -> dict[str, Found]:
        """What the checks of one suite say, by id."""
        recipe = {
            "schema": 1,
            "os": {"ID": "ubuntu", "lib_dir": LIB_DIR},
            "components": self.components,
            "suites": [suite],
        }
        path = write(self.root, "image.json", json.dumps(recipe))
        found, broken = run_suites([suite], load(str(path)), str(self.root), static)
        assert broken == []
        assert [one for one in found if one.outcome == "error"] == []
        return {one.check.id: one for one in found}
