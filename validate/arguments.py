"""Define the command line of `validate`."""

import argparse
import sys
from typing import Any, List, NoReturn

from validate.benchmark import options as benchmark_options
from validate.expected import DEFAULT_PATH
from validate.network import options as network_options
from validate.report.report import EXIT_USAGE
from validate.requirements import PROFILES


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SystemExit(misused(message, "see `validate --help`"))


def misused(text: str, hint: str) -> int:
    """Say what is wrong with the usage, and one action; return the exit code."""
    sys.stderr.write("error: {}\n\nhint: {}\n".format(text, hint))
    return EXIT_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="validate", description="Is this container fit to train?")
    what = parser.add_argument_group("what to check")
    add = what.add_argument
    tier = what.add_mutually_exclusive_group().add_argument
    tier("--static", action="store_true", help="only what needs no device and no running service")
    gate = "before a job: what is worth its start, on one screen; the last line is for a scheduler"
    tier("--preflight", action="store_true", help=gate)
    add("--only", metavar="SUITES", help="comma-separated, see --list")
    must = "what must not be skipped: gpu,rdma,…; gpu=8: so many GPUs"
    add("--require", metavar="THINGS", default="", help=must)
    add(
        "--profile",
        choices=sorted(PROFILES),
        default="",
        help="what it was launched for: requires that",
    )
    add("--suite", metavar="DIR", action="append", default=[], help="test_*.py of your own too")
    add("--peers", metavar="HOSTS", default="", help="the other containers of the job too: a,b")
    add("--loopback", action="store_true", help="move data through each RDMA port too")
    add("--expect", metavar="FILE", default=DEFAULT_PATH, help="expectation file (%(default)s)")
    add("--root", metavar="DIR", default="/", help="look at a tree of files instead of /")
    where = "check others from here: docker://NAME,kubectl://POD,ssh://HOST"
    add("--hosts", metavar="SPECS", default="", help=where)
    add("--bring", action="store_true", help="to --hosts: our checks, also where there are some")
    out = parser.add_argument_group("what to write")
    out.add_argument("--json", metavar="FILE", help="JSON; - is stdout, then without the table")
    out.add_argument("--junit", metavar="FILE", help="JUnit XML")
    out.add_argument("--markdown", metavar="FILE", help="a page for a ticket")
    tell = parser.add_argument_group("what there is")
    tell.add_argument("--list", action="store_true", help="every check, one line each")
    tell.add_argument("--explain", metavar="ID", help="all about one check")
    tell.add_argument("--infer", action="store_true", help="an expectation file of what is here")
    tell.add_argument("--catalogue", action="store_true", help="all about all checks, as Markdown")
    benchmark_options.add(parser)
    network_options.add_network(parser)
    return parser


def parsed(argv: List[str]) -> Any:
    """Parse the command line. Raises SystemExit if it is not valid."""
    return _parser().parse_args(argv)
