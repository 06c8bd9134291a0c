"""Time all_reduce over a list of sizes in one rank, as nccl-tests does, and check every sum.

This file is sent to other hosts as text: it needs only the standard library of Python 3.6, and
torch where PyTorch moves the data.
"""

import ctypes
import json
import os
import sys
import time
from array import array
from typing import Any, Dict, Iterator, List, Sequence

MARK = "imagegen-network "
"""What each line for the program that started us begins with: libraries print other lines."""

PERIOD = 251
CHUNK = PERIOD * 4096
"""Elements that are compared at once; a multiple of PERIOD, so that all chunks are alike."""
MIB = 1 << 20
MOST_ITERATIONS, MOST_SMALL_ITERATIONS = 20, 120
BATCHES = 3
"""The best of so many means counts: a machine has moments in which it does something else."""
OPERATIONS_A_SIZE = 3 + BATCHES
"""The fewest operations of a size: one to warm up, one to choose, the batches, one to check."""


def share(rank: int, turn: int) -> List[int]:
    """Return what a rank gives in a turn: a pattern that differs from that of every other rank.

    Sums of these stay exact in a float up to 60,000 ranks.
    """
    return [(place + 31 * rank + 7 * turn) % PERIOD for place in range(PERIOD)]


def wanted(world: int, turn: int) -> List[int]:
    """Return the sum over all ranks."""
    shares = [share(rank, turn) for rank in range(world)]
    return [sum(one[place] for one in shares) for place in range(PERIOD)]


class Torch:
    """Move data with a process group of PyTorch: NCCL on a GPU, gloo on the processor."""

    def __init__(self, spec: Dict[str, Any], rank: int, device: int) -> None:
        import torch
        from torch import distributed

        self._torch, self._distributed = torch, distributed
        self._device = "cuda:{}".format(device) if spec["via"] == "nccl" else "cpu"
        if spec["via"] == "nccl":
            torch.cuda.set_device(device)
        from datetime import timedelta

        distributed.init_process_group(
            spec["via"],
            init_method="tcp://{}:{}".format(spec["address"], spec["port"]),
            rank=rank,
            world_size=spec["world"],
            timeout=timedelta(seconds=spec["limit"]),
        )

    def buffer(self, count: int) -> Any:
        """Return so many floats, all 0."""
        return self._torch.zeros(count, dtype=self._torch.float32, device=self._device)

    def reduce(self, buffer: Any) -> None:
        """Add the buffer up over all ranks."""
        self._distributed.all_reduce(buffer)

    def wait(self) -> None:
        """Wait until everything that was started has ended."""
        if self._device != "cpu":
            self._torch.cuda.synchronize()

    def told(self, number: float) -> float:
        """Return the number of rank 0."""
        said = self._torch.tensor([number], dtype=self._torch.float64, device=self._device)
        self._distributed.broadcast(said, 0)
        return float(said.item())

    def fill(self, buffer: Any, pattern: List[int]) -> None:
        """Write a pattern over the whole buffer."""
        chunk = self._chunk(buffer, pattern)
        for start in range(0, buffer.numel(), CHUNK):
            part = buffer[start : start + CHUNK]
            part.copy_(chunk[: part.numel()])

    def wrong(self, buffer: Any, pattern: List[int]) -> int:
        """Count the elements that differ from a pattern."""
        chunk, count = self._chunk(buffer, pattern), 0
        for start in range(0, buffer.numel(), CHUNK):
            part = buffer[start : start + CHUNK]
            count += int(part.ne(chunk[: part.numel()]).sum().item())
        return count

    def _chunk(self, buffer: Any, pattern: List[int]) -> Any:
        tile = self._torch.tensor(pattern, dtype=self._torch.float32)
        times = min(CHUNK, buffer.numel()) // PERIOD + 1
        return tile.repeat(times).to(self._device)

    def end(self) -> None:
        """Wait for the other ranks, so that none ends while another still needs it."""
        self.told(0.0)
        self.wait()


class Mpi:
    """Move data with MPI_Allreduce of Open MPI, between buffers in the memory of the processor."""

    def __init__(self, library: str) -> None:
        self._lib = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        self._float, self._double = self._handle("mpi_float"), self._handle("mpi_double")
        self._sum = self._handle("mpi_op_sum")
        self._world = self._handle("mpi_comm_world")
        self._lib.MPI_Init(None, None)
        self.rank, self.world = self._asked("MPI_Comm_rank"), self._asked("MPI_Comm_size")

    def _handle(self, name: str) -> Any:
        there = ctypes.c_char.in_dll(self._lib, "ompi_" + name)
        return ctypes.c_void_p(ctypes.addressof(there))

    def _asked(self, function: str) -> int:
        number = ctypes.c_int()
        getattr(self._lib, function)(self._world, ctypes.byref(number))
        return number.value

    def buffer(self, count: int) -> Any:
        """Return so many floats, all 0."""
        return array("f", bytes(4 * count))

    def reduce(self, buffer: Any) -> None:
        """Add the buffer up over all ranks."""
        place = ctypes.c_void_p(buffer.buffer_info()[0])
        count, in_place = ctypes.c_int(len(buffer)), ctypes.c_void_p(1)
        self._lib.MPI_Allreduce(in_place, place, count, self._float, self._sum, self._world)

    def wait(self) -> None:
        """Do nothing: MPI_Allreduce has ended when it returns."""

    def told(self, number: float) -> float:
        """Return the number of rank 0."""
        said = ctypes.c_double(number)
        zero, one = ctypes.c_int(0), ctypes.c_int(1)
        self._lib.MPI_Bcast(ctypes.byref(said), one, self._double, zero, self._world)
        return said.value

    def fill(self, buffer: Any, pattern: List[int]) -> None:
        """Write a pattern over the whole buffer."""
        view, chunk = memoryview(buffer), memoryview(_repeated(pattern, len(buffer)))
        for start in range(0, len(buffer), CHUNK):
            part = view[start : start + CHUNK]
            part[:] = chunk[: len(part)]

    def wrong(self, buffer: Any, pattern: List[int]) -> int:
        """Count the elements that differ from a pattern."""
        view, chunk, count = memoryview(buffer), _repeated(pattern, len(buffer)), 0
        for start in range(0, len(buffer), CHUNK):
            part = view[start : start + CHUNK]
            right = chunk[: len(part)]
            if part.tobytes() != right.tobytes():
                count += sum(1 for place, one in enumerate(part) if one != right[place])
        return count

    def end(self) -> None:
        """Leave the job."""
        self._lib.MPI_Finalize()


def _repeated(pattern: List[int], length: int) -> "array[float]":
    return array("f", pattern) * (min(CHUNK, length) // PERIOD + 1)


def measured_rows(
    transport: Any, rank: int, world: int, sizes: Sequence[int], pace: Sequence[float]
) -> Iterator[Dict[str, Any]]:
    """Measure each size: bytes, seconds of one all_reduce, and how many elements were wrong.

    `pace` are the seconds of the whole sweep and of one size. A size that would not end within
    those of the sweep is left out, with all after it. Rank 0 decides that, and how often a size is
    repeated.
    """
    end = time.monotonic() + pace[0]
    for turn, size in enumerate(sizes):
        buffer = transport.buffer(max(size // 4, 1))
        took = _timed(transport, buffer, 1)
        took = _timed(transport, buffer, 1)
        iterations = int(transport.told(_iterations(size, took, pace[1])))
        took = min(_timed(transport, buffer, iterations) for _ in range(BATCHES))
        transport.fill(buffer, share(rank, turn))
        transport.reduce(buffer)
        transport.wait()
        wrong = transport.wrong(buffer, wanted(world, turn))
        yield {"size": size, "seconds": took, "wrong": wrong}
        more = sizes[turn + 1 : turn + 2]
        predicted = OPERATIONS_A_SIZE * took * more[0] / size if more else 0.0
        if transport.told(float(time.monotonic() + predicted > end)) and more:
            yield {"left_out": list(sizes[turn + 1 :])}
            return


def _timed(transport: Any, buffer: Any, iterations: int) -> float:
    transport.told(0.0)
    transport.wait()
    started = time.perf_counter()
    for _ in range(iterations):
        transport.reduce(buffer)
    transport.wait()
    return (time.perf_counter() - started) / iterations


def _iterations(size: int, took: float, seconds: float) -> int:
    most = MOST_ITERATIONS if size >= MIB else MOST_SMALL_ITERATIONS
    return max(1, min(most, int(seconds / max(took, 1e-9))) // BATCHES)


def put(row: Dict[str, Any]) -> None:
    """Write a row as one line, in one piece: other ranks write to the same file."""
    os.write(1, ("\n" + MARK + json.dumps(row) + "\n").encode())


def main(library: str, sizes: Sequence[int], pace: Sequence[float]) -> None:
    """Measure as a rank of mpirun."""
    transport = Mpi(library)
    for row in measured_rows(transport, transport.rank, transport.world, sizes, pace):
        put(dict(row, rank=transport.rank, world=transport.world))
    transport.end()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]))
