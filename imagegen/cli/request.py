"""`imagegen request KEY=VALUE…`: a custom combination of versions."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options
from imagegen.errors import ConfigError, ResolutionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.console.console import Console
    from imagegen.model.cell import BaseMode
    from imagegen.model.image import ImageSpec, Pin
    from imagegen.resolver.refusal import Refusal
    from imagegen.workflow.existing import Found
    from imagegen.workflow.project import House


@click.command("request")
@click.argument("wishes", nargs=-1, metavar="KEY=VALUE...")
@click.option("--allow-unknown", is_flag=True, help="take what the facts say nothing about")
@click.option(
    "--check",
    is_flag=True,
    help="the arguments are files of requests (key: value); answer all of them",
)
@click.option("--registry", default="", metavar="HOST/PREFIX", help="look for the image there, too")
@click.option("--save", metavar="NAME", help="write it as matrices/NAME.yaml")
@click.option("--force", is_flag=True, help="with --save: overwrite a matrix of that name")
@click.option("--owner", default="", help="who asked, kept with a saved request")
@click.option("--expires", default="", metavar="YYYY-MM-DD", help="kept with a saved request")
@click.option("--build", "build_it", is_flag=True, help="build it now")
@options.no_disk_check
@options.jobs
@options.ca_bundle
@options.base
@options.common
def command(
    wishes: tuple[str, ...],
    allow_unknown: bool,
    check: bool,
    registry: str,
    save: str | None,
    force: bool,
    owner: str,
    expires: str,
    build_it: bool,
    console: Console,
    overlay: Path | None,
    **building: Any,
) -> int:
    """Pin every component for the wishes, or exit 4 and say what does not fit."""
    from imagegen.request.answer import answer_to
    from imagegen.request.arguments import parse
    from imagegen.resolver.refusal import Refusal
    from imagegen.workflow.existing import check_registry, look_for
    from imagegen.workflow.project import House

    _check_usage(
        wishes, alone=check, saving=save is not None, about=owner or expires, build=build_it
    )
    check_registry(registry)
    house = House(overlay)
    if check:
        return _check(wishes, house, console, allow_unknown, registry)
    path = _where_to_save(house, save, owner, expires, force)
    spec = answer_to(parse(wishes, house.catalog), house.catalog, allow_unknown=allow_unknown)
    if isinstance(spec, Refusal):
        return _refuse(spec, console)
    existing = _same(house, spec)
    answer = existing or spec
    found = look_for(house, answer, registry)
    _show(answer, existing is not None, found, console)
    if path is not None:
        _save(path, spec, owner, expires, console)
    if build_it and not found.where:
        _build(house, answer, console, _again(wishes, answer, overlay), **building)
    return 0


def _check_usage(
    wishes: Sequence[str], *, alone: bool, saving: bool, about: str, build: bool
) -> None:
    """Raises ConfigError for options that say nothing together."""
    if not wishes:
        raise ConfigError.of("nothing is asked for", hint="such as `imagegen request torch=any`")
    if alone and (saving or build):
        text = "`--check` answers a queue: it neither saves nor builds"
        raise ConfigError.of(text, hint="leave out `--save` and `--build`, or ask for one request")
    if about and not saving:
        text = "`--owner` and `--expires` are kept with a saved request"
        raise ConfigError.of(text, hint="add `--save NAME`")


def _where_to_save(
    house: House, name: str | None, owner: str, expires: str, force: bool
) -> Path | None:
    """Checked before anything is asked, so that no answer is lost to a misspelt date."""
    if name is None:
        return None
    from imagegen.request.saved import check_saving

    return check_saving(name, owner, expires, house.payload, force=force)


def _same(house: House, spec: ImageSpec) -> ImageSpec | None:
    from imagegen.request.answer import same_image

    return same_image(spec, _cells(house, spec))


def _cells(house: House, spec: ImageSpec) -> list[ImageSpec]:
    """The cells of all matrices that may be this image. A wrong one is no answer, and no error."""
    from imagegen.errors import ImagegenError
    from imagegen.request.answer import may_be
    from imagegen.resolver.resolve import resolve_cells

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


def _check(
    files: Sequence[str], house: House, console: Console, allow_unknown: bool, registry: str
) -> int:
    """Answers to a queue of request files, a line (or a JSON document) each; the worst code."""
    worst, rows = 0, []
    for file in files:
        code, row, data = _answer(Path(file), house, allow_unknown, registry)
        worst = max(worst, code)
        rows.append((file, *row))
        console.data({"file": file, **data})
    console.table(("request", "answer", "image, or why there is none"), rows)
    return worst


def _answer(
    file: Path, house: House, allow_unknown: bool, registry: str
) -> tuple[int, tuple[str, str], dict[str, Any]]:
    """One of a queue: exit code, answer and image (or why there is none), and the JSON answer."""
    from imagegen.request.answer import answer_to
    from imagegen.request.saved import read_wishes
    from imagegen.resolver.refusal import Refusal
    from imagegen.workflow.existing import look_for

    try:
        wishes, about = read_wishes(file, house.catalog)
    except ConfigError as error:
        said = "; ".join(
            f"{one.text} ({one.hint})" if one.hint else one.text for one in error.problems
        )
        return error.exit_code, ("wrong", said), {"status": "wrong", "problems": said}
    answer = answer_to(wishes, house.catalog, allow_unknown=allow_unknown)
    if isinstance(answer, Refusal):
        text = answer.conflicts[0].text
        return ResolutionError.exit_code, ("impossible", text), {**answer.as_data(), **about}
    existing = _same(house, answer)
    spec = existing or answer
    found = look_for(house, spec, registry)
    data = _data(spec, existing is not None, found)
    return 0, (data["status"], found.reference or spec.tag), {**data, **about}


def _data(spec: ImageSpec, known: bool, found: Found) -> dict[str, Any]:
    from imagegen.request.answer import pinned

    return {
        "status": "exists" if found.where else "ok",
        "pins": pinned(spec),
        "image": found.reference or spec.tag,
        "cell": spec.cell.id if known else None,
        "warnings": [*spec.warnings, *filter(None, [found.note])],
        "conflicts": [],
        "alternatives": [],
    }


def _show(spec: ImageSpec, known: bool, found: Found, console: Console) -> None:
    console.data(_data(spec, known, found))
    console.table(
        ("component", "version", "asked for by"),
        [
            ("os", spec.os.id, ""),
            *((p.component, _version(p), "; ".join(p.via)) for p in spec.pins),
            *((name, value, "") for name, value in spec.given.items()),
        ],
        title=spec.tag,
    )
    for warning in filter(None, [*spec.warnings, found.note]):
        console.line(f"warning: {warning}")
    state = f"exists {found.where}" if found.where else "is not built yet"
    cell = f" (cell {spec.cell.id})" if known else ""
    console.line(f"{found.reference or spec.tag} {state}{cell}")


def _version(pin: Pin) -> str:
    return f"{pin.version} ({pin.release.variant})" if pin.release.variant else pin.version


def _save(path: Path, spec: ImageSpec, owner: str, expires: str, console: Console) -> None:
    from imagegen.request.saved import save

    save(path, spec, owner, expires)
    console.line(f"wrote {path}")


def _again(wishes: Sequence[str], spec: ImageSpec, overlay: Path | None) -> str:
    """The command that builds it, or the two that do: a request is in no matrix until it is."""
    more = ["--overlay", str(overlay)] if overlay else []
    if spec.cell.file:
        return shlex.join(["imagegen", "build", "--matrix", spec.cell.matrix, *more])
    saved = shlex.join(["imagegen", "request", *wishes, "--save", "NAME", *more])
    return f"{saved} && {shlex.join(['imagegen', 'build', '--matrix', 'NAME', *more])}"


def _build(
    house: House,
    spec: ImageSpec,
    console: Console,
    again: str,
    *,
    no_disk_check: bool,
    jobs: int | None,
    ca_bundle: Path | None,
    base: BaseMode | None,
) -> None:
    from imagegen.builder.failures import build_failures
    from imagegen.engine.client import connect
    from imagegen.journal.journal import open_journal
    from imagegen.journal.run import recorded
    from imagegen.workflow.plan import prices_of
    from imagegen.workflow.stages import BuildWishes, build_recipes

    book = open_journal()
    recipe = house.recipe_of(spec)
    wishes = BuildWishes(
        jobs=jobs,
        ca_bundle=ca_bundle,
        base=base,
        prices=prices_of(house, book),
        check_disk=not no_disk_check,
        again=again,
    )
    with recorded(book, "request") as run_id:
        records = build_recipes(connect(), [recipe], house.payload, wishes, console, book, run_id)
        failures = build_failures(records)
        if failures is not None:
            raise failures
    console.line(f"built {spec.tag}")
