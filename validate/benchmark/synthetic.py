"""Train a model on random images to measure speed, in one rank or in many.

This script runs in the image's own Python, under mpirun, torchrun or alone, and needs only torch;
it uses horovod or torchvision where they are there. Its options and their defaults, and the lines
that it prints, are those of Horovod's pytorch_synthetic_benchmark.py, so that numbers and parsers
of that script can be used. Images have it at /examples and /mnt under that name too.
"""

import argparse
import sys
import timeit
from typing import Any

import synthetic_lines as lines
import synthetic_models as models
import synthetic_ranks as ranks
import torch
from torch import nn


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--model", default="resnet50", help="resnet50, vgg16, small, or a model of torchvision")
    add("--batch-size", type=int, default=32, help="of each rank")
    lines.add_length(parser)
    add("--via", choices=ranks.VIAS, default=ranks.AUTO, help="what joins the ranks")
    add("--horovod", action="store_const", const=ranks.HOROVOD, dest="via", help="--via horovod")
    add("--fp16-allreduce", action="store_true", help="send gradients as float16")
    add("--use-adasum", action="store_true", help="join gradients by Horovod's Adasum")
    add("--allreduce", action="store_true", help="first sum rank + 1 over all ranks")
    add("--no-cuda", action="store_true", help="train on processors")
    found = parser.parse_args()
    lines.fill_length(found)
    return found


class Training:
    """Hold a model and its data on one device."""

    def __init__(self, args: argparse.Namespace, comm: Any, cuda: bool) -> None:
        self.device = torch.device("cuda", comm.local_rank) if cuda else torch.device("cpu")
        model = models.build(args.model).to(self.device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        asked = (args.fp16_allreduce, args.use_adasum)
        self.model, self.optimizer = comm.wrap(model, optimizer, *asked)
        side = models.side_of(args.model)
        self.images = torch.randn(args.batch_size, 3, side, side).to(self.device)
        self.labels = (torch.rand(args.batch_size) * models.CLASSES).long().to(self.device)

    def step(self) -> None:
        """Train on one batch, forward and back."""
        self.optimizer.zero_grad()
        output = models.scores(self.model(self.images))
        loss = nn.functional.cross_entropy(output, self.labels)
        loss.backward()
        self.optimizer.step()

    def seconds(self, batches: int) -> float:
        """Train on some batches, wait for the device, and return how long it took."""
        return timeit.timeit(lambda: self._steps(batches), number=1)

    def _steps(self, batches: int) -> None:
        for _ in range(batches):
            self.step()
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def main() -> None:
    """Join the other ranks, and measure."""
    args = arguments()
    cuda = not args.no_cuda and torch.cuda.is_available()
    torch.backends.cudnn.benchmark = True
    ranks.share_processors()
    comm = ranks.join(args.via, cuda)
    if args.allreduce:
        lines.say_sum(comm)
    try:
        training = Training(args, comm, cuda)
    except models.UnknownModel as error:
        sys.exit("error: {}".format(error))
    lines.measure(args, comm, "GPU" if cuda else "CPU", training.seconds)
    comm.leave()


if __name__ == "__main__":
    main()
