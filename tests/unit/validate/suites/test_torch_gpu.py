"""Test PyTorch on a GPU: kernels that its build lacks, and an NCCL that does not start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate.gpu_machines import Machine, gpu_on_bus, write
from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import cuda, process_group
from validate.probes.process_group import Group

if TYPE_CHECKING:
    from pathlib import Path

    from validate.check import CheckResult

TORCH = """
class version:
    cuda = "12.4"
class backends:
    class cudnn:
        version = staticmethod(lambda: 90100)
class cuda:
    class nccl:
        version = staticmethod(lambda: (2, 21, 5))
    device_count = staticmethod(lambda: {gpus})
    get_arch_list = staticmethod(lambda: {arches!r}.split())
    get_device_capability = staticmethod(lambda number: {capability})
    synchronize = staticmethod(lambda: None)
class _C:
    pass
float32 = None
class arange:
    def __init__(self, count, dtype, device):
        self.count = count
    def reshape(self, rows, columns):
        return self
    def __matmul__(self, other):
        return self
    def sum(self):
        return {kernel}
def eye(rows, device):
    return None
class ones:
    def __init__(self, count, device):
        self.count = count
    def sum(self):
        return self.count
__version__ = "2.4.1+cu124"
"""
DISTRIBUTED = """
import atexit, sys
is_available = is_nccl_available = lambda: True
def init_process_group(backend, init_method, rank, world_size):
    open(init_method.replace("file://", ""), "w").close()
    atexit.register(print, "[rank0]:[W] destroy_process_group() was not called", file=sys.stderr)
def all_reduce(tensor):
    {reduces}
def destroy_process_group():
    atexit.unregister(print)
"""
NCCL_SAID = """\
NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2027, unhandled cuda error
ncclUnhandledCudaError: Call to CUDA function failed.
Last error:
{}
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an image with PyTorch 2.4.1 of CUDA 12.4 on a host with one H100."""
    one = Machine(tmp_path, monkeypatch)
    one.device = "gpu"
    one.promise("torch", "2.4.1+cu124", cuda="12.4")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", f"{tmp_path}/tmp")
    ranks = Group(("rank 0 of 1: sum 1",), (), "")
    monkeypatch.setattr(process_group, "by_torchrun", lambda _: ranks)
    monkeypatch.setattr(process_group, "has_torchrun", lambda _: False)
    monkeypatch.setattr(process_group, "alone", lambda _: ranks)
    gpu_on_bus(tmp_path)
    torch(one)
    return one


def torch(
    machine: Machine,
    *,
    gpus: int = 1,
    arches: str = "sm_80 sm_86 sm_90",
    capability: tuple[int, int] = (9, 0),
    reduces: str = "pass",
    kernel: str = "32640.0",
) -> None:
    text = TORCH.format(gpus=gpus, arches=arches, capability=capability, kernel=kernel)
    write(machine.site, "torch/__init__.py", text)
    write(machine.site, "torch/distributed.py", DISTRIBUTED.format(reduces=reduces))


def failures(machine: Machine) -> tuple[dict[str, CheckResult], list[str]]:
    found = machine.findings("torch")
    return found, [name for name, one in found.items() if one.outcome == FAILED]


def test_a_build_for_this_gpu_reduces_on_it(machine: Machine) -> None:
    found, failed = failures(machine)
    assert failed == []
    assert found["torch.arch"].outcome == found["torch.1rank-allreduce"].outcome == PASSED
    assert found["torch.arch"].measured == "sm_80 sm_86 sm_90 for sm_90"
    assert found["torch.1rank-allreduce"].measured == "sum 1024 of 1024 ones"


@pytest.mark.parametrize(
    ("arches", "capability", "gpu"),
    [("sm_37 sm_70 sm_86", (9, 0), "sm_90"), ("sm_75 sm_80 compute_90", (7, 0), "sm_70")],
)
def test_no_kernels_for_a_gpu_fail_whichever_is_the_older(
    machine: Machine, arches: str, capability: tuple[int, int], gpu: str
) -> None:
    torch(machine, arches=arches, capability=capability)
    found, failed = failures(machine)
    assert failed == ["torch.arch"]
    one = found["torch.arch"]
    assert one.measured == f"PyTorch has {arches}, the GPU is {gpu}"
    assert one.cause.startswith("the build is older than the GPU, or so new that it leaves it out")
    one = found["torch.1rank-allreduce"]
    assert (one.reason, one.measured) == ("blocked-by", "torch.arch")


def test_a_gpu_that_pytorch_does_not_see_fails_with_the_launch(machine: Machine) -> None:
    torch(machine, gpus=0)
    found, failed = failures(machine)
    assert failed == ["torch.arch"]
    one = found["torch.arch"]
    assert (one.measured, one.remedy) == ("PyTorch sees no GPU", cuda.PASS_GPUS)
    assert one.cause.startswith("no GPU was passed, or the driver is older")


@pytest.mark.parametrize(
    ("reduces", "measured"),
    [
        (f"raise RuntimeError({NCCL_SAID.format('Cuda failure 999')!r})", "Cuda failure 999"),
        (
            f"raise RuntimeError({NCCL_SAID.format('')!r})",
            "ncclUnhandledCudaError: Call to CUDA function failed.",
        ),
        ("raise RuntimeError", "NCCL did not start, and gave no reason"),
    ],
)
def test_an_nccl_that_does_not_start_fails_with_its_own_words(
    machine: Machine, reduces: str, measured: str
) -> None:
    torch(machine, reduces=reduces)
    found, failed = failures(machine)
    assert failed == ["torch.1rank-allreduce"]
    assert found["torch.1rank-allreduce"].measured == measured
    assert list((machine.root / "tmp").iterdir()) == []


def test_a_sum_that_is_wrong_fails(machine: Machine) -> None:
    torch(machine, reduces="tensor.count = 0")
    found, failed = failures(machine)
    assert failed == ["torch.1rank-allreduce"]
    said = "the sum of 1024 ones over one rank is 0.0"
    assert found["torch.1rank-allreduce"].measured == said


def test_without_a_gpu_both_rest(machine: Machine) -> None:
    (machine.root / "sys/bus/pci/devices/0000:3b:00.0/class").unlink()
    found = machine.findings("torch")
    live = [found[name] for name in ("torch.arch", "torch.1rank-allreduce")]
    assert [(one.outcome, one.reason) for one in live] == [(SKIPPED, "no-gpu-hw")] * 2


def test_devices_that_compute_right_pass(machine: Machine) -> None:
    found, failed = failures(machine)
    assert failed == []
    assert found["torch.kernel"].measured == "right on cpu, cuda:0"


def test_a_gpu_that_computes_wrong_is_drained(machine: Machine) -> None:
    torch(machine, kernel="32640.0 if self.count and device_is_cpu(self) else 1.0")
    text = (machine.site / "torch/__init__.py").read_text()
    text = text.replace("self.count = count\n    def reshape", "self.device = device; "
                        "self.count = count\n    def reshape")  # fmt: skip
    text += "\ndef device_is_cpu(one):\n    return one.device == 'cpu'\n"
    write(machine.site, "torch/__init__.py", text)
    found, failed = failures(machine)
    assert failed == ["torch.kernel"]
    one = found["torch.kernel"]
    assert one.measured == "1.0 on cuda:0, the sum has to be 32640.0"
    assert (one.cause, one.action) == ("the GPU computes wrong", "drain")


def test_words_of_pytorch_are_shown_where_it_does_not_compute(machine: Machine) -> None:
    torch(machine, kernel="(_ for _ in ()).throw(RuntimeError('CUDA error: unspecified'))")
    found, failed = failures(machine)
    assert failed == ["torch.kernel"]
    assert found["torch.kernel"].measured.startswith("CUDA error: unspecified on cpu")


def test_a_preflight_imports_pytorch_once(machine: Machine) -> None:
    log = machine.root / "imports"
    home = machine.site / "torch/__init__.py"
    home.write_text(home.read_text() + f"\nopen({str(log)!r}, 'a').write('once ')\n")
    write(machine.site, "horovod/__init__.py", "raise ImportError('built for another torch')\n")
    machine.preflight = True
    found, failed = failures(machine)
    assert failed == []
    assert log.read_text() == "once "
    for name in ("torch.import", "torch.nccl", "torch.arch", "torch.kernel"):
        assert found[name].outcome == PASSED, found[name]
    assert found["torch.1rank-allreduce"].measured == "sum 1024 of 1024 ones"
    assert "ddp.init" not in found


def driver(root: Path, version: str) -> None:
    text = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue May 7\n"
    write(root, "/proc/driver/nvidia/version", text)


@pytest.mark.parametrize(
    ("version", "outcome"),
    [("550.54.14", PASSED), ("535.104.05", WARNED), ("470.57.02", FAILED), ("", SKIPPED)],
)
def test_the_driver_has_to_serve_the_cuda_of_pytorch(
    machine: Machine, version: str, outcome: str
) -> None:
    if version:
        driver(machine.root, version)
    one = machine.findings("torch")["torch.driver"]
    assert one.outcome == outcome
    if outcome == FAILED:
        assert one.measured == "PyTorch is built for CUDA 12.4, the driver is 470.57.02"
        assert "550.54.14 or later" in one.remedy


def test_the_driver_of_the_toolkit_is_judged_once(machine: Machine) -> None:
    driver(machine.root, "470.57.02")
    machine.promise("cuda", "12.4.1")
    assert machine.findings("torch")["torch.driver"].reason == "not-applicable"
