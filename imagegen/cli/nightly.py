"""Define `imagegen nightly`, which builds, validates, publishes and reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.model.build import BuildOptions

if TYPE_CHECKING:
    from imagegen.console.console import Console
    from imagegen.model.cell import BaseMode


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
    from imagegen.workflow.nightly import NightlyOptions, nightly

    build = BuildOptions(
        overlay=overlay,
        jobs=jobs,
        allow_unverified=allow_unverified,
        ca_bundle=ca_bundle,
        base=base,
    )
    nightly(NightlyOptions(matrices, to, summary, build), console)
