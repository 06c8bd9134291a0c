"""`imagegen request KEY=VALUE…`: a custom combination of versions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from imagegen.console import Console
    from imagegen.family import House
    from imagegen.model import BaseMode, ImageSpec


@click.command("request")
@click.argument("wishes", nargs=-1, required=True, metavar="KEY=VALUE...")
@click.option("--save", metavar="NAME", help="write it as matrices/NAME.yaml")
@click.option("--owner", default="", help="who asked, kept with a saved request")
@click.option("--expires", default="", metavar="YYYY-MM-DD", help="kept with a saved request")
@click.option("--build", "build_it", is_flag=True, help="build it now")
@options.jobs
@options.ca_bundle
@options.base
@options.common
def command(
    wishes: tuple[str, ...],
    save: str | None,
    owner: str,
    expires: str,
    build_it: bool,
    jobs: int | None,
    ca_bundle: Path | None,
    base: BaseMode | None,
    console: Console,
    overlay: Path | None,
) -> None:
    """Pin every component for the wishes, or exit 4 and say what does not fit."""
    from imagegen.family import House
    from imagegen.request import parse, resolve_request, same_image

    house = House(overlay)
    spec = resolve_request(parse(wishes, house.catalog), house.catalog)
    existing = same_image(spec, [s for family in house.families() for s in family.specs])
    answer = existing or spec
    built = _is_built(answer)
    _show(answer, existing is not None, built, console)
    if save:
        console.line(f"wrote {_save(save, spec, owner, expires)}")
    if build_it and not built:
        _build(house, answer, console, jobs, ca_bundle, base)


def _is_built(spec: ImageSpec) -> bool:
    """Whether an engine in reach has the image; without an engine it is not known to exist."""
    from imagegen.engine import images
    from imagegen.engine.client import connect
    from imagegen.errors import EngineError

    try:
        return images.find(connect(), spec.tag) is not None
    except EngineError:
        return False


def _show(spec: ImageSpec, known: bool, built: bool, console: Console) -> None:
    console.data(
        {
            "status": "exists" if built else "ok",
            "image": spec.tag,
            "cell": spec.cell.id if known else None,
            "pins": {"os": spec.os.id} | {pin.component: pin.version for pin in spec.pins},
        }
    )
    console.table(
        ("component", "version", "asked for by"),
        [("os", spec.os.id, ""), *((p.component, p.version, "; ".join(p.via)) for p in spec.pins)],
        title=spec.tag,
    )
    state = "exists on this engine" if built else "is not built yet"
    console.line(f"{spec.tag} {state}" + (f" (cell {spec.cell.id})" if known else ""))


def _save(name: str, spec: ImageSpec, owner: str, expires: str) -> Path:
    import re

    from imagegen.request import as_matrix
    from imagegen.schemas import NAME

    if not re.fullmatch(NAME, name):
        raise ConfigError.of(f"`{name}` cannot name a matrix", hint="letters, digits and `-`")
    path = Path("matrices", f"{name}.yaml")
    if path.exists():
        raise ConfigError.of(f"{path} exists already", hint="choose another name")
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".part")
    temporary.write_text(as_matrix(name, spec, owner, expires), encoding="utf-8")
    temporary.replace(path)
    return path


def _build(
    house: House,
    spec: ImageSpec,
    console: Console,
    jobs: int | None,
    ca_bundle: Path | None,
    base: BaseMode | None,
) -> None:
    from imagegen.engine.client import connect
    from imagegen.journal import open_journal
    from imagegen.workflow import BuildWishes, build_failures, build_recipes, recorded

    book = open_journal()
    recipe = house.recipe_of(spec)
    wishes = BuildWishes(jobs=jobs, ca_bundle=ca_bundle, base=base)
    with recorded(book, "request") as run_id:
        records = build_recipes(connect(), [recipe], wishes, console, book, run_id)
        failures = build_failures(records)
        if failures is not None:
            raise failures
    console.line(f"built {spec.tag}")
