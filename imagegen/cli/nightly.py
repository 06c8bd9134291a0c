"""`imagegen nightly`: build, validate, publish, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.errors import BuildError, Problem

if TYPE_CHECKING:
    from imagegen.console.console import Console
    from imagegen.model.cell import BaseMode
    from imagegen.workflow.nightly import NightReport


@click.command("nightly")
@click.option("--matrix", "-m", "matrices", multiple=True, required=True, help="may be repeated")
@click.option("--to", required=True, metavar="REGISTRY/NAMESPACE", help="where the images go")
@click.option(
    "--summary",
    type=click.Path(path_type=Path),
    default=Path("out/nightly"),
    show_default=True,
    help="folder for summary.md, summary.json and validations.xml (JUnit)",
)
@options.jobs
@options.allow_unverified
@options.ca_bundle
@options.base
@options.progress
@options.common
def command(
    matrices: tuple[str, ...],
    to: str,
    summary: Path,
    jobs: int | None,
    allow_unverified: bool,
    ca_bundle: Path | None,
    base: BaseMode | None,
    console: Console,
    overlay: Path | None,
) -> None:
    """Bring the published images of the matrices up to date; exit code 6 if a cell is broken."""
    from imagegen.engine.client import connect
    from imagegen.journal.journal import open_journal
    from imagegen.journal.run import recorded
    from imagegen.validation.reports import Files, save
    from imagegen.workflow.nightly import as_json, as_markdown, run_night
    from imagegen.workflow.plan import prices_of
    from imagegen.workflow.project import House
    from imagegen.workflow.stages import BuildWishes

    book = open_journal()
    house = House(overlay)
    recipes = [recipe for name in matrices for recipe in house.recipes(house.family(name))]
    engine = connect()
    wishes = BuildWishes(
        jobs=jobs,
        ca_bundle=ca_bundle,
        base=base,
        allow_unverified=allow_unverified,
        prices=prices_of(house, book),
    )
    with recorded(book, "nightly") as run_id:
        report = run_night(engine, recipes, house.payload, to, wishes, console, book, run_id)
        _write(summary / "summary.md", as_markdown(report))
        _write(summary / "summary.json", as_json(report) + "\n")
        save(Files(junit=summary / "validations.xml"), report.reports)
        console.data(_loaded(as_json(report)))
        console.line(as_markdown(report))
        console.line(report.headline)
        _raise_if_broken(report)


def _loaded(text: str) -> object:
    import json

    return json.loads(text)


def _write(path: Path, text: str) -> None:
    """Under a temporary name first, so that a reader never sees half a summary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _raise_if_broken(report: NightReport) -> None:
    if report.failure is not None:
        raise report.failure
    if report.broken:
        raise BuildError(
            *(
                Problem(
                    f"cell `{cell.cell}` is broken: build {cell.build}"
                    + (f", validation {cell.validation}" if cell.validation else ""),
                    evidence=cell.detail,
                    hint="imagegen build, for this cell alone, shows it again",
                )
                for cell in report.broken
            )
        )
