"""Define the options of `validate --benchmark`."""

import argparse

VIAS = ("auto", "horovod", "lightcc", "ddp")
"""What joins the ranks; `auto` takes what the image has, in this order: LightCC, Horovod, DDP."""
LENGTHS = ("quick", "reference")
FRAMEWORKS = ("auto", "torch", "tensorflow")
"""What trains; `auto` takes what the image has, PyTorch first."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser of `validate`."""
    group = parser.add_argument_group("benchmark")
    group.add_argument("--benchmark", action="store_true", help="run the synthetic benchmark too")
    group.add_argument("--ranks", type=_positive, default=1, help="how many (%(default)s)")
    joins = "what joins them: Horovod, LightCC, or DDP of PyTorch (%(default)s)"
    group.add_argument("--via", choices=VIAS, default="auto", help=joins)
    trains = "what trains (%(default)s)"
    group.add_argument("--framework", choices=FRAMEWORKS, default="auto", help=trains)
    models = "resnet50, vgg16, small, or one of torchvision or Keras (%(default)s)"
    group.add_argument("--model", metavar="NAME", default="small", help=models)
    group.add_argument("--batch-size", type=_positive, default=8, help="of a rank (%(default)s)")
    long = "reference: 10 + 10 x 10 batches, as Horovod's own script (%(default)s)"
    group.add_argument("--length", choices=LENGTHS, default="quick", help=long)
    group.add_argument("--num-iters", type=_positive, help="in place of the length's own")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("`{}` is not a number from 1 on".format(text))
    return int(text)
