"""The nightly: build what is stale, validate what is new, publish what passed, report.

A broken cell stops no other. What is published moves its tags together or not at all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from imagegen.engine.registry import remote_images
from imagegen.errors import ImagegenError, ValidationError
from imagegen.publisher.publish import Candidate, publish, target_of
from imagegen.validation.in_container import ValidationRequest, validate_image
from imagegen.validation.reports import of_problem, of_record
from imagegen.workflow.stages import build_recipes, failed_checks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagegen.config.payload import Payload
    from imagegen.console.console import Console
    from imagegen.engine.client import Engine
    from imagegen.journal.journal import Journal
    from imagegen.model.build import BuildRecord
    from imagegen.model.recipe import Recipe
    from imagegen.model.validation import ValidationRecord
    from imagegen.workflow.stages import BuildWishes


@dataclass
class CellReport:
    """What one night did to one cell; `warnings` are its build's: an image over its size budget."""

    cell: str
    image: str
    build: str
    image_id: str = ""
    seconds: float = 0.0
    validation: str = ""
    publication: str = ""
    digest: str = ""
    detail: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        return self.build in ("failed", "cancelled") or self.validation == "failed"


@dataclass
class NightReport:
    """The whole night. `changed` counts cells that something was done for; `reports` are those of
    `validate`, earlier ones included; `failure` is what ended the night early: a registry that
    refused, or an engine that died."""

    matrices: tuple[str, ...]
    cells: list[CellReport] = field(default_factory=list)
    reports: list[Mapping[str, Any]] = field(default_factory=list)
    failure: ImagegenError | None = None

    @property
    def changed(self) -> int:
        return sum(
            cell.build == "built"
            or cell.validation in ("passed", "failed")
            or cell.publication == "published"
            for cell in self.cells
        )

    @property
    def broken(self) -> list[CellReport]:
        return [cell for cell in self.cells if cell.broken]

    @property
    def headline(self) -> str:
        if self.failure is not None:
            return f"the night ended early: {self.failure.problems[0].text}"
        if self.broken:
            return f"{len(self.broken)} of {len(self.cells)} cells are broken"
        if not self.changed:
            return f"nothing to do: all {len(self.cells)} images are built, validated and published"
        return f"{self.changed} of {len(self.cells)} images are new, all of them passed"


def run_night(
    engine: Engine,
    recipes: Sequence[Recipe],
    payload: Payload,
    to: str,
    wishes: BuildWishes,
    console: Console,
    book: Journal,
    run_id: int,
) -> NightReport:
    """One night over the cells of any number of matrices."""
    built = build_recipes(engine, recipes, payload, wishes, console, book, run_id)
    report = NightReport(tuple(dict.fromkeys(r.spec.cell.matrix for r in recipes)))
    report.cells = [_cell_report(record) for record in built]
    records: dict[str, ValidationRecord] = {}
    try:
        for record, cell in zip(built, report.cells, strict=True):
            if not cell.broken:
                report.reports.append(
                    _validate(engine, record, cell, records, console, book, run_id)
                )
        healthy = [cell for cell in report.cells if not cell.broken]
        _publish(engine, healthy, records, to, console, book, run_id)
    except ImagegenError as error:
        report.failure = error
    return report


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


def _validate(
    engine: Engine,
    record: BuildRecord,
    cell: CellReport,
    records: dict[str, ValidationRecord],
    console: Console,
    book: Journal,
    run_id: int,
) -> Mapping[str, Any]:
    """Judge the image of a cell; the report of `validate`."""
    known = book.validation_of(record.image_id)
    if known is not None and known.passed and known.tier == "full":
        cell.validation = "passed before"
        records[cell.image] = known
        return of_record(known)
    try:
        found = validate_image(engine, record.tag, ValidationRequest(), console.line)
    except ValidationError as error:
        cell.validation = "failed"
        cell.detail = tuple(p.text for p in error.problems)
        return of_problem(cell.image, error.problems[0])
    book.add_validation(run_id, found)
    records[cell.image] = found
    cell.validation = "passed" if found.passed else "failed"
    if not found.passed:
        cell.detail = tuple(failed_checks(found))
    return of_record(found)


def _publish(
    engine: Engine,
    healthy: Sequence[CellReport],
    records: dict[str, ValidationRecord],
    to: str,
    console: Console,
    book: Journal,
    run_id: int,
) -> None:
    waiting = []
    for cell in healthy:
        reference = target_of(cell.image, to)
        last = book.last_publication(reference)
        there = remote_images.digest_of(reference, engine)
        if last and last.image_id == cell.image_id and last.digest == there:
            cell.publication, cell.digest = "there already", last.digest
        else:
            waiting.append(cell)
    candidates = [Candidate(c.image, c.image_id, records.get(c.image)) for c in waiting]
    published = publish(engine, candidates, to, console.line) if candidates else []
    for cell, one in zip(waiting, published, strict=True):
        book.add_publication(run_id, one)
        cell.publication, cell.digest = "published", one.digest


def as_json(report: NightReport) -> str:
    """The summary for machines."""
    return json.dumps(
        {
            "matrices": list(report.matrices),
            "headline": report.headline,
            "broken": len(report.broken),
            "changed": report.changed,
            "cells": [
                {
                    "cell": cell.cell,
                    "image": cell.image,
                    "build": cell.build,
                    "seconds": round(cell.seconds, 1),
                    "image_id": cell.image_id,
                    "validation": cell.validation,
                    "publication": cell.publication,
                    "digest": cell.digest,
                    "detail": list(cell.detail),
                    "warnings": list(cell.warnings),
                }
                for cell in report.cells
            ],
        },
        indent=2,
        sort_keys=True,
    )


def as_markdown(report: NightReport) -> str:
    """The summary for a ticket or a chat."""
    lines = [
        f"# Nightly {', '.join(report.matrices)}",
        "",
        f"{report.headline[:1].upper()}{report.headline[1:]}.",
        "",
        "| cell | build | validation | publication | digest |",
        "| --- | --- | --- | --- | --- |",
    ]
    for cell in report.cells:
        build = f"{cell.build} ({cell.seconds:.0f} s)" if cell.seconds else cell.build
        row = (
            cell.cell,
            build,
            cell.validation or "-",
            cell.publication or "-",
            cell.digest or "-",
        )
        lines.append(f"| {' | '.join(row)} |")
    for cell in report.broken:
        lines += ["", f"## {cell.cell}", "", "```", *cell.detail, "```"]
    for cell in report.cells:
        if cell.warnings:
            lines += ["", f"## Warning: {cell.cell}", "", "```", *cell.warnings, "```"]
    return "\n".join(lines) + "\n"
