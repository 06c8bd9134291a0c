"""Define the options that several commands share, and how they are read."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from imagegen.console.console import Console

FORMATS = ("auto", "plain", "json")


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--format` and `--overlay` to a command: it gets a `console` and an `overlay` path."""

    @click.option(
        "--format", "fmt", type=click.Choice(FORMATS), default="auto", help="how to print"
    )
    @click.option(
        "--overlay",
        type=click.Path(path_type=Path),
        help="a folder of your own with dockerfiles/ and matrices/; it wins over the shipped ones",
    )
    @wraps(function)
    def wrapped(*args: Any, fmt: str, overlay: Path | None, **kwargs: Any) -> Any:
        return function(*args, console=console_of(fmt), overlay=overlay, **kwargs)

    return wrapped


def console_of(fmt: str) -> Console:
    """Make the console of a command for this format; `--progress plain` makes it not live."""
    from imagegen.console.console import make_console

    context = click.get_current_context(silent=True)
    plain = context is not None and context.meta.get(_PROGRESS) == "plain"
    return make_console(fmt, live=not plain)


_PROGRESS = "imagegen.progress"


def _keep_progress(context: click.Context, _: click.Parameter, value: str) -> None:
    context.meta[_PROGRESS] = value


matrix = click.option("--matrix", "-m", "matrix", required=True, help="name or path of a matrix")
cells = click.argument("cells", nargs=-1)
jobs = click.option("--jobs", "-j", type=click.IntRange(1), help="builds at a time")
measured = click.option(
    "--measured",
    is_flag=True,
    help="order layers by seconds measured here; recipes then differ from machine to machine",
)
progress = click.option(
    "--progress",
    type=click.Choice(("auto", "plain")),
    default="auto",
    expose_value=False,
    callback=_keep_progress,
    help="plain: a line for each step, nothing written over",
)
ca_bundle = click.option(
    "--ca-bundle",
    type=click.Path(path_type=Path),
    help="CA bundle for the steps that download; it is in no layer",
)
allow_unverified = click.option(
    "--allow-unverified",
    is_flag=True,
    help="build with tarballs whose rows have no sha256; the label says so",
)
no_disk_check = click.option(
    "--no-disk-check", is_flag=True, help="build what may not fit on the engine's disk"
)
base = click.option(
    "--base",
    type=click.Choice(("auto", "registry", "bootstrap")),
    help="where base images come from; overrides the matrix",
)
