"""Define the checks that `validate --benchmark` makes."""

from typing import Tuple

from validate.check import Check
from validate.remedy import Remedy, at_launch, only_look

SUITE = "benchmark"

PROBES = {
    "run": "`mpirun -np N … python -u synthetic.py --via horovod|lightcc|ddp` with the flags of a "
    "real launch, or torchrun where there is no Open MPI; 1500 s, four hours with --length "
    "reference",
    "allreduce": "hvd.allreduce or torch.distributed.all_reduce of rank + 1 on every rank, before "
    "training: n (n + 1) / 2",
    "parse": "`Iter #N: X img/sec per GPU` and `Total img/sec on N GPU(s): X +-Y` are printed",
    "once": "exactly one `Total img/sec` line, over as many ranks as were started",
    "device": "`Number of GPUs: N` and the device in every line, against that of the image",
    "stability": "standard deviation of the iterations over their mean, below 10 %",
    "net": "`Using network X` in NCCL's log of the same run (NCCL_DEBUG=INFO): IB in profile rdma, "
    "the plugin in profile harp",
}


def _check(id_: str, proves: str, cause: str, remedy: Remedy, needs: Tuple[str, ...] = ()) -> Check:
    severity = "warn" if id_ == "stability" else "fail"
    return Check("bench." + id_, proves, severity, "live", cause, remedy, needs, PROBES[id_])


ALLREDUCE = _check(
    "allreduce",
    "every rank is in one job, and a real allreduce gives the right sum on each",
    "Horovod and mpirun speak different MPIs, so each rank believes it is alone, or a library adds "
    "up wrongly",
    only_look("validate --only horovod,torch,mpi   # hvd.link, ddp.2rank and mpi.single say more"),
    ("bench.run",),
)
RUN = _check(
    "run",
    "the synthetic benchmark trains in all ranks and ends well",
    "training crashed or hung; its last lines say where",
    only_look("validate   # the other checks name the cause"),
)
PARSE = _check(
    "parse",
    "the benchmark prints its iterations and its total",
    "the run ended before its end, or something swallowed the output of rank 0",
    only_look("validate --benchmark --ranks 1 --model small   # shows what is printed"),
    ("bench.run",),
)
ONCE = _check(
    "once",
    "there is one total, over all ranks",
    "each rank believes it is rank 0 of 1 and trains on its own",
    only_look("validate --only horovod,torch   # hvd.size, ddp.2rank"),
    ("bench.run", "bench.parse"),
)
DEVICE = _check(
    "device",
    "training ran on the kind of device that the image is for",
    "PyTorch sees no GPU and went on without a word, or the image is for CPUs",
    at_launch("docker run --gpus all IMAGE"),
    ("bench.run", "bench.parse"),
)
STABILITY = _check(
    "stability",
    "iterations take about the same time",
    "other work on the machine, heat, or a GPU that changes its clocks",
    only_look("nvidia-smi -q -d PERFORMANCE   # and what else runs on the machine"),
    ("bench.run", "bench.parse"),
)
NET = _check(
    "net",
    "NCCL uses the network that the profile is for",
    "NCCL fell back to another network, which is silent at its usual log level",
    only_look("validate --only nccl,rdma,plugin,harp   # says which part does not fit"),
    ("bench.run",),
)
CHECKS = (RUN, ALLREDUCE, PARSE, ONCE, STABILITY, NET, DEVICE)
