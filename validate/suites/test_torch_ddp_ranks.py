"""Check what ranks of PyTorch exchange, and which backends its build has for that."""

from typing import Dict, List

from validate.check import check, fail, skip
from validate.fixtures import Measure, Situation
from validate.probes import collectives
from validate.probes.collectives import GLOO, NCCL
from validate.probes.process_group import by_torchrun, has_torchrun
from validate.probes.training import torch_and_horovod
from validate.remedy import in_image

BACKENDS: Dict[str, str] = {
    GLOO: "ranks without GPUs, and the barriers of many programs, have nothing to meet by",
    NCCL: "ranks exchange gradients between GPUs through gloo and the host's memory, if at all",
}
LOOK = "python3 -c 'import torch; print(torch.__config__.show())'"


def _backends(image: Situation) -> List[str]:
    answer = torch_and_horovod(image).torch
    return [str(one) for one in answer.facts.get("backends", ())]


@check(
    "ddp.backend",
    "this PyTorch was built with the backends that its ranks need: gloo, and NCCL for GPUs",
    tier="live",
    cause="torch.distributed, or this backend of it, was left out when this PyTorch was built",
    remedy=in_image("imagegen build   # on a build of PyTorch that has it", look=LOOK),
    needs=("torch.import", "ddp.init"),
)
def test_backend(image: Situation, measure: Measure) -> None:
    """torch.distributed.is_gloo_available(), is_nccl_available(), is_mpi_available() and
    is_ucc_available()"""
    found = _backends(image)
    measure(", ".join(found) or "none")
    needed = [GLOO, NCCL] if image.expected.device == "gpu" else [GLOO]
    for one in needed:
        if one not in found:
            text = "no {}, it has {}".format(one, ", ".join(found) or "no backend at all")
            fail(text, "this PyTorch was built without it: " + BACKENDS[one])


@check(
    "ddp.2rank",
    "what ranks exchange through torch.distributed is right: sums, copies, gathered and scattered",
    tier="live",
    cause="the backend, or something put in front of it, gives ranks wrong numbers",
    remedy=in_image(
        "imagegen build   # on a build of PyTorch that adds up rightly",
        look="python3 -c 'import torch.distributed as d; print(d.__file__, d.all_reduce)'",
    ),
    needs=("torch.import", "ddp.init", "ddp.backend", "mpi.2rank", "os.tmp"),
)
def test_2rank(image: Situation, measure: Measure) -> None:
    """all_reduce, broadcast, all_gather and reduce_scatter of float32, float64, int64, int32,
    uint8, int8, float16 and bfloat16, 1 to 262144 elements each compared, an all_reduce of 32 MiB,
    and the gradients of DistributedDataParallel, in two ranks of mpirun (torchrun where there is no
    Open MPI) over gloo; over NCCL too, with a GPU for each rank; 100 s each"""
    version = str(torch_and_horovod(image).torch.facts.get("version", ""))
    if not image.expected.has("openmpi") and not has_torchrun(version):
        skip("not-applicable", "no Open MPI, and torchrun came with PyTorch 1.10")
    said = []
    for backend, ranks in _exchanges(image).items():
        found = collectives.on_this_host(image, backend, ranks)
        if found.problem:
            _not_reported(image, version, found.problem)
            fail("{}: {}".format(backend, found.problem))
        said.append(found.measured)
        measure("; ".join(said))


def _not_reported(image: Situation, version: str, problem: str) -> None:
    """Skip if the ranks of torchrun did not meet either: ddp.torchrun says why."""
    wrong = collectives.WRONG.search(problem)
    if not wrong and has_torchrun(version) and not by_torchrun(image).ok:
        skip("blocked-by", "ddp.torchrun")


def _exchanges(image: Situation) -> Dict[str, int]:
    """Map backends to numbers of ranks. NCCL takes one rank on a GPU."""
    gpus = int(torch_and_horovod(image).torch.facts.get("gpus", 0))
    over_nccl = {NCCL: min(2, gpus)} if gpus and NCCL in _backends(image) else {}
    return {GLOO: 2, **over_nccl}
