"""`imagegen show` shows what an image consists of, and where each part comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.model.image import base_of
from imagegen.renderer.image_json import contract, expectation, patched
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.model.image import ImageSpec, Pin
    from imagegen.model.release import Release


def show(cell: str, overlay: Path | None, console: Console, *, why: bool = False) -> None:
    """Show the one cell that a name means.

    `why` adds who asked for each component, and the file and line of its release.
    """
    project = Project(overlay)
    family, spec = project.cell(cell)
    order = family.orders[spec.os.id]
    console.data(expectation(spec, order, project.catalog))
    columns = ("component", "version", "where it comes from", "asked for by", "row")
    few = slice(None if why else 3)
    console.table(
        columns[few],
        [row[few] for row in _rows(spec, order)],
        title=f"{spec.tag}  (cell {spec.cell.id}, profile {spec.cell.profile})",
    )
    for line in _lines(spec, contract(spec, project.catalog)):
        console.line(line)


def _rows(spec: ImageSpec, order: Sequence[str]) -> list[tuple[str, ...]]:
    base = ("os", spec.os.id, base_of(spec).image, f"{spec.cell.file}, axis `os`", "")
    pins = sorted(spec.pins, key=lambda pin: order.index(pin.component))
    return [base, *((pin.component, _version(pin.release), *_origin(pin)) for pin in pins)]


def _origin(pin: Pin) -> tuple[str, str, str]:
    return pin.release.origin, "; ".join(pin.via), pin.release.row


def _lines(spec: ImageSpec, asked: Mapping[str, object]) -> Iterator[str]:
    """Write the lines below the table."""
    yield from (f"{name}: {value}" for name, value in spec.given.items())
    yield from _parts(spec)
    yield from (f"sets: {name}={value}" for name, value in spec.cell.env.items())
    yield _launch(asked)
    yield from _patched(spec)
    yield from (f"note: {note}" for note in spec.cell.notes)
    yield from (f"warning: {warning}" for warning in spec.warnings)
    yield from (f"without {one.component}: {one.reason}" for one in spec.cell.omitted)


def _parts(spec: ImageSpec) -> Iterator[str]:
    """Write what the host brings into the build: parts from the user, and downloads."""
    for pin in spec.pins:
        if pin.release.artifact:
            where = f"{pin.release.artifact} {pin.version} in artifacts.yaml"
            yield f"part: {pin.component} is built from {where}"
        elif pin.release.tarball:
            yield f"download: {pin.component} is built from {pin.release.tarball['url']}"


def _patched(spec: ImageSpec) -> Iterator[str]:
    """Write which files of packages the image has changed, and why."""
    paths: dict[str, list[str]] = {}
    for one in patched(spec):
        paths.setdefault(one["reason"], []).append(one["path"])
    yield from (f"patched: {', '.join(found)}: {why}" for why, found in paths.items())


def _launch(asked: Mapping[str, object]) -> str:
    """Write what a launch has to give the image, in units for people."""
    words = [f"network {asked['network']}"]
    shm, ulimits = asked["shm_bytes"], asked["ulimits"]
    if isinstance(shm, int) and shm:
        words.append(f"shared memory {shm / 1024**3:g} GiB")
    for name, limit in ulimits.items() if isinstance(ulimits, dict) else ():
        words.append(f"{name} {_limit(limit)}")
    for kind, label in (("caps", "capabilities"), ("devices", "devices")):
        values = asked[kind]
        if isinstance(values, list) and values:
            words.append(f"{label} {' '.join(values)}")
    if "user" in asked:
        words.append(f"user {asked['user']}")
    return f"at launch: {', '.join(words)}; `imagegen launch` writes the command"


def _limit(value: int) -> str:
    """Write a ulimit for people; sizes are powers of two."""
    if value == -1:
        return "unlimited"
    return f"{value // 1024**2} MiB" if value % 1024**2 == 0 else str(value)


def _version(release: Release) -> str:
    """Write a version with its other names, which a document may use, and its variant."""
    more = [*release.aliases, release.variant]
    others = ", ".join(one for one in more if one)
    return f"{release.version} ({others})" if others else release.version
