"""Add up the numbers of all ranks over gloo: rank r gives r + 1.

It needs only torch, and the variables that `torchrun` sets for each rank.
"""

import sys

import torch
from torch import distributed


def main() -> None:
    """Make the group of all ranks, and write what this rank got in one line."""
    if not distributed.is_available():
        sys.exit("PyTorch was built without torch.distributed")
    distributed.init_process_group("gloo", init_method="env://")
    rank, size = distributed.get_rank(), distributed.get_world_size()
    total = torch.ones(1) * (rank + 1)
    distributed.all_reduce(total)
    line = "ddp rank {} of {} sum {:g} torch {}\n"
    sys.stdout.write(line.format(rank, size, float(total), torch.__file__))
    sys.stdout.flush()
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
