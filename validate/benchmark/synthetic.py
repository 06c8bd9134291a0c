"""Train a model on random images to measure speed, with Horovod if it is asked for.

This script runs in the image's own Python, under mpirun, and needs only torch (and horovod). It
prints the same lines as Horovod's pytorch_synthetic_benchmark.py, so that numbers and parsers of
that script can be used.
"""

import argparse
import sys
import timeit
from typing import Any, Iterator, List

import torch
from torch import nn

CLASSES = 1000
BLOCKS = (3, 4, 6, 3)
"""Number of bottlenecks in each of the four stages of a ResNet-50 (He et al. 2015, table 1)."""


class Bottleneck(nn.Module):  # type: ignore[misc]  # torch is not there when types are checked
    """Apply 1x1, 3x3 and 1x1 convolutions beside a shortcut; 4 * `width` channels go out."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            *_convolution(channels, width, 1, 1),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(width, out, 1, 1),
        )
        straight = stride == 1 and channels == out
        self.shortcut = nn.Sequential(*([] if straight else _convolution(channels, out, 1, stride)))
        self.last = nn.ReLU(inplace=True)

    def forward(self, images: Any) -> Any:
        """Return the output of the block for a batch of images."""
        return self.last(self.body(images) + self.shortcut(images))


def _convolution(channels: int, out: int, kernel: int, stride: int) -> List[nn.Module]:
    convolution = nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(out)]


def _bottlenecks() -> Iterator[nn.Module]:
    channels = 64
    for stage, count in enumerate(BLOCKS):
        width = 64 << stage
        for block in range(count):
            yield Bottleneck(channels, width, 2 if stage and not block else 1)
            channels = 4 * width


def resnet50() -> nn.Module:
    """Build a ResNet-50: 25.6 million parameters, images of 224 x 224."""
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, CLASSES)]
    stem = [*_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *_bottlenecks(), *head)


def small() -> nn.Module:
    """Build two convolutions and a classifier.

    It takes seconds on a laptop, and calls every library that a large model calls.
    """
    body = [*_convolution(3, 16, 7, 4), nn.ReLU(inplace=True), *_convolution(16, 32, 3, 4)]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, CLASSES))


MODELS = {"resnet50": resnet50, "small": small}


class Alone:
    """Stand in for Horovod when there is one rank and no Horovod."""

    def rank(self) -> int:
        """Return 0, the only rank."""
        return 0

    def size(self) -> int:
        """Return 1, the number of ranks."""
        return 1

    def local_rank(self) -> int:
        """Return 0, the only rank on this machine."""
        return 0


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=sorted(MODELS), default="small")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--num-warmup-batches", type=int, default=2)
    parser.add_argument("--num-batches-per-iter", type=int, default=2)
    parser.add_argument("--num-iters", type=int, default=3)
    parser.add_argument("--horovod", action="store_true")
    parser.add_argument(
        "--allreduce", action="store_true", help="first sum rank + 1 over all ranks"
    )
    parser.add_argument("--no-cuda", action="store_true")
    return parser.parse_args()


def communicator(with_horovod: bool) -> Any:
    """Return Horovod, initialised, or a stand-in for one rank."""
    if not with_horovod:
        return Alone()
    import horovod.torch as hvd

    hvd.init()
    return hvd


def say(text: str) -> None:
    """Print a line in one write, so that the lines of several ranks do not mix."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def allreduce(comm: Any) -> None:
    """Sum rank + 1 over all ranks and print the sum on every rank."""
    total = comm.allreduce(torch.tensor([comm.rank() + 1.0]), op=comm.Sum, name="imagegen.sum")
    say("Allreduce: rank %d of %d sum %.1f" % (comm.rank(), comm.size(), float(total[0])))


class Training:
    """Hold a model and its data on one device."""

    def __init__(self, args: argparse.Namespace, comm: Any, cuda: bool) -> None:
        self.device = torch.device("cuda", comm.local_rank()) if cuda else torch.device("cpu")
        self.model = MODELS[args.model]().to(self.device)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        if args.horovod:
            named = self.model.named_parameters()
            optimizer = comm.DistributedOptimizer(optimizer, named_parameters=named)
            comm.broadcast_parameters(self.model.state_dict(), root_rank=0)
            comm.broadcast_optimizer_state(optimizer, root_rank=0)
        self.optimizer = optimizer
        self.images = torch.randn(args.batch_size, 3, 224, 224).to(self.device)
        self.labels = (torch.rand(args.batch_size) * CLASSES).long().to(self.device)

    def step(self) -> None:
        """Train on one batch, forward and back, and wait for the device."""
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(self.images), self.labels)
        loss.backward()
        self.optimizer.step()
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def main() -> None:
    """Run the benchmark and print the images per second."""
    args = arguments()
    comm = communicator(args.horovod)
    if args.allreduce:
        allreduce(comm)
    cuda = not args.no_cuda and torch.cuda.is_available()
    device = "GPU" if cuda else "CPU"
    log = say if comm.rank() == 0 else (lambda _: None)
    training = Training(args, comm, cuda)
    log("Model: %s" % args.model)
    log("Batch size: %d" % args.batch_size)
    log("Number of %ss: %d" % (device, comm.size()))
    log("Running warmup...")
    timeit.timeit(training.step, number=args.num_warmup_batches)
    log("Running benchmark...")
    speeds = []
    for number in range(args.num_iters):
        seconds = timeit.timeit(training.step, number=args.num_batches_per_iter)
        speeds.append(args.batch_size * args.num_batches_per_iter / seconds)
        log("Iter #%d: %.1f img/sec per %s" % (number, speeds[-1], device))
    mean = sum(speeds) / len(speeds)
    # 1.96 standard deviations of the iterations, as Horovod's script has it
    spread = 1.96 * (sum((speed - mean) ** 2 for speed in speeds) / len(speeds)) ** 0.5
    log("Img/sec per %s: %.1f +-%.1f" % (device, mean, spread))
    total = (comm.size(), device, comm.size() * mean, comm.size() * spread)
    log("Total img/sec on %d %s(s): %.1f +-%.1f" % total)


if __name__ == "__main__":
    main()
