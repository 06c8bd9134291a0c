"""Define the options of `validate --bandwidth` and `validate --find-slow`."""

import argparse
from typing import Any, List

from validate.network.refused import Refused
from validate.network.sizes import sizes_of

TRANSPORTS = ("nccl", "gloo", "mpi")
"""What moves the data, the fastest first."""

DEFAULT_SIZES = "8..128M"


def add_network(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser of `validate`."""
    group = parser.add_argument_group("network: these alone, unless --only names suites too")
    add = group.add_argument
    add("--bandwidth", action="store_true", help="all_reduce over --ranks, or over --peers too")
    add("--find-slow", action="store_true", help="name the host or the link that is slow: --peers")
    sizes = "bytes of the sweep: 8..1G doubles, 1K,1M is a list (%(default)s)"
    add("--sizes", type=_sizes, default=DEFAULT_SIZES, help=sizes)
    over = "what moves the data (%(default)s: the first that all hosts have)"
    add("--over", choices=("auto", *TRANSPORTS), default="auto", help=over)
    add("--reference", metavar="FILE", help="warn of each size that is slower than in FILE")
    add("--save-reference", metavar="FILE", help="keep the sweep as a reference of this machine")


def _sizes(text: str) -> List[int]:
    try:
        return sizes_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def asked(arguments: Any) -> bool:
    """Return whether the network is to be measured."""
    return bool(arguments.bandwidth or arguments.find_slow)


def refuse_contradictions(arguments: Any) -> None:
    """Raise Refused for options that do not fit each other."""
    help_ = "see `validate --help`"
    if arguments.find_slow and not arguments.peers:
        raise Refused("`--find-slow` needs the other hosts", "validate --peers A,B,C --find-slow")
    for name in ("reference", "save_reference"):
        if getattr(arguments, name) and not arguments.bandwidth:
            option = "--" + name.replace("_", "-")
            raise Refused("`{}` belongs to `--bandwidth`".format(option), help_)
    if asked(arguments) and arguments.static:
        raise Refused("`--static` measures no network", "leave one of the two out")
