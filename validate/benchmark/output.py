"""Parse what the benchmark printed, among the other lines of mpirun and NCCL on the same stream."""

import re
from typing import Any, Dict, List, NamedTuple, Tuple

TAG = re.compile(r"^\[\d+,\d+\]<std(?:out|err)>:\s?")
NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
DEVICES = re.compile(r"^Number of (GPU|CPU)s: (\d+)$")
ITERATION = re.compile(r"^Iter #(\d+): " + NUMBER + r" img/sec per (GPU|CPU)$")
TOTAL = re.compile(r"^Total img/sec on (\d+) (GPU|CPU)\(s\): " + NUMBER + r" \+-" + NUMBER + "$")
ALLREDUCE = re.compile(r"^Allreduce: rank (\d+) of (\d+) sum " + NUMBER + "$")


class Total(NamedTuple):
    """Hold a summary line: images per second over all ranks, and 1.96 standard deviations of it."""

    ranks: int
    device: str
    speed: float
    spread: float


class Output(NamedTuple):
    """Hold all lines of interest in the order they were printed, without judging them."""

    devices: List[Tuple[str, int]]
    iterations: List[float]
    totals: List[Total]
    sums: List[Tuple[int, int, float]]

    def as_data(self) -> Dict[str, Any]:
        """Return the images per second as data for the JSON report."""
        totals = [{"ranks": t.ranks, "device": t.device, "speed": t.speed} for t in self.totals]
        return {"iterations": self.iterations, "totals": totals}


def parse(text: str) -> Output:
    """Parse the output of a run, with or without the tags of `mpirun --tag-output`."""
    found = Output([], [], [], [])
    for raw in text.splitlines():
        line = TAG.sub("", raw).strip()
        devices, iteration = DEVICES.match(line), ITERATION.match(line)
        total, summed = TOTAL.match(line), ALLREDUCE.match(line)
        if devices:
            found.devices.append((devices.group(1), int(devices.group(2))))
        if iteration:
            found.iterations.append(float(iteration.group(2)))
        if total:
            ranks, device, speed, spread = total.groups()
            found.totals.append(Total(int(ranks), device, float(speed), float(spread)))
        if summed:
            rank, size, value = summed.groups()
            found.sums.append((int(rank), int(size), float(value)))
    return found
