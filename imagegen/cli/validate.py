"""`imagegen validate IMAGE|CELL`: launch it, run `validate` in it, keep the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from imagegen.console import Console
    from imagegen.engine.client import Engine
    from imagegen.model import ValidationRecord
    from imagegen.validation import ValidationRequest


PROFILES = ("plain", "cpu", "gpu", "rdma", "harp")
"""Those of validate/catalogue.py."""


@click.command("validate", context_settings={"ignore_unknown_options": False})
@click.argument("images", nargs=-1, metavar="[IMAGE|CELL]...")
@click.option("--matrix", "-m", "matrix", help="every cell of this matrix")
@click.option("--static", is_flag=True, help="only what needs no device and no running service")
@click.option("--only", help="suites, comma-separated")
@click.option("--require", help="what must not be skipped, such as `rdma,gpu`")
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
    console: Console,
    overlay: Path | None,
) -> None:
    """Launch images with what their contract asks for and run `validate` in each.

    A suite is skipped that passed in the same image, with the same options, on the same host.
    """
    from imagegen.engine.client import connect
    from imagegen.journal import open_journal
    from imagegen.passed import validate_open
    from imagegen.validation import ValidationRequest
    from imagegen.workflow import recorded, validation_failures

    valued = {"--only": only, "--require": require, "--profile": profile}
    valued["--ranks"] = str(ranks) if ranks else None
    arguments = _arguments(valued, {"--benchmark": benchmark, "--loopback": loopback})
    if hosts is not None:
        arguments += ["--expect", expect] if expect else []
        _from_outside(hosts, [*arguments, *(["--static"] if static else [])], console)
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
    records: dict[str, ValidationRecord] = {}
    with recorded(book, "validate") as run_id:
        for reference in references:
            console.line(f"validate {reference}")
            if soft_roce:
                record = _on_soft_roce(engine, reference, request, console.line)
            else:
                record = validate_open(
                    engine, reference, request, book.validations, console.line, again=again
                )
            book.add_validation(run_id, record)
            records[reference] = record
        console.data([_row(record) for record in records.values()])
        failures = validation_failures(records)
        if failures is not None:
            raise failures


def _arguments(valued: Mapping[str, str | None], flags: Mapping[str, bool]) -> list[str]:
    """Those of `validate` in the image, as far as they were given."""
    given = [part for name, value in valued.items() if value for part in (name, value)]
    return given + [name for name, wanted in flags.items() if wanted]


def _from_outside(hosts: str, arguments: list[str], console: Console) -> None:
    from imagegen.outside import failures, validate_hosts

    reports = validate_hosts(hosts, arguments, console.line)
    console.data(reports)
    failed = failures(reports)
    if failed is not None:
        raise failed


def _on_soft_roce(
    engine: Engine, reference: str, request: ValidationRequest, on_line: Callable[[str], None]
) -> ValidationRecord:
    from imagegen.journal import state_folder
    from imagegen.soft_roce import BOOT_SECONDS, validate_on_soft_roce

    seconds = min(int(request.timeout), BOOT_SECONDS)
    return validate_on_soft_roce(engine, reference, state_folder() / "guest", seconds, on_line)


def _references(images: tuple[str, ...], matrix: str | None, overlay: Path | None) -> list[str]:
    """Cells become their image; whatever is no cell is taken as an image reference."""
    from imagegen.errors import NothingSelectedError
    from imagegen.family import House, select

    house = House(overlay)
    if matrix is not None:
        return [spec.tag for spec in select(house.family(matrix).specs, images)]
    specs = [spec for family in house.families() for spec in family.specs]
    references: list[str] = []
    for image in images:
        try:
            references += [spec.tag for spec in select(specs, [image])]
        except NothingSelectedError:
            references.append(image)
    return list(dict.fromkeys(references))


def _row(record: ValidationRecord) -> dict[str, object]:
    return {
        "image": record.tag,
        "id": record.image_id,
        "tier": record.tier,
        "passed": record.passed,
        "counts": dict(record.counts),
        "seconds": round(record.seconds, 1),
        "report": dict(record.report),
    }
