"""Do every collective of torch.distributed with numbers that are known, and say which are wrong.

It needs only torch. The variables are those of `torchrun`, or those of Open MPI with MASTER_ADDR
and MASTER_PORT. Arguments: the backend, and the largest number of elements. Each rank prints one
line. The results are compared as numbers of Python: what is broken in PyTorch does not judge
itself.
"""

import datetime
import json
import os
import sys
from typing import Any, List, Tuple

import torch
from torch import distributed

SECONDS = 30
"""How long a rank waits for the others in one collective."""
DTYPES = ("float32", "float64", "int64", "int32", "uint8", "int8", "float16", "bfloat16")
"""Types of elements that ranks exchange in training; the last two are not in every backend."""
NARROW = {"int8": 100, "bfloat16": 200, "float16": 1600}
"""Types that hold small numbers alone, and for how many ranks they hold the sums here."""
KINDS = [one for one in DTYPES if hasattr(torch, one)]
MAY_LACK = ("float16", "bfloat16")
SIZES = (1, 7, 1021, 65537, 1 << 18)
"""Numbers of elements, small and large: backends choose other algorithms for large messages."""
BLOCK, BLOCKS = 65535, 128
"""The largest sum is of so many blocks of float32: 32 MiB, more than DDP puts in one message."""
MAY_LACK_COLLECTIVES = ("reduce_scatter",)
"""Collectives that gloo does not have in every release."""
LACKS = ("not support", "unsupported", "not implemented", "invalid scalar type", "not been built")
NEW_NAME = hasattr(distributed, "reduce_scatter_tensor")
MOST_SAID = 4


def own_place() -> Tuple[int, int, int]:
    """Return the number of this rank, how many there are, and its number on this host."""
    for start in ("", "OMPI_COMM_WORLD_"):
        if start + "RANK" in os.environ:
            names = ("RANK", "SIZE" if start else "WORLD_SIZE", "LOCAL_RANK")
            rank, size, local = (os.environ.get(start + name, "0") for name in names)
            return int(rank), int(size), int(local)
    sys.exit("neither RANK nor OMPI_COMM_WORLD_RANK says which rank this is")


def number(rank: int, index: int, kind: str) -> int:
    """Return what a rank gives at a place: small enough that the type holds the sums of many.

    In narrow types the numbers of six ranks nearly cancel each other out.
    """
    factors = (1, -2, 3, -1, 2, -2) if kind in NARROW else (1, 2, 3)
    return factors[rank % len(factors)] * (index % 5 + 1)


def given(rank: int, size: int, kind: str) -> List[int]:
    """Return what a rank gives, for each place."""
    period = [number(rank, index, kind) for index in range(5)]
    return (period * (size // 5 + 1))[:size]


def total(ranks: int, size: int, kind: str) -> List[int]:
    """Return the sums over all ranks, as the type holds them."""
    period = [sum(number(rank, index, kind) for rank in range(ranks)) for index in range(5)]
    period = [one % 256 for one in period] if kind == "uint8" else period
    return (period * (size // 5 + 1))[:size]


class Rank:
    """Hold this rank, and what it found wrong."""

    def __init__(self, backend: str, rank: int, ranks: int, device: Any) -> None:
        self.backend, self.rank, self.ranks, self.device = backend, rank, ranks, device
        self.wrong = []  # type: List[str]
        self.lacks = []  # type: List[Tuple[str, str]]
        self.done = 0

    def tensor(self, values: List[int], kind: str) -> Any:
        """Return numbers as a tensor of a type."""
        return torch.tensor(values, dtype=getattr(torch, kind)).to(self.device)

    def check(self, name: str, kind: str, size: int) -> bool:
        """Do one collective, and note what is wrong or what the backend lacks.

        Return False if it ended with an error: the ranks may not be at the same place any more.
        """
        label = "{} {} x{}".format(name, kind, size)
        try:
            pairs = COLLECTIVES[name](self, kind, size)
        except Exception as error:
            return self._lacks(name, kind, label, error)
        self.done += 1
        for got, wanted in pairs:
            if got != wanted:
                at = next((i for i, one in enumerate(wanted) if got[i : i + 1] != [one]), 0)
                seen = (got[at : at + 1] or ["nothing"])[0]
                self.wrong.append("{}: {} at {}, not {}".format(label, seen, at, wanted[at]))
                break
        return True

    def _lacks(self, name: str, kind: str, label: str, error: Exception) -> bool:
        """Note an error, and return whether it only says that the backend has no such thing."""
        may = name in MAY_LACK_COLLECTIVES or kind in MAY_LACK
        if may and any(words in str(error).lower() for words in LACKS):
            self.lacks.append((name, kind))
            return True
        said = (str(error).strip().splitlines() or [""])[0]
        self.wrong.append("{}: {}: {}".format(label, type(error).__name__, said))
        return False

    def lacking(self) -> List[str]:
        """Return what the backend has not: a collective in all types, a type, or one of both."""
        names = [name for name in COLLECTIVES if all((name, k) in self.lacks for k in KINDS)]
        kinds = [k for k in KINDS if all((n, k) in self.lacks or n in names for n in COLLECTIVES)]
        rest = ["{} {}".format(n, k) for n, k in self.lacks if n not in names and k not in kinds]
        return names + kinds + rest


Pairs = List[Tuple[List[Any], List[int]]]


def all_reduce(one: Rank, kind: str, size: int) -> Pairs:
    """Add up what all ranks give."""
    mine = one.tensor(given(one.rank, size, kind), kind)
    distributed.all_reduce(mine)
    return [(mine.tolist(), total(one.ranks, size, kind))]


def broadcast(one: Rank, kind: str, size: int) -> Pairs:
    """Give every rank what the first one has, then what the last one has."""
    found = []
    for root in {0, one.ranks - 1}:
        mine = one.tensor(given(one.rank, size, kind), kind)
        distributed.broadcast(mine, root)
        found.append((mine.tolist(), given(root, size, kind)))
    return found


def all_gather(one: Rank, kind: str, size: int) -> Pairs:
    """Give every rank what all ranks have, in their order."""
    parts = [one.tensor([0] * size, kind) for _ in range(one.ranks)]
    distributed.all_gather(parts, one.tensor(given(one.rank, size, kind), kind))
    return [(part.tolist(), given(rank, size, kind)) for rank, part in enumerate(parts)]


def reduce_scatter(one: Rank, kind: str, size: int) -> Pairs:
    """Add up what all ranks give, and leave one part of the sums with each rank."""
    whole = given(one.rank, size * one.ranks, kind)
    parts = [one.tensor(whole[r * size : (r + 1) * size], kind) for r in range(one.ranks)]
    mine = one.tensor([0] * size, kind)
    try:
        distributed.reduce_scatter(mine, parts)
    except RuntimeError:  # gloo has the other form earlier than this one
        name = "reduce_scatter_tensor" if NEW_NAME else "_reduce_scatter_base"
        getattr(distributed, name)(mine, one.tensor(whole, kind))
    wanted = total(one.ranks, size * one.ranks, kind)
    return [(mine.tolist(), wanted[one.rank * size : (one.rank + 1) * size])]


COLLECTIVES = {
    "all_reduce": all_reduce,
    "broadcast": broadcast,
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
}


def gradients(one: Rank) -> None:
    """Note if DistributedDataParallel does not average the gradients of all ranks."""
    model = torch.nn.Linear(3, 1, bias=False).to(one.device)
    ids = [one.device.index] if one.device.type == "cuda" else None
    joined = torch.nn.parallel.DistributedDataParallel(model, device_ids=ids)
    joined(torch.full((1, 3), float(one.rank + 1)).to(one.device)).sum().backward()
    got = model.weight.grad.reshape(-1).tolist()
    wanted = [(one.ranks + 1) / 2.0] * 3
    one.done += 1
    if any(abs(a - wanted[0]) > 1e-6 for a in got):
        text = "DistributedDataParallel: gradients {}, not {}"
        one.wrong.append(text.format(got, wanted))


def exchange(one: Rank, largest: int) -> None:
    """Do everything, in the same order in every rank."""
    kinds = [kind for kind in KINDS if one.ranks <= NARROW.get(kind, one.ranks)]
    asked = ((name, kind, size) for name in COLLECTIVES for kind in kinds for size in SIZES)
    for name, kind, size in asked:
        fits = size <= largest
        if fits and (name, kind) not in one.lacks and not one.check(name, kind, size):
            return
    if largest >= SIZES[-1]:
        sum_of_blocks(one)
    gradients(one)


def sum_of_blocks(one: Rank) -> None:
    """Add up a large message, and note the first block that is wrong: a list of all takes long."""
    whole = one.tensor(given(one.rank, BLOCK, "float32"), "float32").repeat(BLOCKS)
    distributed.all_reduce(whole)
    wanted = total(one.ranks, BLOCK, "float32")
    one.done += 1
    for start in range(0, BLOCK * BLOCKS, BLOCK):
        got = whole[start : start + BLOCK].tolist()
        if got != wanted:
            at = next(i for i in range(BLOCK) if got[i] != wanted[i])
            text = "all_reduce float32 x{}: {} at {}, not {}"
            one.wrong.append(text.format(BLOCK * BLOCKS, got[at], start + at, wanted[at]))
            return


def main() -> None:
    """Make the group of all ranks, exchange, and say in one line what this rank saw."""
    if not distributed.is_available():
        sys.exit("PyTorch was built without torch.distributed")
    backend, largest = sys.argv[1], int(sys.argv[2])
    rank, ranks, local = own_place()
    device = torch.device("cuda", local) if backend == "nccl" else torch.device("cpu")
    if backend == "nccl":
        torch.cuda.set_device(local)
    limit = datetime.timedelta(seconds=SECONDS)
    distributed.init_process_group(
        backend, init_method="env://", rank=rank, world_size=ranks, timeout=limit
    )
    one = Rank(backend, rank, ranks, device)
    exchange(one, largest)
    facts = {"rank": rank, "ranks": distributed.get_world_size(), "done": one.done}
    facts.update(host=os.uname().nodename, wrong=one.wrong[:MOST_SAID], count=len(one.wrong))
    facts.update(lacks=one.lacking(), backend=backend)
    sys.stdout.write("\nddp-collectives {}\n".format(json.dumps(facts, sort_keys=True)))
    sys.stdout.flush()
    if not one.wrong:
        distributed.barrier()
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
