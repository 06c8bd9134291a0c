"""`imagegen request` pins a combination of versions, or says why there is none."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.config.payload import MATRICES_FOLDER
from imagegen.errors import ConfigError, ImagegenError, RenderError, ResolutionError
from imagegen.request.answer import may_be, same_image
from imagegen.request.arguments import parse
from imagegen.request.existing import check_registry, image_of, tagged_images
from imagegen.request.like import compare
from imagegen.request.like_report import show_like
from imagegen.request.proven import ground_of, proven_answer_to
from imagegen.request.report import Answer, as_data, next_command, show
from imagegen.request.saved import check_saving, read_request, save
from imagegen.resolver.refusal import Refusal
from imagegen.resolver.resolve import resolve_cells
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from imagegen.console.console import Console
    from imagegen.model.image import ImageSpec
    from imagegen.request.existing import Found
    from imagegen.request.like_report import Like


@dataclass(frozen=True)
class RequestOptions:
    """The options of a request: `KEY=VALUE` arguments, or the files of a queue.

    The image is also searched for in `registry`. `save` is the name of the matrix to write, with
    `owner` and `expires`; `overwrite` allows to replace a matrix of that name. `why`
    also shows who asked for what, and where it stands. With `build` the image is built afterwards,
    so there is nothing to run next.
    """

    arguments: tuple[str, ...]
    overlay: Path | None = None
    allow_unknown: bool = False
    registry: str = ""
    save: str | None = None
    overwrite: bool = False
    owner: str = ""
    expires: str = ""
    why: bool = False
    build: bool = False


@dataclass(frozen=True)
class Answered:
    """The exit code of a request, and its image if it is not built yet."""

    exit_code: int
    to_build: ImageSpec | None = None


def request(options: RequestOptions, console: Console, like: Like | None = None) -> Answered:
    """Answer one request; with `like`, beside the image that it was made from.

    Raises ConfigError, and ResolutionError for a request without an answer.
    """
    check_registry(options.registry)
    project = Project(options.overlay)
    path = _path_to_save(project, options)
    constraints = parse(options.arguments, project.catalog)
    answer = proven_answer_to(constraints, project.catalog, allow_unknown=options.allow_unknown)
    if isinstance(answer, Refusal):
        return Answered(_refuse(answer, console, why=options.why))
    answered = _with_image(project, answer, options.registry)
    if path is not None:
        save(path, answer, options.owner, options.expires)
        answered = _of_saved(path.stem, options)
    command = "" if options.build else _next_command(answered, project, options)
    answered = replace(answered, command=command)
    if like is not None:
        show_like(answered, like, compare(like.found, answer, like.nearest, like.given), console)
    else:
        show(answered, console, why=options.why)
    if path is not None:
        console.line(f"wrote {path}")
    return Answered(0, None if answered.found.where else answered.spec)


def _of_saved(name: str, options: RequestOptions) -> Answer:
    """Find the image of a saved request, which has the name and the tag of its own matrix."""
    project = Project(options.overlay)
    (spec,) = project.family(name).specs
    return Answer(spec, _find(project, spec, options.registry), spec.cell.id)


def answer_queue(options: RequestOptions, console: Console) -> int:
    """Answer each file of a queue with a line (or a JSON document); return the worst exit code."""
    check_registry(options.registry)
    project = Project(options.overlay)
    worst, rows = 0, []
    for file in options.arguments:
        code, row, data = _answer_file(Path(file), project, options)
        worst = max(worst, code)
        rows.append((file, *row))
        console.data({"file": file, **data})
    console.table(("request", "answer", "image, or why there is none"), rows)
    return worst


def _path_to_save(project: Project, options: RequestOptions) -> Path | None:
    """Return the path to save to, after checking the options for it.

    They are checked before the request is answered, so that a misspelt date loses no answer.
    """
    if options.save is None:
        return None
    about = (options.owner, options.expires)
    return check_saving(
        options.save, *about, project.payload, options.overlay, force=options.overwrite
    )


def _possible_cells(project: Project, spec: ImageSpec) -> list[ImageSpec]:
    """List the cells of all matrices that may be this image.

    A cell that cannot be resolved is left out, without an error.
    """
    found: list[ImageSpec] = []
    for cells in project.cells().values():
        with suppress(ImagegenError):
            possible = [cell for cell in cells if may_be(cell, spec, project.catalog)]
            found += resolve_cells(possible, project.catalog.buildable)
    return found


def _find(project: Project, spec: ImageSpec, registry: str) -> Found:
    """Find the image, if it exists already; render the recipe only if an image has its tag."""
    images, digest = tagged_images(spec.tag, registry), ""
    if images.any:
        with suppress(RenderError):
            digest = project.recipe_of(spec).digest
    return image_of(images, digest)


def _with_image(project: Project, spec: ImageSpec, registry: str) -> Answer:
    """Find the image of an answer: a cell of a matrix with the same pins, or one of its own."""
    cell = same_image(spec, _possible_cells(project, spec))
    image = cell or spec
    return Answer(
        image,
        _find(project, image, registry),
        cell.cell.id if cell else "",
        ground=ground_of(image, project.catalog),
    )


def _next_command(answer: Answer, project: Project, options: RequestOptions) -> str:
    flags = ["--allow-unknown"] if options.allow_unknown else []
    flags += ["--overlay", str(options.overlay)] if options.overlay else []

    def is_free(name: str) -> bool:
        return project.payload.find(f"{MATRICES_FOLDER}/{name}.yaml") is None

    return next_command(answer, options.arguments, flags, options.save or "", is_free)


def _refuse(refusal: Refusal, console: Console, *, why: bool) -> int:
    """Report a refusal: as JSON on standard output, or for people as any other error."""
    if not console.wants_json:
        raise ResolutionError(*refusal.problems(why=why))
    console.data(refusal.as_data())
    return ResolutionError.exit_code


def _answer_file(
    file: Path, project: Project, options: RequestOptions
) -> tuple[int, tuple[str, str], dict[str, object]]:
    """Answer one file of a queue: exit code, answer, image (or why there is none), and JSON."""
    try:
        constraints, about = read_request(file, project.catalog)
    except ConfigError as error:
        return error.exit_code, *_wrong(error)
    answer = proven_answer_to(constraints, project.catalog, allow_unknown=options.allow_unknown)
    if isinstance(answer, Refusal):
        row = (answer.status, answer.text)
        return ResolutionError.exit_code, row, {**answer.as_data(), **about}
    data = as_data(_with_image(project, answer, options.registry))
    return 0, (data["status"], str(data["image"])), {**data, **about}


def _wrong(error: ConfigError) -> tuple[tuple[str, str], dict[str, object]]:
    text = "; ".join(f"{one.text} ({one.hint})" if one.hint else one.text for one in error.problems)
    return ("wrong", text), {"status": "wrong", "problems": text}
