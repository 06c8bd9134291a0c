"""Define `imagegen prune`, which removes images and cache that are no longer needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console


@click.command("prune")
@click.option("--matrix", "-m", "matrices", multiple=True, help="only its images; may be repeated")
@click.option("--dry-run", is_flag=True, help="say what would go, and remove nothing")
@click.option(
    "--cache-days",
    type=click.IntRange(0, 36500),
    default=14,
    show_default=True,
    help="build cache goes that no build has used for so many days",
)
@click.option("--keep-cache", is_flag=True, help="leave the build cache alone")
@options.common
def command(console: Console, overlay: Path | None, **asked: Any) -> None:
    """Remove superseded images, what failed builds left, old cache, and old bills of materials.

    What has a tag, was ever published, or is in a container stays. With `--matrix` the cache stays.
    """
    from imagegen.workflow.prune import PruneOptions, prune

    prune(PruneOptions(overlay=overlay, **asked), console)
