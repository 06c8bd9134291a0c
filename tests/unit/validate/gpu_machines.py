"""Make up GPU machines: trees of files with small libraries, compiled for the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from unit.validate.trees import assert_remedy
from validate.expected import load
from validate.pytest_run import run_suites
from validate.run_options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

    from validate.check import CheckResult

LIB_DIR = "/usr/lib/x86_64-linux-gnu"
_COMPILED: dict[tuple[str, tuple[str, ...]], bytes] = {}
"""What this run has compiled already, because the compiler is slow."""


def compiled(root: Path, path: str, source: str, *options: str) -> Path:
    """Compile a shared object of the machine. Without a compiler the test fails."""
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if (source, options) in _COMPILED:
        target.unlink(missing_ok=True)
        target.write_bytes(_COMPILED[source, options])
        return target
    command = ["gcc", "-shared", "-fPIC", "-w", "-o", str(target), "-x", "c", "-", "-x", "none"]
    shell = ["sh", "-c", 'exec "$@"', "sh", *command, *options]
    subprocess.run(shell, input=source, text=True, check=True)
    _COMPILED[source, options] = target.read_bytes()
    return target


def version_function(name: str, number: int) -> str:
    """Return C source of `int name(int *)`, as NCCL and CUDA report their versions."""
    return f"int {name}(int *v) {{ *v = {number}; return 0; }}\n"


def size_function(name: str, number: int) -> str:
    """Return C source of `size_t name(void)`, as cuDNN reports its version."""
    return f"unsigned long {name}(void) {{ return {number}; }}\n"


def write(root: Path, path: str, text: str = "") -> Path:
    """Write a file of the machine."""
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    return target


def gpu_on_bus(root: Path, address: str = "0000:3b:00.0") -> None:
    """Put a GPU on the bus in /sys, where containers see it also if it was not passed to them."""
    write(root, f"/sys/bus/pci/devices/{address}/vendor", "0x10de\n")
    write(root, f"/sys/bus/pci/devices/{address}/class", "0x030200\n")


def component(version: str, **facts: str) -> dict[str, Any]:
    return {"version": version, "facts": facts}


class Machine:
    """Hold a tree that stands for `/`, and the recipe of the image that it runs."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.site = root / "site"
        self.device = "cpu"
        self.profile = "harp"
        self.gpus = 0
        self.loopback = False
        self.preflight = False
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
        """Compile a library into the distribution's folder."""
        return compiled(self.root, f"{LIB_DIR}/{name}", source, *options)

    def findings(self, *suites: str, static: bool = False) -> dict[str, CheckResult]:
        """Return the results of the checks of some suites, by id."""
        recipe = {
            "schema": 1,
            "device": self.device,
            "profile": self.profile,
            "os": {"ID": "ubuntu", "lib_dir": LIB_DIR},
            "components": self.components,
            "suites": [*suites],
        }
        path = write(self.root, "image.json", json.dumps(recipe))
        asked = RunOptions(
            static=static, gpus=self.gpus, loopback=self.loopback, preflight=self.preflight
        )
        found, broken = run_suites([*suites], load(str(path)), str(self.root), asked)
        assert broken == []
        assert [one for one in found if one.outcome == "error"] == []
        for one in found:
            assert_remedy(one)
        return {one.check.id: one for one in found}


def driver_library(count: int = 8, init: int = 0, serves: int = 12040, apart: int = 0) -> str:
    """Return C source of a libcuda.so.1 with `count` GPUs of compute capability 8.0.

    Pairs whose numbers differ by less than `apart` cannot copy directly.
    """
    return f"""
int cuInit(unsigned f) {{ return {init}; }}
int cuDriverGetVersion(int *v) {{ *v = {serves}; return 0; }}
int cuDeviceGetCount(int *n) {{ *n = {count}; return 0; }}
int cuDeviceGetAttribute(int *v, int what, int dev) {{ *v = what == 75 ? 8 : 0; return 0; }}
int cuDeviceCanAccessPeer(int *may, int one, int other) {{
  int gap = one - other; *may = (gap < 0 ? -gap : gap) >= {apart}; return 0; }}
"""


def nvml_library(
    *,
    count: int = 8,
    init: int = 0,
    ecc: int = 0,
    links: int = 12,
    name: str = "NVIDIA A100",
    ill: Mapping[str, int] = {},
) -> str:
    """Return C source of a libnvidia-ml.so.1; GPU 1 has `ecc` uncorrected errors.

    `ill` are more faults of GPU 1: `up` links of which are up, rows `pending` and `failed`, a page
    `retired`, `width` and `generation` of its PCIe link, its `pstate`, why it is `slow`, its
    `mode`, how many `processes` compute on it, how many MiB are `used`, errors of its `link`s, the
    state of its `fabric`.
    """
    well = {"up": links, "pending": 0, "failed": 0, "retired": 0, "width": 16, "generation": 4}
    well |= {"pstate": 0, "slow": 0, "mode": 0, "processes": 0, "used": 1, "link": 0, "fabric": 3}
    one = {key: f"(d == (void *)2 ? {ill.get(key, good)} : {good})" for key, good in well.items()}
    return f"""
#include <string.h>
typedef unsigned long long big;
int nvmlInit_v2(void) {{ return {init}; }}
int nvmlDeviceGetCount_v2(unsigned *n) {{ *n = {count}; return 0; }}
int nvmlSystemGetDriverVersion(char *s, unsigned n) {{ strcpy(s, "550.54.14"); return 0; }}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) {{ *d = (void *)(long)(i + 1); return 0; }}
int nvmlDeviceGetName(void *d, char *s, unsigned n) {{ strcpy(s, "{name}"); return 0; }}
int nvmlDeviceGetPciInfo_v3(void *d, unsigned *pci) {{
  pci[4] = pci[6] = 0; pci[5] = 0xf + (long)d; return 0; }}
int nvmlDeviceGetMemoryInfo(void *d, big *m) {{
  m[0] = 40ull << 30; m[2] = (big){one["used"]} << 20; return 0; }}
int nvmlDeviceGetComputeMode(void *d, unsigned *v) {{ *v = {one["mode"]}; return 0; }}
int nvmlDeviceGetPersistenceMode(void *d, unsigned *v) {{ *v = 1; return 0; }}
int nvmlDeviceGetMigMode(void *d, unsigned *v, unsigned *w) {{ *v = *w = 0; return 0; }}
int nvmlDeviceGetTotalEccErrors(void *d, int t, int c, big *v) {{
  *v = d == (void *)2 ? {ecc} : 0; return 0; }}
int nvmlDeviceGetRemappedRows(void *d, unsigned *a, unsigned *b, unsigned *c, unsigned *e) {{
  *a = *b = 0; *c = {one["pending"]}; *e = {one["failed"]}; return 0; }}
int nvmlDeviceGetNvLinkState(void *d, unsigned link, unsigned *v) {{
  *v = link < {one["up"]}; return link < {links} ? 0 : 2; }}
int nvmlDeviceGetNvLinkErrorCounter(void *d, unsigned link, unsigned kind, big *v) {{
  *v = link == 0 && kind == 0 ? {one["link"]} : 0; return 0; }}
int nvmlDeviceGetRetiredPagesPendingStatus(void *d, unsigned *v) {{
  *v = {one["retired"]}; return 0; }}
int nvmlDeviceGetCurrPcieLinkWidth(void *d, unsigned *v) {{ *v = {one["width"]}; return 0; }}
int nvmlDeviceGetMaxPcieLinkWidth(void *d, unsigned *v) {{ *v = 16; return 0; }}
int nvmlDeviceGetCurrPcieLinkGeneration(void *d, unsigned *v) {{
  *v = {one["generation"]}; return 0; }}
int nvmlDeviceGetMaxPcieLinkGeneration(void *d, unsigned *v) {{ *v = 4; return 0; }}
int nvmlDeviceGetPerformanceState(void *d, unsigned *v) {{ *v = {one["pstate"]}; return 0; }}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, big *v) {{ *v = {one["slow"]}; return 0; }}
struct process {{ unsigned pid; big memory; unsigned gpu, compute; }};
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, struct process *p) {{
  *n = {one["processes"]};
  for (unsigned i = 0; i < *n; i++) p[i].pid = 4000 + i;
  return 0; }}
struct fabric {{ unsigned char uuid[16]; int status; unsigned clique; unsigned char state; }};
int nvmlDeviceGetGpuFabricInfo(void *d, struct fabric *f) {{
  memset(f, 0, sizeof *f); f->state = {one["fabric"]}; return 0; }}
"""


def runtime_library(version: int = 12040, count: int = 8, malloc: int = 0) -> str:
    """Return C source of a libcudart whose cudaMalloc returns `malloc`."""
    return f"""
int cudaRuntimeGetVersion(int *v) {{ *v = {version}; return 0; }}
int cudaGetDeviceCount(int *n) {{ *n = {count}; return 0; }}
int cudaSetDevice(int n) {{ return 0; }}
int cudaMalloc(void **p, unsigned long n) {{ *p = 0; return {malloc}; }}
int cudaFree(void *p) {{ return 0; }}
"""
