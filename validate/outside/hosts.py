"""Run `validate --hosts`: the same checks in other containers and machines, through testinfra.

A container that has `validate` runs its own. To any other the checks are sent with a Python of
their own, and removed afterwards: this also works for an image whose Python is too old.
"""

import io
import json
import os
import sys
import tarfile
from typing import Any, Dict, List, Tuple

from validate.expected import DEFAULT_PATH
from validate.outside import bundle
from validate.outside.remote import Remote, RemoteError, joined
from validate.report.files import save_all
from validate.report.json_document import REPORT_SCHEMA, from_data
from validate.report.report import EXIT_USAGE, Report, summary, unmet
from validate.report.table import as_table

RUN_SECONDS = 1800.0
OWN, BROUGHT = "its own validate", "checks brought along"
FOLDER = "/tmp/imagegen-validate-{}"
FORWARDED = (
    *("--only", "--require", "--profile", "--peers", "--root"),
    *("--ranks", "--model", "--batch-size", "--num-iters"),
)
FLAGS = ("--static", "--preflight", "--loopback", "--benchmark")


def forwarded(arguments: Any) -> List[str]:
    """Return the options of the command line that apply on the other side."""
    words: List[str] = []
    for option in FORWARDED:
        value = getattr(arguments, option.lstrip("-").replace("-", "_"))
        words += [option, str(value)] if value not in (None, "") else []
    return words + [f for f in FLAGS if getattr(arguments, f.lstrip("-"))]


class Visit:
    """Run the checks in one container, then clean up: `with Visit(...) as v: v.document()`."""

    def __init__(self, spec: str, arguments: Any) -> None:
        self._arguments = arguments
        self._remote = Remote(spec)
        self._folder = FOLDER.format(os.getpid())
        self.how = OWN

    def __enter__(self) -> "Visit":
        result = self._remote.run("mkdir -p {0} && chmod 0700 {0}".format(self._folder))
        if not result.ok:
            text = "`{}` cannot be reached: {}"
            raise RemoteError(text.format(self._remote.spec, result.last()))
        return self

    def __exit__(self, *_: object) -> None:
        self._remote.run("rm -rf {}".format(self._folder))

    def document(self) -> Dict[str, Any]:
        """Run the checks and return their JSON report. Raises RemoteError if there is none."""
        words = self._program() + forwarded(self._arguments) + self._files() + ["--json", "-"]
        limit = int(RUN_SECONDS)
        result = self._remote.run("timeout {} {}".format(limit, joined(words)), limit + 30)
        try:
            found = json.loads(result.out[result.out.index("{") :])
        except ValueError:
            error = [line for line in result.err.splitlines() if line.startswith("error: ")]
            text = error[0][7:] if error else result.last()
            raise RemoteError("`{}`: {}".format(self._remote.spec, text)) from None
        if "error: " in result.err:
            sys.stderr.write(result.err)
        head = {"host": self._remote.spec, "how": self.how}
        return dict(head, **found)

    def _program(self) -> List[str]:
        there = self._remote.run("command -v validate > /dev/null && validate --list > /dev/null")
        if there.ok and not self._arguments.bring:
            return ["validate"]
        self.how = BROUGHT
        self._remote.put(self._folder + "/bundle.tar.gz", bundle.archive(self._folder))
        self._remote.run_or_raise(bundle.INSTALL.format(folder=self._folder))
        return [self._folder + "/bin/python", "-I", "-B", self._folder + "/start.py"]

    def _files(self) -> List[str]:
        """Copy the expectation file and the user's suites; return the options for the copies."""
        words: List[str] = []
        if self._arguments.expect != DEFAULT_PATH:
            with open(self._arguments.expect, "rb") as file:
                self._remote.put(self._folder + "/image.json", file.read())
            words += ["--expect", self._folder + "/image.json"]
        for number, folder in enumerate(self._arguments.suite):
            target = "{}/suites-{}".format(self._folder, number)
            self._remote.run_or_raise("mkdir -p {}".format(target))
            self._remote.put(target + "/a.tar.gz", _packed(folder))
            self._remote.run_or_raise("cd {} && tar xzf a.tar.gz && rm a.tar.gz".format(target))
            words += ["--suite", target]
        return words


def _packed(folder: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                tar.add(os.path.join(folder, name), name)
    return buffer.getvalue()


def check_hosts(arguments: Any) -> int:
    """Check each host, write the reports, and return the largest exit code."""
    specs = [spec.strip() for spec in arguments.hosts.split(",") if spec.strip()]
    documents, problems = visits(specs, arguments)
    for problem in problems:
        sys.stderr.write("error: {}\n".format(problem))
    if problems:
        sys.stderr.write("\nhint: {}\n".format(HINT))
    code = max([int(one["exit_code"]) for one in documents] + [EXIT_USAGE if problems else 0])
    if not specs:
        sys.stderr.write("error: `--hosts` names no host\n\nhint: {}\n".format(HINT))
        return EXIT_USAGE
    document = {"schema": REPORT_SCHEMA, "exit_code": code, "hosts": documents}
    reports = [from_data(one) for one in documents]
    try:
        save_all(arguments, json.dumps(document, indent=2, sort_keys=True) + "\n", *reports)
    except OSError as error:
        text = "error: cannot write `{}`: {}\n\nhint: name another file\n"
        sys.stderr.write(text.format(error.filename, error.strerror))
        return EXIT_USAGE
    if "-" not in (arguments.json, arguments.junit, arguments.markdown):
        for number, report in enumerate(reports):
            sys.stdout.write("{host} ({how})\n\n".format(**documents[number]))
            sys.stdout.write(as_table(report, False) + "\n\n")
            for line in unmet(report):
                sys.stdout.write(line + "\n")
            sys.stdout.write(_not_from_outside(report) + summary(report) + "\n\n")
    return code


HINT = (
    "docker://NAME, podman://NAME, kubectl://POD?namespace=NAME or ssh://USER@HOST:PORT; "
    "`--expect FILE` where the host does not say what to expect"
)


def visits(specs: List[str], arguments: Any) -> Tuple[List[Dict[str, Any]], List[str]]:
    """Return the reports of the hosts that gave one, and the problems of the others."""
    documents, problems = [], []
    for spec in specs:
        try:
            with Visit(spec, arguments) as visit:
                documents.append(visit.document())
        except (RemoteError, OSError) as error:
            problems.append(str(error))
    return documents, problems


def _not_from_outside(report: Report) -> str:
    """Name the checks that cannot run from outside in one line; empty if all ran."""
    kept = [
        one.check.id for one in report.results if one.reason in ("not-from-outside", "needs-root")
    ]
    return "could not run from outside: {}\n".format(", ".join(kept)) if kept else ""
