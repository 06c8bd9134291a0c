"""Define the options of `validate --benchmark`."""

import argparse

MODELS = ("resnet50", "small")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser of `validate`."""
    group = parser.add_argument_group("benchmark")
    group.add_argument("--benchmark", action="store_true", help="run the synthetic benchmark too")
    group.add_argument("--ranks", type=_positive, default=1, help="MPI ranks (%(default)s)")
    group.add_argument("--model", choices=MODELS, default="small", help="(%(default)s)")
    group.add_argument("--batch-size", type=_positive, default=8, help="of a rank (%(default)s)")
    group.add_argument("--num-iters", type=_positive, default=3, help="(%(default)s)")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("`{}` is not a number from 1 on".format(text))
    return int(text)
