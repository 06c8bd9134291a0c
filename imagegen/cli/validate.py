"""`imagegen validate IMAGE|CELL`: launch it, run `validate` in it, keep the record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options
from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from imagegen.console.console import Console
    from imagegen.engine.client import Engine
    from imagegen.errors import Problem
    from imagegen.journal.journal import Journal
    from imagegen.model.validation import ValidationRecord
    from imagegen.validation.in_container import ValidationRequest
    from imagegen.validation.reports import Files

PROFILES = ("plain", "cpu", "gpu", "rdma", "harp")
"""Those of validate/catalogue.py."""

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("validate", context_settings={"ignore_unknown_options": False})
@click.argument("images", nargs=-1, metavar="[IMAGE|CELL]...")
@click.option("--matrix", "-m", "matrix", help="every cell of this matrix")
@click.option("--static", is_flag=True, help="only what needs no device and no running service")
@click.option("--only", help="suites, comma-separated")
@click.option("--require", help="what must not be skipped: `rdma,gpu`; `gpu=8`: so many GPUs")
@click.option(
    "--profile", type=click.Choice(PROFILES), help="what it is launched for: requires that"
)
@click.option("--loopback", is_flag=True, help="move data through each RDMA port too")
@click.option("--expect", type=click.Path(exists=True, dir_okay=False), help="with --hosts")
@click.option("--hosts", help="containers that run already: docker://NAME,kubectl://POD,ssh://HOST")
@click.option("--benchmark", is_flag=True, help="the synthetic benchmark too")
@click.option("--ranks", type=click.IntRange(1), help="ranks of the benchmark")
@click.option(
    "--soft-roce",
    is_flag=True,
    help="boot it in QEMU with an RDMA device, run the rdma suite there",
)
@click.option(
    "--timeout", type=float, default=1800.0, show_default=True, help="seconds for an image"
)
@click.option("--again", is_flag=True, help="also what passed in this image on this host")
@click.option("--json", "json_file", type=FILE, help="write the reports as JSON")
@click.option("--junit", type=FILE, help="write JUnit XML, a suite for each image")
@click.option("--markdown", type=FILE, help="write a page for a ticket")
@options.common
def command(
    images: tuple[str, ...],
    matrix: str | None,
    static: bool,
    only: str | None,
    require: str | None,
    profile: str | None,
    loopback: bool,
    expect: str | None,
    hosts: str | None,
    benchmark: bool,
    ranks: int | None,
    soft_roce: bool,
    timeout: float,
    again: bool,
    json_file: Path | None,
    junit: Path | None,
    markdown: Path | None,
    console: Console,
    overlay: Path | None,
) -> None:
    """Launch images with what their contract asks for and run `validate` in each.

    A suite is skipped that passed in the same image, with the same options, on the same host.
    """
    from imagegen.engine.client import connect
    from imagegen.journal.journal import open_journal
    from imagegen.validation.in_container import ValidationRequest
    from imagegen.validation.reports import Files

    files = Files(json_file, junit, markdown)
    files.must_have_folders()
    valued = {"--only": only, "--require": require, "--profile": profile}
    valued["--ranks"] = str(ranks) if ranks else None
    arguments = _arguments(valued, {"--benchmark": benchmark, "--loopback": loopback})
    if hosts is not None:
        arguments += ["--expect", expect] if expect else []
        _from_outside(hosts, [*arguments, *(["--static"] if static else [])], files, console)
        return
    if not images and matrix is None:
        raise ConfigError.of("no image named", hint="imagegen validate IMAGE, or --matrix NAME")
    references = _references(images, matrix, overlay)
    request = ValidationRequest(static, tuple(arguments), timeout=timeout)
    if soft_roce and request.argv != ValidationRequest().argv:
        raise ConfigError.of(
            "`--soft-roce` runs suites of its own choice", hint="leave the other options out"
        )
    engine, book = connect(), open_journal()

    def validated(reference: str) -> ValidationRecord:
        if soft_roce:
            return _on_soft_roce(engine, reference, request, console.line)
        from imagegen.validation.reuse import validate_open

        past = book.validations
        return validate_open(engine, reference, request, past, console.line, again=again)

    _validate_all(references, validated, book, files, console)


def _validate_all(
    references: Sequence[str],
    validated: Callable[[str], ValidationRecord],
    book: Journal,
    files: Files,
    console: Console,
) -> None:
    """Every image, also after one that `validate` could not run in; the reports; then the errors.

    What ends the run early, such as an engine that died, still leaves the reports that there are.
    """
    from imagegen.errors import ValidationError
    from imagegen.journal.run import recorded
    from imagegen.validation.failures import validation_failures
    from imagegen.validation.reports import of_problem, of_record, save

    records: dict[str, ValidationRecord] = {}
    reports: list[Mapping[str, Any]] = []
    problems: list[Problem] = []
    with recorded(book, "validate") as run_id:
        try:
            for reference in references:
                console.line(f"validate {reference}")
                try:
                    records[reference] = validated(reference)
                except ValidationError as error:
                    problems += error.problems
                    reports.append(of_problem(reference, error.problems[0]))
                else:
                    book.add_validation(run_id, records[reference])
                    reports.append(of_record(records[reference]))
        finally:
            save(files, reports)
        console.data([_row(one, records.get(str(one["image"]))) for one in reports])
        failures = validation_failures(records)
        problems += failures.problems if failures else ()
        if problems:
            raise ValidationError(*problems)


def _arguments(valued: Mapping[str, str | None], flags: Mapping[str, bool]) -> list[str]:
    """Those of `validate` in the image, as far as they were given."""
    given = [part for name, value in valued.items() if value for part in (name, value)]
    return given + [name for name, wanted in flags.items() if wanted]


def _from_outside(hosts: str, arguments: list[str], files: Files, console: Console) -> None:
    from imagegen.validation.outside import failures, validate_hosts
    from imagegen.validation.reports import save

    reports = validate_hosts(hosts, arguments, console.line)
    save(files, reports)
    console.data(reports)
    failed = failures(reports)
    if failed is not None:
        raise failed


def _on_soft_roce(
    engine: Engine, reference: str, request: ValidationRequest, on_line: Callable[[str], None]
) -> ValidationRecord:
    from imagegen.config.state import state_folder
    from imagegen.validation.soft_roce import BOOT_SECONDS, validate_on_soft_roce

    seconds = min(int(request.timeout), BOOT_SECONDS)
    return validate_on_soft_roce(engine, reference, state_folder() / "guest", seconds, on_line)


def _references(images: tuple[str, ...], matrix: str | None, overlay: Path | None) -> list[str]:
    """Cells become their image; whatever is no cell is taken as an image reference."""
    from imagegen.errors import NothingSelectedError
    from imagegen.workflow.project import Project, select

    project = Project(overlay)
    if matrix is not None:
        return [spec.tag for spec in select(project.family(matrix).specs, images)]
    specs = [spec for family in project.families() for spec in family.specs]
    references: list[str] = []
    for image in images:
        try:
            references += [spec.tag for spec in select(specs, [image])]
        except NothingSelectedError:
            references.append(image)
    return list(dict.fromkeys(references))


def _row(report: Mapping[str, Any], record: ValidationRecord | None) -> dict[str, object]:
    """What a program reads of an image; without a record `validate` could not run in it."""
    return {
        "image": report["image"],
        "id": record.image_id if record else "",
        "tier": record.tier if record else report["tier"],
        "passed": record is not None and record.passed,
        "counts": dict(report["counts"]),
        "seconds": round(record.seconds if record else 0.0, 1),
        "report": dict(report),
    }
