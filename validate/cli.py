"""The command line of `validate`. Exit codes: 0 all passed, 1 something failed, 2 bad usage or no
expectation file, 3 a required thing did not run, or nothing ran at all, 130 interrupted."""

import argparse
import difflib
import importlib
import os
import sys
import time
from typing import Any, Dict, List, NoReturn, Tuple

from validate import report
from validate.benchmark import options as benchmark_options
from validate.check import Check
from validate.expected import DEFAULT_PATH, ExpectationError, Expected, load
from validate.probes.entrypoint import await_start

SUITES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "suites")
ORDER = ("validate", "os", "python", "torch", "openmpi", "ssh", "horovod", "rdma", "limits")
"""What others rest on runs first; a suite that is not named here runs after these, by name."""
ALIASES = {"mpi": "openmpi", "hvd": "horovod", "lim": "limits", "env": "validate", "py": "python"}
FAILED, USAGE, NOT_RUN, INTERRUPTED = 1, 2, 3, 130
BENCHMARK, BENCHMARK_MODULE = "benchmark", "validate.benchmark.run"
DEVICES = ("gpu",)
"""What can be required beside suites; `rdma` is a suite, whose checks look for the device."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SystemExit(_complain(message, "see `validate --help`"))


def _complain(text: str, hint: str) -> int:
    sys.stderr.write("error: {}\n\nhint: {}\n".format(text, hint))
    return USAGE


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="validate", description="Is this container fit to train?")
    add = parser.add_argument
    add("--static", action="store_true", help="only what needs no device and no running service")
    add("--only", metavar="SUITES", help="comma-separated, see --list")
    add("--require", metavar="THINGS", default="", help="what must not be skipped: gpu,rdma,…")
    add(
        "--list", action="store_true", help="every check: id, suite, tier, severity, what it proves"
    )
    add("--explain", metavar="ID", help="all about one check")
    add("--expect", metavar="FILE", default=DEFAULT_PATH, help="expectation file (%(default)s)")
    add("--json", metavar="FILE", help="also write JSON; - is stdout, then without the table")
    add("--junit", metavar="FILE", help="also write JUnit XML")
    add("--root", metavar="DIR", default="/", help="look at a tree of files instead of /")
    benchmark_options.add(parser)
    return parser


def suite_names() -> List[str]:
    """Names of all suites that travel with validate, in the order they run."""
    files = sorted(os.listdir(SUITES))
    found = [f[5:-3] for f in files if f.startswith("test_") and f.endswith(".py")]
    return sorted(found, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def all_checks() -> List[Tuple[str, Check]]:
    """(suite, check) of everything there is, in the order of the files."""
    found = []
    for suite in suite_names():
        module = importlib.import_module("validate.suites.test_" + suite)
        members = [getattr(module, name) for name in dir(module) if name.startswith("test_")]
        members.sort(key=lambda member: member.__code__.co_firstlineno)
        found += [(suite, member.check) for member in members if hasattr(member, "check")]
    return found + [(BENCHMARK, one) for one in importlib.import_module(BENCHMARK_MODULE).CHECKS]


def main(argv: List[str]) -> int:
    """Run; the exit code."""
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0) if not isinstance(end.code, str) else USAGE
    if arguments.list:
        return _list()
    if arguments.explain:
        return _explain(arguments.explain)
    try:
        expected = load(arguments.expect)
    except ExpectationError as error:
        return _complain(
            str(error),
            "run in an image that imagegen built, or name a file: `validate --expect FILE`",
        )
    try:
        _known(_names(arguments.require), [*suite_names(), BENCHMARK, *DEVICES])
        suites = _chosen(arguments, expected)
    except ValueError as error:
        return _complain(str(error), "`validate --list` shows all of them")
    try:
        return _run(arguments, expected, suites)
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        return INTERRUPTED


def _list() -> int:
    rows = [(c.id, suite, c.tier, c.severity, c.proves) for suite, c in all_checks()]
    widths = [max(len(row[i]) for row in rows) for i in range(4)] if rows else []
    for row in rows:
        cells = ["{:<{}}".format(row[i], widths[i]) for i in range(4)]
        sys.stdout.write("  ".join(cells + [row[4]]) + "\n")
    return 0


def _explain(check_id: str) -> int:
    for suite, one in all_checks():
        if one.id == check_id:
            fields = [("proves", one.proves), ("suite", suite), ("tier", one.tier)]
            fields += [("severity", one.severity), ("cause", one.cause), ("remedy", one.remedy)]
            sys.stdout.write(check_id + "\n")
            for name, text in fields:
                sys.stdout.write("  {:<9} {}\n".format(name, text or "depends on what is measured"))
            return 0
    return _complain(
        "there is no check `{}`".format(check_id), "`validate --list` shows all of them"
    )


def _chosen(arguments: Any, expected: Expected) -> List[str]:
    """The suites to run. `--only benchmark` runs the benchmark and nothing else."""
    known = suite_names()
    if arguments.only is None:
        return [name for name in known if name in expected.suites]
    asked = _known(_names(arguments.only), [*known, BENCHMARK])
    if not asked:
        raise ValueError("`--only` names no suite")
    arguments.benchmark = arguments.benchmark or BENCHMARK in asked
    return [name for name in known if name in asked]


def _known(asked: List[str], known: List[str]) -> List[str]:
    """The names of suites without aliases. Raises ValueError with near misses for what is not
    one."""
    names = [ALIASES.get(name, name) for name in asked]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *ALIASES], 1)
            meant = "did you mean `{}`? ".format(near[0]) if near else ""
            text = "there is no suite `{}`; {}there are: {}"
            raise ValueError(text.format(name, meant, ", ".join(known)))
    return names


def _run(arguments: Any, expected: Expected, suites: List[str]) -> int:
    from validate.session import required_but_skipped, run_suites

    await_start(arguments.root)
    started = time.time()
    found, broken = run_suites(suites, expected, arguments.root, arguments.static)
    if arguments.benchmark:
        found += importlib.import_module(BENCHMARK_MODULE).run_benchmark(arguments, expected)
    for text in broken:
        sys.stderr.write("error: a suite does not load: {}\n".format(text))
    missing = required_but_skipped(_names(arguments.require), found)
    outcome = report.Outcome(
        image=str(expected.data.get("image", "")),
        tool=str(expected.data.get("tool", "")),
        tier="static" if arguments.static else "full",
        found=found,
        missing=missing,
        seconds=time.time() - started,
        exit_code=_exit_code(report.counts(found), missing, broken),
    )
    return _write(arguments, outcome)


def _names(text: str) -> List[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _exit_code(number: Dict[str, int], missing: List[str], broken: List[str]) -> int:
    if number["failed"] or number["error"] or broken:
        return FAILED
    executed = number["passed"] + number["warned"]
    return NOT_RUN if missing or not executed else 0


def _write(arguments: Any, outcome: report.Outcome) -> int:
    try:
        if arguments.junit:
            _save(arguments.junit, report.as_junit(outcome))
        if arguments.json:
            _save(arguments.json, report.as_json(outcome))
    except OSError as error:
        return _complain(
            "cannot write `{}`: {}".format(error.filename, error.strerror), "name another file"
        )
    if arguments.json != "-":
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        text = report.table(outcome, colour)
        sys.stdout.write(text + "\n\n" if text else "")
        for name in outcome.missing:
            sys.stdout.write("required, but it did not run: {}\n".format(name))
        if not outcome.found:
            sys.stdout.write("no check ran: that is no pass\n")
        sys.stdout.write(report.summary(outcome) + "\n")
    return outcome.exit_code


def _save(path: str, text: str) -> None:
    """Whole or not at all, except where the path is no file, such as a pipe or /dev/stderr."""
    if path == "-":
        sys.stdout.write(text)
        return
    direct = os.path.exists(path) and not os.path.isfile(path)
    with open(path if direct else path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    if not direct:
        os.rename(path + ".part", path)
