"""`imagegen request KEY=VALUE…`: a custom combination of versions."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.errors import ConfigError, ResolutionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.console import Console
    from imagegen.family import House
    from imagegen.model import BaseMode, ImageSpec, Pin
    from imagegen.refusal import Refusal


@click.command("request")
@click.argument("wishes", nargs=-1, metavar="KEY=VALUE...")
@click.option("--allow-unknown", is_flag=True, help="take what the facts say nothing about")
@click.option(
    "--check",
    is_flag=True,
    help="the arguments are files of requests (key: value); answer all of them",
)
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
    allow_unknown: bool,
    check: bool,
    save: str | None,
    owner: str,
    expires: str,
    build_it: bool,
    jobs: int | None,
    ca_bundle: Path | None,
    base: BaseMode | None,
    console: Console,
    overlay: Path | None,
) -> int:
    """Pin every component for the wishes, or exit 4 and say what does not fit."""
    from imagegen.family import House
    from imagegen.refusal import Refusal
    from imagegen.request import answer_to, same_image
    from imagegen.wishes import parse

    if not wishes:
        raise ConfigError.of("nothing is asked for", hint="such as `imagegen request torch=any`")
    house = House(overlay)
    if check:
        return _check([Path(name) for name in wishes], house, console, allow_unknown=allow_unknown)
    spec = answer_to(parse(wishes, house.catalog), house.catalog, allow_unknown=allow_unknown)
    if isinstance(spec, Refusal):
        return _refuse(spec, console)
    existing = same_image(spec, _cells(house, spec))
    answer = existing or spec
    built = _is_built(answer)
    _show(answer, existing is not None, built, console)
    if save:
        console.line(f"wrote {_save(save, spec, owner, expires)}")
    if build_it and not built:
        _build(house, answer, console, jobs, ca_bundle, base)
    return 0


def _cells(house: House, spec: ImageSpec) -> list[ImageSpec]:
    """The cells of all matrices that may be this image. A wrong one is no answer, and no error."""
    from imagegen.errors import ImagegenError
    from imagegen.request import may_be
    from imagegen.resolve import resolve_cells

    found: list[ImageSpec] = []
    for cells in house.cells().values():
        with suppress(ImagegenError):
            found += resolve_cells([c for c in cells if may_be(c, spec)], house.catalog)
    return found


def _refuse(refusal: Refusal, console: Console) -> int:
    """A machine reads why on standard output, people read it as any other error."""
    if not console.wants_json:
        raise ResolutionError(*refusal.problems)
    console.data(refusal.as_data())
    return ResolutionError.exit_code


def _check(files: Sequence[Path], house: House, console: Console, *, allow_unknown: bool) -> int:
    """Answers to a queue of request files, one line each; 4 if any has none."""
    from imagegen.refusal import Refusal
    from imagegen.request import answer_to
    from imagegen.request_file import read_wishes

    rows, answers, code = [], [], 0
    for file in files:
        answer = answer_to(read_wishes(file, house.catalog)[0], house.catalog,
                           allow_unknown=allow_unknown)  # fmt: skip
        if isinstance(answer, Refusal):
            code = ResolutionError.exit_code
            rows.append((str(file), "impossible", answer.conflicts[0].text))
            answers.append({"file": str(file), **answer.as_data()})
        else:
            rows.append((str(file), "ok", answer.tag))
            answers.append({"file": str(file), **_data(answer, "ok", None)})
    console.data(answers)
    console.table(("request", "answer", "image, or why there is none"), rows)
    return code


def _is_built(spec: ImageSpec) -> bool:
    """Whether an engine in reach has the image; without an engine it is not known to exist."""
    from imagegen.engine.look import has_image

    return has_image(spec.tag)


def _data(spec: ImageSpec, status: str, cell: str | None) -> dict[str, object]:
    from imagegen.request import pinned

    return {
        "status": status,
        "image": spec.tag,
        "cell": cell,
        "pins": pinned(spec),
        "warnings": list(spec.warnings),
        "conflicts": [],
        "alternatives": [],
    }


def _show(spec: ImageSpec, known: bool, built: bool, console: Console) -> None:
    console.data(_data(spec, "exists" if built else "ok", spec.cell.id if known else None))
    console.table(
        ("component", "version", "asked for by"),
        [
            ("os", spec.os.id, ""),
            *((p.component, _version(p), "; ".join(p.via)) for p in spec.pins),
            *((name, value, "") for name, value in spec.given.items()),
        ],
        title=spec.tag,
    )
    for warning in spec.warnings:
        console.line(f"warning: {warning}")
    state = "exists on this engine" if built else "is not built yet"
    console.line(f"{spec.tag} {state}" + (f" (cell {spec.cell.id})" if known else ""))


def _version(pin: Pin) -> str:
    return f"{pin.version} ({pin.release.variant})" if pin.release.variant else pin.version


def _save(name: str, spec: ImageSpec, owner: str, expires: str) -> Path:
    import re

    from imagegen.request_file import as_matrix
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
    from imagegen.failures import build_failures
    from imagegen.journal import open_journal
    from imagegen.workflow import BuildWishes, build_recipes, recorded

    book = open_journal()
    recipe = house.recipe_of(spec)
    wishes = BuildWishes(jobs=jobs, ca_bundle=ca_bundle, base=base)
    with recorded(book, "request") as run_id:
        records = build_recipes(connect(), [recipe], house.payload, wishes, console, book, run_id)
        failures = build_failures(records)
        if failures is not None:
            raise failures
    console.line(f"built {spec.tag}")
