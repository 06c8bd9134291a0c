"""Read the command line of `validate` and run what it asks for.

Exit codes: 0 all passed, 1 something failed, 2 bad usage or no usable expectation file, 3 a
required thing did not run or nothing ran at all, 130 interrupted.
"""

import contextlib
import difflib
import os
import signal
import sys
import time
from typing import Any, Dict, Iterator, List

from validate import catalogue, process
from validate.arguments import misused, parsed
from validate.benchmark.run import run_benchmark
from validate.catalogue import ALIASES, BENCHMARK, ON_REQUEST
from validate.expectation import expectation, in_its_words, put_inferred
from validate.expected import ExpectationError, Expected
from validate.network import command as network
from validate.probes.entrypoint import await_start
from validate.probes.kubernetes import in_pod
from validate.pytest_run import run_suites
from validate.report import listing
from validate.report.files import save_all
from validate.report.json_document import as_json
from validate.report.report import (
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    PREFLIGHT,
    Report,
    exit_code,
)
from validate.report.screen import as_screen
from validate.report.table import as_page
from validate.requirements import not_run, parse_required, required_by_profile
from validate.run_options import RunOptions
from validate.streams import open_missing, put_out

REBUILD = "`imagegen build` builds the image again, with the checks that belong to it"


def main(argv: List[str]) -> int:
    """Run `validate` with these arguments and return the exit code."""
    open_missing()
    try:
        arguments = parsed(argv)
    except SystemExit as end:
        return int(end.code or 0) if not isinstance(end.code, str) else EXIT_USAGE
    try:
        if arguments.list or arguments.explain or arguments.catalogue:
            return _tell(arguments)
        if arguments.hosts:
            from validate.outside import hosts  # testinfra loads slowly

            with _asked_to_end():
                return hosts.check_hosts(arguments)
        with _asked_to_end():
            return put_inferred(arguments.root) if arguments.infer else _main(arguments)
    except network.Refused as error:
        return misused(error.text, error.hint)
    except KeyboardInterrupt:
        process.end_all()
        sys.stderr.write("error: interrupted\n")
        return EXIT_INTERRUPTED


@contextlib.contextmanager
def _asked_to_end() -> Iterator[None]:
    """End a run on SIGTERM and SIGHUP as on Ctrl-C.

    SIGTERM comes from `timeout` and `kubectl delete`, SIGHUP when the terminal closes. Without this
    the commands that the run started would go on, because they have sessions of their own.
    """

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = [(number, signal.signal(number, end)) for number in (signal.SIGTERM, signal.SIGHUP)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _main(arguments: Any) -> int:
    try:
        expected = expectation(arguments.expect, arguments.root)
    except ExpectationError as error:
        return misused(str(error), "`validate --infer > image.json` writes one of what is here")
    problem = catalogue.problem_with_suites(expected)
    if problem:
        return misused("{}: {}".format(arguments.expect, problem), REBUILD)
    try:
        must = parse_required(arguments.require).names
    except ValueError as error:
        return misused(str(error), "validate --require gpu=8,rdma")
    try:
        own = _own_suites(arguments.suite)
        known = [*catalogue.suite_names(), *own]
        _known(must, [*known, *ON_REQUEST])
        network.refuse_contradictions(arguments)
        suites = _chosen(arguments, expected, known)
    except ValueError as error:
        return misused(str(error), "`validate --list` shows all of them")
    return _run(arguments, expected, suites, own)


def _tell(arguments: Any) -> int:
    if arguments.catalogue:
        sys.stdout.write(listing.page())
        return 0
    lines = listing.one_line_each() if arguments.list else listing.explanation(arguments.explain)
    if not lines:
        text = "there is no check `{}`".format(arguments.explain)
        return misused(text, "`validate --list` shows all of them")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _own_suites(folders: List[str]) -> Dict[str, str]:
    """Map the suites in the user's folders to their files.

    Raises ValueError for a folder without suites, or for a name that is already used.
    """
    found: Dict[str, str] = {}
    for folder in folders:
        try:
            files = sorted(os.listdir(folder))
        except OSError as error:
            text = "cannot read `{}`: {}".format(folder, (error.strerror or "").lower())
            raise ValueError(text) from None
        files = [f for f in files if f.startswith("test_") and f.endswith(".py")]
        if not files:
            raise ValueError("there is no test_*.py in `{}`".format(folder))
        for file in files:
            name = catalogue.suite_of(file[:-3])
            if name in found or name in catalogue.suite_names():
                raise ValueError("`{}`: there is a suite `{}` already".format(file, name))
            found[name] = os.path.join(os.path.abspath(folder), file)
    return found


def _chosen(arguments: Any, expected: Expected, known: List[str]) -> List[str]:
    """Choose the suites to run. `--only benchmark` runs the benchmark and nothing else."""
    own = known[len(catalogue.suite_names()) :]
    if arguments.only is None and network.asked(arguments):
        return own
    if arguments.only is None:
        pod, peers = in_pod(arguments.root, dict(os.environ)), bool(_names(arguments.peers))
        wanted = _known(parse_required(arguments.require).names, [*known, *ON_REQUEST])
        chosen = catalogue.chosen_by_default(expected, pod, peers)
        return [name for name in known if name in chosen or name in own or name in wanted]
    asked = _known(_names(arguments.only), [*known, *ON_REQUEST])
    if not asked:
        raise ValueError("`--only` names no suite")
    arguments.benchmark = arguments.benchmark or BENCHMARK in asked
    network.asked_as_suite(arguments, asked)
    return [name for name in known if name in asked]


def _known(asked: List[str], known: List[str]) -> List[str]:
    """Replace aliases by the names of suites.

    Raises ValueError for an unknown name, with the most similar known one.
    """
    names = [ALIASES.get(name, name) for name in asked]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *ALIASES], 1)
            meant = "did you mean `{}`? ".format(near[0]) if near else ""
            text = "there is no suite `{}`; {}there are: {}"
            raise ValueError(text.format(name, meant, ", ".join(known)))
    return names


def _run(arguments: Any, expected: Expected, suites: List[str], own: Dict[str, str]) -> int:
    await_start(arguments.root)
    started = time.time()
    if arguments.profile:
        expected = expected._replace(data=dict(expected.data, profile=arguments.profile))
    names, gpus = parse_required(arguments.require)
    options = RunOptions(
        static=arguments.static,
        loopback=arguments.loopback,
        profile=arguments.profile,
        peers=_names(arguments.peers),
        own=own,
        gpus=gpus,
        preflight=arguments.preflight,
    )
    results, unloaded = run_suites(suites, expected, arguments.root, options)
    results = [in_its_words(one, expected) for one in results]
    if arguments.benchmark:
        results += run_benchmark(arguments, expected)
    figures = network.add_results(arguments, expected, results)
    for text in unloaded:
        sys.stderr.write("error: a suite does not load: {}\n".format(text))
    if arguments.only is None and not arguments.static:
        names = names + required_by_profile(arguments.profile, expected)
    missing = not_run(list(dict.fromkeys(names)), results)
    report = Report(
        image=str(expected.data.get("image", "")),
        tool=str(expected.data.get("tool", "")),
        tier="static" if arguments.static else PREFLIGHT if arguments.preflight else "full",
        results=results,
        missing=missing,
        seconds=time.time() - started,
        exit_code=exit_code(results, missing, unloaded),
        unloaded=tuple(unloaded),
        figures=figures,
    )
    return _write(arguments, report)


def _names(text: str) -> List[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _write(arguments: Any, report: Report) -> int:
    """Write the files and the table; a file that cannot be written does not take the table away."""
    unwritten = ""
    try:
        save_all(arguments, as_json(report), report)
    except OSError as error:
        unwritten = "cannot write `{}`: {}".format(error.filename, error.strerror)
    if "-" not in (arguments.json, arguments.markdown, arguments.junit):
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        text = as_screen(report, colour) if arguments.preflight else as_page(report, colour)
        problem = put_out([text])
        if problem:
            return misused("cannot write the table: {}".format(problem), "validate --json FILE")
    return misused(unwritten, "name another file") if unwritten else report.exit_code
