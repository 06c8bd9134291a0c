"""`imagegen validate` starts images, runs `validate` in each, and keeps the results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imagegen.catalog.proofs import add_proofs
from imagegen.catalog.reader import read_catalog
from imagegen.config.payload import open_payload, shown
from imagegen.config.state import state_folder
from imagegen.engine import client
from imagegen.errors import ConfigError, NothingSelectedError, ValidationError
from imagegen.journal.journal import open_journal
from imagegen.journal.run import journal_run
from imagegen.validation.export import export
from imagegen.validation.failures import validation_failures
from imagegen.validation.in_container import FULL_SECONDS, ValidationRequest, infer
from imagegen.validation.outside import failures, validate_hosts
from imagegen.validation.proving import TIERS, proof_of_image
from imagegen.validation.reports import Files, of_problem, of_record, save
from imagegen.validation.reuse import validate_open
from imagegen.validation.soft_roce import BOOT_SECONDS, validate_on_soft_roce
from imagegen.workflow.project import Project, select

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagegen.console.console import Console
    from imagegen.engine.client import Engine
    from imagegen.errors import Problem
    from imagegen.journal.journal import Journal
    from imagegen.model.validation import ValidationRecord


@dataclass(frozen=True)
class ValidateOptions:
    """The options of the command line, with the same names."""

    images: tuple[str, ...] = ()
    matrix: str | None = None
    static: bool = False
    only: str | None = None
    require: str | None = None
    profile: str | None = None
    loopback: bool = False
    expect: str | None = None
    hosts: str | None = None
    benchmark: bool = False
    ranks: int | None = None
    via: str | None = None
    model: str | None = None
    length: str | None = None
    soft_roce: bool = False
    timeout: float = FULL_SECONDS
    again: bool = False
    prove: bool = False
    json_file: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    overlay: Path | None = None
    export: Path | None = None
    infer: bool = False

    @property
    def files(self) -> Files:
        """Return the files to write the reports to."""
        return Files(self.json_file, self.junit, self.markdown)

    @property
    def arguments(self) -> tuple[str, ...]:
        """List the arguments of `validate` in the image, as far as they were given."""
        valued = {"--only": self.only, "--require": self.require, "--profile": self.profile}
        valued["--ranks"] = str(self.ranks) if self.ranks else None
        valued |= {"--via": self.via, "--model": self.model, "--length": self.length}
        flags = {"--benchmark": self.benchmark, "--loopback": self.loopback}
        given = [part for name, value in valued.items() if value for part in (name, value)]
        return (*given, *(name for name, wanted in flags.items() if wanted))

    @property
    def request(self) -> ValidationRequest:
        """Return what to run in each image."""
        expect = self.expect or ""
        return ValidationRequest(self.static, self.arguments, timeout=self.timeout, expect=expect)


@dataclass(frozen=True)
class Judged:
    """The result of one image: a report with its record, or why `validate` could not run in it."""

    reference: str
    report: Mapping[str, Any]
    record: ValidationRecord | None = None
    problems: tuple[Problem, ...] = ()


def validate(options: ValidateOptions, console: Console) -> None:
    """Validate images, or containers that are running already.

    Raises ValidationError with a problem for each that did not pass.
    """
    options.files.must_have_folders()
    _check_prove(options)
    if options.export is not None:
        payload = open_payload(options.overlay)
        export(options.export, payload, read_catalog(payload), console.line)
    elif options.infer:
        found = [infer(client.connect(), reference) for reference in _references(options)]
        console.line("\n".join(found).rstrip())
        console.data([json.loads(text) for text in found])
    elif options.hosts is not None:
        _validate_running(options.hosts, options, console)
    else:
        _validate_images(options, console)


def _validate_running(hosts: str, options: ValidateOptions, console: Console) -> None:
    expect = ["--expect", options.expect] if options.expect else []
    static = ["--static"] if options.static else []
    reports = validate_hosts(hosts, [*options.arguments, *expect, *static], console.line)
    save(options.files, reports)
    console.data(reports)
    failed = failures(reports)
    if failed is not None:
        raise failed


def _validate_images(options: ValidateOptions, console: Console) -> None:
    references = _references(options)
    _check_soft_roce(options)
    engine, journal = client.connect(), open_journal()
    with journal_run(journal, "validate") as run_id:
        judged = _judge_all(engine, references, options, journal, run_id, console)
        console.data([row_of(one.report, one.record) for one in judged])
        if options.prove:
            _prove(engine, [one.record for one in judged if one.record], options, console)
        _raise_failures(judged)


def _prove(
    engine: Engine, records: Sequence[ValidationRecord], options: ValidateOptions, console: Console
) -> None:
    """Write what passed and what failed into the files of proofs."""
    proofs = [proof_of_image(engine, record) for record in records if record.tier in TIERS]
    payload = open_payload(options.overlay)
    for path in add_proofs(payload, options.overlay or Path.cwd(), proofs):
        console.line(f"wrote {shown(path)}")


def _check_prove(options: ValidateOptions) -> None:
    """Raise ConfigError where a run would prove too little, or nothing of an image."""
    if options.prove and (options.hosts or options.request.tier not in TIERS or options.soft_roce):
        text = "`--prove` needs a run of all checks, or of all static ones, in images"
        raise ConfigError.of(text, hint="leave out `--hosts`, `--only` and `--soft-roce`")


def _references(options: ValidateOptions) -> list[str]:
    """List the images to validate.

    A cell stands for its image; a name that is no cell is taken as an image reference.
    """
    if not options.images and options.matrix is None:
        raise ConfigError.of("no image named", hint="imagegen validate IMAGE, or --matrix NAME")
    project = Project(options.overlay)
    if options.matrix is not None:
        return [spec.tag for spec in select(project.family(options.matrix).specs, options.images)]
    specs = [spec for family in project.families() for spec in family.specs]
    references: list[str] = []
    for image in options.images:
        try:
            references += [spec.tag for spec in select(specs, [image])]
        except NothingSelectedError:
            references.append(image)
    return list(dict.fromkeys(references))


def _check_soft_roce(options: ValidateOptions) -> None:
    """Raise ConfigError where other options are given with `--soft-roce`."""
    if options.soft_roce and options.request.argv != ValidationRequest().argv:
        raise ConfigError.of(
            "`--soft-roce` runs suites of its own choice", hint="leave the other options out"
        )


def _judge_all(
    engine: Engine,
    references: Sequence[str],
    options: ValidateOptions,
    journal: Journal,
    run_id: int,
    console: Console,
) -> list[Judged]:
    """Validate every image, even after one that `validate` could not run in, and write the reports.

    If an error ends the run early, such as an engine that died, the reports so far are written.
    """
    judged: list[Judged] = []
    try:
        for reference in references:
            console.line(f"validate {reference}")
            try:
                record = _judge(engine, reference, options, journal, console)
            except ValidationError as error:
                report = of_problem(reference, error.problems[0])
                judged.append(Judged(reference, report, problems=error.problems))
            else:
                journal.add_validation(run_id, record)
                judged.append(Judged(reference, of_record(record), record))
    finally:
        save(options.files, [one.report for one in judged])
    return judged


def _judge(
    engine: Engine, reference: str, options: ValidateOptions, journal: Journal, console: Console
) -> ValidationRecord:
    """Boot the image with an RDMA device, or start it for the suites that have not passed yet."""
    request, say = options.request, console.line
    if options.soft_roce:
        seconds = min(int(request.timeout), BOOT_SECONDS)
        return validate_on_soft_roce(engine, reference, state_folder() / "guest", seconds, say)
    past = journal.validations
    return validate_open(engine, reference, request, past, say, again=options.again)


def row_of(report: Mapping[str, Any], record: ValidationRecord | None) -> dict[str, object]:
    """Write the result of an image for programs; without a record, `validate` could not run."""
    return {
        "image": report["image"],
        "id": record.image_id if record else "",
        "tier": record.tier if record else report["tier"],
        "passed": record is not None and record.passed,
        "counts": dict(report["counts"]),
        "seconds": round(record.seconds if record else 0.0, 1),
        "report": dict(report),
    }


def _raise_failures(judged: Sequence[Judged]) -> None:
    """Raise ValidationError where an image did not pass, or `validate` could not run in it."""
    problems = [problem for one in judged for problem in one.problems]
    failed = validation_failures({one.reference: one.record for one in judged if one.record})
    problems += failed.problems if failed else ()
    if problems:
        raise ValidationError(*problems)
