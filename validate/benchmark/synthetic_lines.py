"""Measure and print what Horovod's synthetic benchmarks print, whatever trains."""

import argparse
import sys
from typing import Any, Callable

LENGTHS = {
    "quick": {"num_warmup_batches": 2, "num_batches_per_iter": 2, "num_iters": 3},
    "reference": {"num_warmup_batches": 10, "num_batches_per_iter": 10, "num_iters": 10},
}
"""How much is trained; `reference` is what Horovod's scripts do."""


def add_length(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how much is trained."""
    add = parser.add_argument
    add("--length", choices=sorted(LENGTHS), default="reference", help="sets the next three")
    add("--num-warmup-batches", type=int)
    add("--num-batches-per-iter", type=int)
    add("--num-iters", type=int)


def fill_length(found: argparse.Namespace) -> None:
    """Fill in what only `--length` says."""
    for name, usual in LENGTHS[found.length].items():
        if getattr(found, name) is None:
            setattr(found, name, usual)


def say(text: str) -> None:
    """Print a line in one write, so that the lines of several ranks do not mix."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def say_sum(comm: Any) -> None:
    """Sum rank + 1 over all ranks, and print the sum on every rank."""
    say("Allreduce: rank %d of %d sum %.1f" % (comm.rank, comm.size, comm.sum(comm.rank + 1.0)))


def measure(
    args: argparse.Namespace, comm: Any, device: str, seconds: Callable[[int], float]
) -> None:
    """Train, and print the images per second in rank 0.

    `seconds` trains on some batches and returns how long it took; `comm` is the job.
    """
    log = say if comm.rank == 0 else (lambda _: None)
    log("Model: %s" % args.model)
    log("Batch size: %d" % args.batch_size)
    log("Number of %ss: %d" % (device, comm.size))
    log("Running warmup...")
    seconds(args.num_warmup_batches)
    log("Running benchmark...")
    speeds = []
    for number in range(args.num_iters):
        taken = seconds(args.num_batches_per_iter)
        speeds.append(args.batch_size * args.num_batches_per_iter / taken)
        log("Iter #%d: %.1f img/sec per %s" % (number, speeds[-1], device))
    mean = sum(speeds) / len(speeds)
    # 1.96 standard deviations of the iterations, as Horovod's script has it
    spread = 1.96 * (sum((speed - mean) ** 2 for speed in speeds) / len(speeds)) ** 0.5
    log("Img/sec per %s: %.1f +-%.1f" % (device, mean, spread))
    total = (comm.size, device, comm.size * mean, comm.size * spread)
    log("Total img/sec on %d %s(s): %.1f +-%.1f" % total)
