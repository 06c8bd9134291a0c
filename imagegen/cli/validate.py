"""Define `imagegen validate`, which runs `validate` in images and keeps the results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options
from imagegen.model.cell import PROFILES

if TYPE_CHECKING:
    from imagegen.console.console import Console

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
@click.option(
    "--expect", type=click.Path(exists=True, dir_okay=False), help="hold it to this file instead"
)
@click.option("--infer", is_flag=True, help="print an expectation file of what is in the image")
@click.option("--hosts", help="containers that run already: docker://NAME,kubectl://POD,ssh://HOST")
@click.option("--benchmark", is_flag=True, help="the synthetic benchmark too")
@click.option("--ranks", type=click.IntRange(1), help="ranks of the benchmark")
@click.option("--via", help="what joins its ranks: `auto`, or a way that the image has")
@click.option("--model", help="what it trains")
@click.option("--length", help="how long it trains: `quick` or `reference`")
@click.option(
    "--soft-roce",
    is_flag=True,
    help="boot it in QEMU with an RDMA device, run the rdma suite there",
)
@click.option(
    "--timeout", type=float, default=1800.0, show_default=True, help="seconds for an image"
)
@click.option("--again", is_flag=True, help="also what passed in this image on this host")
@click.option("--prove", is_flag=True, help="add the results to proofs/MATRIX.yaml")
@click.option("--export", type=FILE, help="write the checks as one file, `validate.pyz`")
@click.option("--json", "json_file", type=FILE, help="write the reports as JSON")
@click.option("--junit", type=FILE, help="write JUnit XML, a suite for each image")
@click.option("--markdown", type=FILE, help="write a page for a ticket")
@options.common
def command(console: Console, **asked: Any) -> None:
    """Launch images with what their contract asks for and run `validate` in each.

    A suite is skipped that passed in the same image, with the same options, on the same host.
    """
    from imagegen.workflow.validate import ValidateOptions, validate

    validate(ValidateOptions(**asked), console)
