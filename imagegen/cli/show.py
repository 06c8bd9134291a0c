"""`imagegen show CELL`: what an image consists of, where each part comes from, who asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.model.catalog import Release
    from imagegen.model.image import ImageSpec


@click.command("show")
@click.argument("cell")
@options.common
def command(cell: str, console: Console, overlay: Path | None) -> None:
    """Every component of one cell: version, origin, who led to it."""
    from imagegen.model.base import base_of
    from imagegen.renderer.image_json import contract, expectation
    from imagegen.workflow.project import Project

    project = Project(overlay)
    family, spec = project.cell(cell)
    order = family.orders[spec.os.id]
    console.data(expectation(spec, order, project.catalog))
    console.table(
        ("component", "version", "where it comes from", "asked for by"),
        [
            ("os", spec.os.id, base_of(spec).image, "; ".join(_askers(spec.cell.file))),
            *(
                (
                    pin.component,
                    _version(pin.release),
                    pin.release.origin,
                    "; ".join(pin.via),
                )
                for pin in sorted(spec.pins, key=lambda pin: order.index(pin.component))
            ),
        ],
        title=f"{spec.tag}  (cell {spec.cell.id}, profile {spec.cell.profile})",
    )
    for name, value in spec.given.items():
        console.line(f"{name}: {value}")
    for line in (*_parts(spec), *_settings(spec), _launch(contract(spec, project.catalog))):
        console.line(line)
    for note in spec.cell.notes:
        console.line(f"note: {note}")
    for warning in spec.warnings:
        console.line(f"warning: {warning}")
    for omission in spec.cell.omitted:
        console.line(f"without {omission.component}: {omission.reason}")


def _parts(spec: ImageSpec) -> Iterator[str]:
    """What the host brings into the build: parts that the user gives, files that it downloads."""
    for pin in spec.pins:
        if pin.release.artifact:
            where = f"{pin.release.artifact} {pin.version} in artifacts.yaml"
            yield f"part: {pin.component} is built from {where}"
        elif pin.release.tarball:
            yield f"download: {pin.component} is built from {pin.release.tarball['url']}"


def _settings(spec: ImageSpec) -> Iterator[str]:
    yield from (f"sets: {name}={value}" for name, value in spec.cell.env.items())


def _launch(asked: Mapping[str, object]) -> str:
    """What a launch has to give the image, in the units that people write."""
    said = [f"network {asked['network']}"]
    shm, ulimits = asked["shm_bytes"], asked["ulimits"]
    if isinstance(shm, int) and shm:
        said.append(f"shared memory {shm / 1024**3:g} GiB")
    for name, limit in ulimits.items() if isinstance(ulimits, dict) else ():
        said.append(f"{name} {_limit(limit)}")
    for kind, label in (("caps", "capabilities"), ("devices", "devices")):
        values = asked[kind]
        if isinstance(values, list) and values:
            said.append(f"{label} {' '.join(values)}")
    return f"at launch: {', '.join(said)}; `imagegen launch` writes the command"


def _limit(value: int) -> str:
    """A ulimit as people write it; sizes are powers of two."""
    if value == -1:
        return "unlimited"
    return f"{value // 1024**2} MiB" if value % 1024**2 == 0 else str(value)


def _askers(file: str) -> list[str]:
    return [f"{file}, axis `os`"]


def _version(release: Release) -> str:
    """With the other names that a document may call it by, and the variant."""
    more = [*release.also, release.variant]
    said = ", ".join(one for one in more if one)
    return f"{release.version} ({said})" if said else release.version
