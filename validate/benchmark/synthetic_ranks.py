"""Make the ranks of the synthetic benchmark one job: through Horovod or torch.distributed.

LightCC is a Horovod with more settings: it has the same modules. Without a launcher there is one
rank. `torchrun` and `mpirun` tell a rank its number by variables.
"""

import datetime
import glob
import os
import sys
from importlib import util
from typing import Any, Tuple

import synthetic_rendezvous
import torch

AUTO, HOROVOD, LIGHTCC, DDP = "auto", "horovod", "lightcc", "ddp"
VIAS = (AUTO, HOROVOD, LIGHTCC, DDP)

RANK_AND_SIZE = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
)
"""Variables of torchrun, then of Open MPI: number of the rank, how many, number on this host."""
RANKS_HERE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")
"""Variables of the same two that say how many ranks this host has."""
MINUTES = 5
"""How long a rank waits for the others."""


def place() -> Tuple[int, int, int]:
    """Return the number of this rank, how many there are, and its number on this host."""
    for rank, size, local in RANK_AND_SIZE:
        if rank in os.environ and size in os.environ:
            here = os.environ.get(local, os.environ[rank])
            return int(os.environ[rank]), int(os.environ[size]), int(here)
    return 0, 1, 0


def share_processors() -> None:
    """Let each rank of this host use its part of the processors, if nobody says how many."""
    here = next((int(os.environ[name]) for name in RANKS_HERE if name in os.environ), 1)
    if "OMP_NUM_THREADS" not in os.environ and here > 1:
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // here))


def with_horovod() -> bool:
    """Return whether a Horovod is installed that was compiled for PyTorch."""
    found = util.find_spec("horovod")
    folders = list(found.submodule_search_locations or []) if found else []
    return any(glob.glob(os.path.join(one, "torch", "mpi_lib*")) for one in folders)


def join(via: str, cuda: bool) -> Any:
    """Join the other ranks, and return what the benchmark calls to work with them."""
    if via == AUTO:
        via = HOROVOD if with_horovod() and "TORCHELASTIC_RUN_ID" not in os.environ else DDP
    if via in (HOROVOD, LIGHTCC):
        return Horovod()
    rank, size, local = place()
    return Distributed(rank, size, local, cuda) if size > 1 else Alone()


class Alone:
    """Train in one rank, without anything that joins several."""

    rank, size, local_rank = 0, 1, 0

    def wrap(self, model: Any, optimizer: Any, *_: bool) -> Tuple[Any, Any]:
        """Return the model and the optimizer as they are: there is nobody to agree with."""
        return model, optimizer

    def sum(self, value: float) -> float:
        """Return the sum over all ranks."""
        return value

    def leave(self) -> None:
        """Leave the job."""


class Horovod:
    """Train through Horovod, which finds the other ranks by MPI or by `horovodrun`."""

    def __init__(self) -> None:
        import horovod.torch as hvd

        hvd.init()
        self._hvd = hvd
        self.rank, self.size, self.local_rank = hvd.rank(), hvd.size(), hvd.local_rank()

    def wrap(self, model: Any, optimizer: Any, fp16: bool, adasum: bool) -> Tuple[Any, Any]:
        """Return the model, and an optimizer that averages the gradients of all ranks."""
        hvd = self._hvd
        more = {"op": hvd.Adasum} if adasum else {}
        compression = hvd.Compression.fp16 if fp16 else hvd.Compression.none
        named = model.named_parameters()
        wrapped = hvd.DistributedOptimizer(
            optimizer, named_parameters=named, compression=compression, **more
        )
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(wrapped, root_rank=0)
        return model, wrapped

    def sum(self, value: float) -> float:
        """Return the sum over all ranks."""
        hvd = self._hvd
        return float(hvd.allreduce(torch.tensor([value]), op=hvd.Sum, name="imagegen.sum")[0])

    def leave(self) -> None:
        """Leave the job, when all ranks are done."""
        self._hvd.shutdown()


class Distributed:
    """Train through torch.distributed: NCCL between GPUs, gloo between processors."""

    def __init__(self, rank: int, size: int, local_rank: int, cuda: bool) -> None:
        from torch import distributed

        if not distributed.is_available():
            sys.exit("PyTorch was built without torch.distributed")
        self.rank, self.size, self.local_rank = rank, size, local_rank
        self._distributed = distributed
        self._device = torch.device("cuda", local_rank) if cuda else torch.device("cpu")
        if cuda:
            torch.cuda.set_device(local_rank)
        os.environ.update(synthetic_rendezvous.variables(rank, size))
        nccl = cuda and distributed.is_nccl_available()
        distributed.init_process_group(
            "nccl" if nccl else "gloo",
            init_method="env://",
            rank=rank,
            world_size=size,
            timeout=datetime.timedelta(minutes=MINUTES),
        )

    def wrap(self, model: Any, optimizer: Any, fp16: bool, adasum: bool) -> Tuple[Any, Any]:
        """Return a model that averages the gradients of all ranks, and the optimizer."""
        if adasum:
            sys.exit("torch.distributed has no Adasum: --use-adasum goes with --via horovod")
        ids = [self.local_rank] if self._device.type == "cuda" else None
        wrapped = torch.nn.parallel.DistributedDataParallel(
            model, device_ids=ids, broadcast_buffers=False
        )
        if fp16:
            from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

            wrapped.register_comm_hook(None, default_hooks.fp16_compress_hook)
        return wrapped, optimizer

    def sum(self, value: float) -> float:
        """Return the sum over all ranks."""
        total = torch.tensor([value]).to(self._device)
        self._distributed.all_reduce(total)
        return float(total[0])

    def leave(self) -> None:
        """Leave the job, when all ranks are done."""
        self._distributed.barrier()
        self._distributed.destroy_process_group()
