"""Check PyTorch with CUDA: its NCCL, its cuDNN, kernels for the GPU, and a real allreduce."""

from typing import Any, List, NoReturn

from validate.check import check, fail, skip
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes import cuda
from validate.probes.aside import unset
from validate.probes.interpreter import IMPORT_SECONDS, Answer, ask, find_python
from validate.probes.python_start import why_not
from validate.probes.torch_scripts import (
    ALLREDUCE,
    ANSWERS,
    DEVICES,
    KERNEL,
    KERNEL_SUM,
    LIBRARIES,
)
from validate.probes.training import torch_and_horovod
from validate.remedy import Remedy, in_image, on_host, only_look


def _ask(image: Situation, script: str) -> Answer:
    """Ask PyTorch once in a run; in a preflight it has answered where it was imported first."""
    shared = torch_and_horovod(image).more if image.preflight else {}
    if any(name in shared for name in ANSWERS[script]):
        return Answer(shared, "")
    python = find_python(image.env, image.expected)
    found: Answer = image.once(script, lambda: ask(python, script, image.env, IMPORT_SECONDS))
    return found


def _libraries(image: Situation) -> Any:
    if image.expected.device != "gpu" or image.expected.fact("torch", "device") == "cpu":
        skip("not-in-recipe", "PyTorch is built for CPUs")
    answer = _ask(image, LIBRARIES)
    if not answer.ok:
        fail(answer.problem, *why_not(image, answer, LIBRARIES))
    return answer.facts


@check(
    "torch.nccl",
    "PyTorch was built with NCCL, of the version that the recipe names",
    cause="a build for CPUs, or another build than the recipe's, was installed",
    remedy=in_image(
        "imagegen build", look="python3 -c 'import torch; print(torch.cuda.nccl.version())'"
    ),
    needs=("torch.import", "torch.cuda-build"),
)
def test_nccl(image: Situation, measure: Measure) -> None:
    """torch.distributed.is_nccl_available(), torch.cuda.nccl.version()"""
    facts = _libraries(image)
    version, problem = facts["nccl"]
    measure("NCCL {}".format(version or problem or "not built in"))
    if not facts["nccl_there"]:
        fail("torch.distributed has no NCCL")
    promised = [str(image.expected.fact("torch", "nccl") or "")]
    promised += [image.expected.version("nccl")] if image.expected.has("nccl") else []
    promised = [one for one in promised if one]
    if version and promised and not any(same_version(one, str(version)) for one in promised):
        text = "PyTorch uses NCCL {}, the recipe says {}"
        fail(text.format(version, " or ".join(promised)))


@check(
    "torch.cudnn",
    "PyTorch finds a cuDNN that it was compiled for",
    cause="LD_LIBRARY_PATH or the loader's cache leads to an older cuDNN than the wheel's own",
    remedy=in_image("imagegen build", look="ldconfig -p | grep libcudnn; echo $LD_LIBRARY_PATH"),
    needs=("torch.import", "torch.cuda-build"),
)
def test_cudnn(image: Situation, measure: Measure) -> None:
    """torch.backends.cudnn.version(), which raises an error if the cuDNN at run time is older than
    the one that PyTorch was compiled for"""
    version, problem = _libraries(image)["cudnn"]
    measure("cuDNN {}".format(version or "none"))
    if "ncompatib" in problem:
        older = image.env.get("LD_LIBRARY_PATH", "") and unset(["LD_LIBRARY_PATH"])
        fail(problem, remedy=older or Remedy())
    if not version:
        if problem and not cuda.gpus(image.root):
            skip("no-gpu-hw", problem)
        fail(problem or "PyTorch was built without cuDNN")


@check(
    "torch.arch",
    "PyTorch has kernels for the GPUs of this machine",
    tier="live",
    cause=(
        "the build is older than the GPU, or so new that it leaves it out: `no kernel image is "
        "available` at the first operation"
    ),
    remedy=in_image("imagegen request torch=… cuda=… gpu=…   # a PyTorch that knows the GPU"),
    needs=("torch.import", "torch.cuda-build", "gpu.nodes", "gpu.count", "cuda.init"),
)
def test_arch(image: Situation, measure: Measure) -> None:
    """torch.cuda.get_device_capability() of each GPU against torch.cuda.get_arch_list(): its own
    sm_, one of the same major release, or a compute_ (PTX) that is not newer"""
    _require_gpu(image)
    answer = _ask(image, DEVICES)
    if not answer.ok:
        fail(answer.problem)
    arches = [str(name) for name in answer.facts["arches"]]
    capabilities = sorted({tuple(one) for one in answer.facts["capabilities"]})
    measure("{} for {}".format(" ".join(arches), ", ".join("sm_%d%d" % c for c in capabilities)))
    if not capabilities:
        cause = "no GPU was passed, or the driver is older than PyTorch's CUDA asks for"
        fail("PyTorch sees no GPU", cause, cuda.PASS_GPUS)
    lost = ["sm_%d%d" % one for one in capabilities if not runs_on(arches, one[0], one[1])]
    if lost:
        fail("PyTorch has {}, the GPU is {}".format(" ".join(arches), ", ".join(lost)))


def runs_on(arches: Any, major: int, minor: int) -> bool:
    """Return whether a build for these architectures has code for a GPU of this compute capability.

    CUDA C++ programming guide: a cubin runs within its major release on the same or a newer minor
    one, PTX on the same or any newer.
    """
    for name in arches:
        kind, _, digits = name.partition("_")
        digits = "".join(char for char in digits if char.isdigit())
        here = (int(digits[:-1]), int(digits[-1]))
        if kind == "sm" and here[0] == major and here[1] <= minor:
            return True
        if kind == "compute" and here <= (major, minor):
            return True
    return False


def _require_gpu(image: Situation) -> None:
    if image.expected.device != "gpu":
        skip("not-in-recipe", "the image is for {}".format(image.expected.device))
    if not cuda.gpus(image.root) and not cuda.nodes(image.root):
        skip("no-gpu-hw", "the host has no NVIDIA GPU")


@check(
    "torch.kernel",
    "PyTorch computes, and computes right, on each device of this container",
    tier="live",
    cause="a library that computes is broken, or a GPU computes wrong",
    remedy=only_look("validate --only gpu,cuda,torch"),
    needs=("torch.import",),
)
def test_kernel(image: Situation, measure: Measure) -> None:
    """a product of two matrices on the CPU and on each GPU that PyTorch sees, of which the sum is
    known"""
    answer = _ask(image, KERNEL)
    if not answer.ok:
        fail(answer.problem, *why_not(image, answer, KERNEL))
    devices = [str(one) for one, _ in answer.facts["kernel"]]
    measure("right on {}".format(", ".join(devices)))
    for device, found in answer.facts["kernel"]:
        if found != KERNEL_SUM:
            _wrong(str(device), found)


def _wrong(device: str, found: Any) -> NoReturn:
    if "no kernel image" in str(found):
        skip("blocked-by", "torch.arch")
    text = "{} on {}, the sum has to be {}".format(found, device, KERNEL_SUM)
    if isinstance(found, str) or device == "cpu":
        fail(text)
    fail(text, "the GPU computes wrong", on_host("replace the GPU", look="nvidia-smi -q"))


@check(
    "torch.1rank-allreduce",
    "NCCL starts under PyTorch and reduces on a GPU",
    tier="live",
    cause="NCCL does not start: its own words say why",
    remedy=only_look("NCCL_DEBUG=INFO validate --only torch"),
    needs=("torch.nccl", "torch.arch", "cuda.malloc"),
)
def test_allreduce(image: Situation, measure: Measure) -> None:
    """init_process_group("nccl", file store, rank 0 of 1), all_reduce of 1024 ones on cuda:0"""
    _require_gpu(image)
    answer = _ask(image, ALLREDUCE)
    if not answer.ok:
        fail(answer.problem)
    problem = answer.facts.get("problem")
    if problem is not None:
        fail(_last_words(problem))
    measure("sum {:.0f} of 1024 ones".format(answer.facts["sum"]))
    if answer.facts["sum"] != 1024:
        fail("the sum of 1024 ones over one rank is {}".format(answer.facts["sum"]))


def _last_words(lines: List[str]) -> str:
    """Return NCCL's own message from the lines of an error of PyTorch.

    It is the last line, if there is one after `Last error:`.
    """
    messages = [line for line in lines if line and not line.endswith(":")]
    return messages[-1] if messages else "NCCL did not start, and gave no reason"
