"""`imagegen nightly` builds what is stale, validates what is new, publishes what passed, reports.

A broken cell does not stop the others. The tags of all published images move together, or none do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.catalog.proofs import add_proofs
from imagegen.config.files import write_whole
from imagegen.console.night_report import as_json, as_markdown
from imagegen.engine.client import connect
from imagegen.engine.registry import remote_images
from imagegen.errors import BuildError, ImagegenError, Problem, ValidationError
from imagegen.journal.journal import open_journal
from imagegen.journal.run import journal_run
from imagegen.model.night import CellReport, NightReport
from imagegen.publisher.publish import PublishCandidate, check_target, publish, published_reference
from imagegen.validation.failures import failed_checks
from imagegen.validation.in_container import ValidationRequest, validate_image
from imagegen.validation.proving import proof_of_recipe
from imagegen.validation.reports import Files, of_problem, of_record, save
from imagegen.workflow.build import ActiveRun, build_recipes, raise_failures
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagegen.console.console import Console
    from imagegen.engine.client import Engine
    from imagegen.model.build import BuildOptions, BuildRecord
    from imagegen.model.recipe import Recipe
    from imagegen.model.validation import ValidationRecord


@dataclass(frozen=True)
class NightlyOptions:
    """The options of a nightly.

    `to` is the target of the images, `REGISTRY/NAMESPACE`; `summary` is the folder for the reports.
    """

    matrices: tuple[str, ...]
    to: str
    summary: Path
    build: BuildOptions


def nightly(options: NightlyOptions, console: Console) -> None:
    """Bring the published images of the matrices up to date, and write the reports.

    Raises BuildError for broken cells, or the error that ended the run early.
    """
    journal = open_journal()
    project = Project(options.build.overlay)
    families = [project.family(name) for name in options.matrices]
    check_target([spec.tag for family in families for spec in family.specs], options.to)
    recipes = [recipe for family in families for recipe in project.recipes(family)]
    engine = connect()
    with journal_run(journal, "nightly") as run_id:
        run = ActiveRun(run_id, journal, console)
        built = build_recipes(recipes, engine, project, options.build, run)
        if built.broken is not None:
            raise_failures(built, console)
        report = validate_and_publish(recipes, built.records, engine, options.to, run)
        _write_reports(report, options.summary)
        add_proofs(project.payload, options.build.overlay or Path.cwd(), report.proofs)
        _show(report, console)
        _raise_if_broken(report)


@dataclass
class _Night:
    """The state of a nightly: what is known of each cell, and the records of its images.

    `new` are the tags of images that were validated in this run.
    """

    cells: dict[str, CellReport]
    records: dict[str, ValidationRecord] = field(default_factory=dict)
    reports: list[Mapping[str, object]] = field(default_factory=list)
    new: set[str] = field(default_factory=set)

    @property
    def healthy(self) -> list[CellReport]:
        return [cell for cell in self.cells.values() if not cell.broken]

    def note(self, cell: CellReport, **changes: object) -> None:
        self.cells[cell.cell] = replace(cell, **changes)  # type: ignore[arg-type]


def validate_and_publish(
    recipes: Sequence[Recipe], built: Sequence[BuildRecord], engine: Engine, to: str, run: ActiveRun
) -> NightReport:
    """Validate every image that is not broken, publish those that passed, and report."""
    night = _Night({record.cell_id: _cell_report(record) for record in built})
    failure: ImagegenError | None = None
    try:
        for cell in night.healthy:
            _validate(cell, night, engine, run)
        _publish(night, engine, to, run)
    except ImagegenError as error:
        failure = error
    matrices = tuple(dict.fromkeys(recipe.spec.cell.matrix for recipe in recipes))
    cells, reports = tuple(night.cells.values()), tuple(night.reports)
    by_tag = {recipe.spec.tag: recipe for recipe in recipes}
    proofs = tuple(proof_of_recipe(night.records[tag], by_tag[tag]) for tag in sorted(night.new))
    return NightReport(matrices, cells, reports, failure, proofs)


def _cell_report(record: BuildRecord) -> CellReport:
    return CellReport(
        cell=record.cell_id,
        image=record.tag,
        build=record.outcome,
        image_id=record.image_id,
        seconds=record.seconds,
        detail=() if record.outcome == "built" else record.detail,
        warnings=record.detail if record.outcome == "built" else (),
    )


def _validate(cell: CellReport, night: _Night, engine: Engine, run: ActiveRun) -> None:
    """Validate the image of a cell, unless an image of the same digest passed before."""
    known = run.journal.validation_of(cell.image_id)
    if known is not None and known.passed and known.tier == "full":
        night.records[cell.image] = known
        night.note(cell, validation="passed before")
        night.reports.append(of_record(known))
        return
    try:
        found = validate_image(engine, cell.image, ValidationRequest(), run.console.line)
    except ValidationError as error:
        night.note(cell, validation="failed", detail=tuple(p.text for p in error.problems))
        night.reports.append(of_problem(cell.image, error.problems[0]))
        return
    run.journal.add_validation(run.id, found)
    night.new.add(cell.image)
    night.records[cell.image] = found
    night.reports.append(of_record(found))
    if found.passed:
        night.note(cell, validation="passed")
    else:
        night.note(cell, validation="failed", detail=tuple(failed_checks(found)))


def _publish(night: _Night, engine: Engine, to: str, run: ActiveRun) -> None:
    """Push the images that are not in the registry yet; move all their tags, or none."""
    waiting = []
    for cell in night.healthy:
        reference = published_reference(cell.image, to)
        last = run.journal.last_publication(reference)
        there = remote_images.digest_of(reference, engine)
        if last and last.image_id == cell.image_id and last.digest == there:
            night.note(cell, publication="there already", digest=last.digest)
        else:
            waiting.append(cell)
    candidates = [
        PublishCandidate(c.image, c.image_id, night.records.get(c.image)) for c in waiting
    ]
    published = publish(engine, candidates, to, run.console.line) if candidates else []
    for cell, one in zip(waiting, published, strict=True):
        run.journal.add_publication(run.id, one)
        night.note(cell, publication="published", digest=one.digest)


def _write_reports(report: NightReport, folder: Path) -> None:
    write_whole(folder / "summary.md", as_markdown(report).encode())
    write_whole(folder / "summary.json", f"{as_json(report)}\n".encode())
    save(Files(junit=folder / "validations.xml"), report.reports)


def _show(report: NightReport, console: Console) -> None:
    console.data(json.loads(as_json(report)))
    console.line(as_markdown(report))
    console.line(report.headline)


def _raise_if_broken(report: NightReport) -> None:
    if report.failure is not None:
        raise report.failure
    if report.broken:
        raise BuildError(*map(_problem, report.broken))


def _problem(cell: CellReport) -> Problem:
    validation = f", validation {cell.validation}" if cell.validation else ""
    return Problem(
        f"cell `{cell.cell}` is broken: build {cell.build}{validation}",
        evidence=cell.detail,
        hint="imagegen build, for this cell alone, shows it again",
    )
