"""Define `imagegen request`, which finds an image for a combination of versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options
from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.model.build import BuildOptions


@click.command("request")
@click.argument("wishes", nargs=-1, metavar="KEY=VALUE...")
@click.option("--like", metavar="IMAGE", help="ask for what is in this image, of any maker")
@click.option("--allow-unknown", is_flag=True, help="take what the facts say nothing about")
@click.option(
    "--check",
    is_flag=True,
    help="the arguments are files of requests (key: value); answer all of them",
)
@click.option("--registry", default="", metavar="HOST/PREFIX", help="look for the image there, too")
@click.option(
    "--save", metavar="NAME", help="write it as matrices/NAME.yaml, in the overlay if any"
)
@click.option("--force", is_flag=True, help="with --save: overwrite a matrix of that name")
@click.option("--owner", default="", help="who asked, kept with a saved request")
@click.option("--expires", default="", metavar="YYYY-MM-DD", help="kept with a saved request")
@click.option("--build", "build_it", is_flag=True, help="build it now")
@click.option("--why", is_flag=True, help="also who asked for what, and where each fact stands")
@options.no_disk_check
@options.jobs
@options.ca_bundle
@options.base
@options.common
def command(
    wishes: tuple[str, ...],
    like: str | None,
    allow_unknown: bool,
    check: bool,
    registry: str,
    save: str | None,
    force: bool,
    owner: str,
    expires: str,
    build_it: bool,
    why: bool,
    console: Console,
    overlay: Path | None,
    **building: Any,
) -> int:
    """Pin every component for the wishes, or exit 4 and say what does not fit."""
    from imagegen.workflow.request import RequestOptions, answer_queue, request

    _check_usage(
        wishes,
        like=like,
        alone=check,
        saving=save is not None,
        about=owner or expires,
        build=build_it,
    )
    asked = RequestOptions(
        arguments=wishes,
        overlay=overlay,
        allow_unknown=allow_unknown,
        registry=registry,
        save=save,
        overwrite=force,
        owner=owner,
        expires=expires,
        why=why,
        build=build_it,
    )
    if check:
        return answer_queue(asked, console)
    if like:
        from imagegen.workflow.request_like import request_like

        answered = request_like(like, asked, console)
    else:
        answered = request(asked, console)
    if build_it and answered.to_build:
        from imagegen.workflow.build_request import build_request

        options_of_build = _build_options(overlay, **building)
        build_request(answered.to_build, wishes, options_of_build, console)
    return answered.exit_code


def _build_options(overlay: Path | None, *, no_disk_check: bool, **same: Any) -> BuildOptions:
    from imagegen.model.build import BuildOptions

    return BuildOptions(overlay=overlay, check_disk=not no_disk_check, **same)


def _check_usage(
    wishes: Sequence[str],
    *,
    like: str | None,
    alone: bool,
    saving: bool,
    about: str,
    build: bool,
) -> None:
    """Raise ConfigError for options that have no meaning together."""
    if alone and like:
        text = "`--check` answers files, `--like` reads one image"
        raise ConfigError.of(text, hint="leave out one of them")
    if not wishes and not like:
        raise ConfigError.of("nothing is asked for", hint="such as `imagegen request torch=any`")
    if alone and (saving or build):
        text = "`--check` answers a queue: it neither saves nor builds"
        raise ConfigError.of(text, hint="leave out `--save` and `--build`, or ask for one request")
    if about and not saving:
        text = "`--owner` and `--expires` are kept with a saved request"
        raise ConfigError.of(text, hint="add `--save NAME`")
