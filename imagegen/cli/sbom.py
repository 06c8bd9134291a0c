"""Define `imagegen sbom`, which lists the content of an image as SPDX or CycloneDX."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from imagegen.console.console import Console


@click.command("sbom")
@click.argument("image", metavar="CELL|IMAGE")
@click.option(
    "--as",
    "kind",
    type=click.Choice(("spdx", "cyclonedx")),
    default="spdx",
    show_default=True,
    help="SPDX 2.3 or CycloneDX 1.6, both as JSON",
)
@click.option("--out", type=click.Path(path_type=Path), help="into this file, not to the screen")
@options.common
def command(
    image: str, kind: str, out: Path | None, console: Console, overlay: Path | None
) -> None:
    """The bill of materials of an image: packages, wheels, and what came without a package.

    The one that its build wrote, where there is one; the same image gives the same bytes.
    """
    from imagegen.workflow.sbom import sbom

    sbom(image, kind, out, overlay, console)
