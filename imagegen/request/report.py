"""Show the answer to a request: for people on one screen, for programs as data."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import TYPE_CHECKING

from imagegen.model.image import base_of
from imagegen.renderer.ways import in_words
from imagegen.request.answer import pinned
from imagegen.request.defaults import CPU, DEVICE, WITHOUT_GPU

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from imagegen.console.console import Console
    from imagegen.model.image import ImageSpec, Pin
    from imagegen.request.existing import Found
    from imagegen.request.proven import Ground
    from imagegen.resolver.refusal import AnswerData


@dataclass(frozen=True)
class Answer:
    """An answer with its image.

    `cell` is its name in a matrix, empty if it is in none; `command` is what a user runs next,
    `ground` is what it rests on.
    """

    spec: ImageSpec
    found: Found
    cell: str = ""
    command: str = ""
    ground: Ground | None = None


def as_data(answer: Answer) -> AnswerData:
    """Make the answer as data, with its pins, and the file and line of each."""
    spec, found = answer.spec, answer.found
    return {
        "status": "exists" if found.where else "ok",
        "pins": pinned(spec),
        "rows": {pin.component: f"{pin.release.file}:{pin.release.line}" for pin in spec.pins},
        "image": found.reference or spec.tag,
        "cell": answer.cell or None,
        "warnings": [*spec.warnings, *filter(None, [found.note, _failure(answer)])],
        "rests_on": _ground_data(answer.ground),
        "conflicts": [],
        "alternatives": [],
    }


def show(answer: Answer, console: Console, *, why: bool = False) -> None:
    """Print an answer: its pins, a line for each warning, what to run next.

    `why` adds who asked for each component, and the file and line of its release.
    """
    spec = answer.spec
    console.data(as_data(answer))
    columns, row = (_LONG, _long_row) if why else (_SHORT, _short_row)
    os = ("os", spec.os.id, base_of(spec).image, *(("", "") if why else ()))
    rows = [os, *(row(pin) for pin in spec.pins)]
    console.table(columns, rows, title=title_of(answer))
    if spec.given:
        console.line(", ".join(f"{name} {value}" for name, value in spec.given.items()))
    if answer.ground:
        console.line(answer.ground.text)
    for line in warning_lines(answer):
        console.line(line)
    for line in next_lines(answer):
        console.line(line)


def title_of(answer: Answer) -> str:
    """Name the image of an answer, and say whether it exists."""
    return f"{answer.found.reference or answer.spec.tag}  ({_state(answer)})"


def _failure(answer: Answer) -> str:
    return answer.ground.warning if answer.ground else ""


def _ground_data(ground: Ground | None) -> dict[str, object]:
    """Write what an answer rests on for programs."""
    if ground is None:
        return {}
    proof = asdict(ground.proof) if ground.proof else None
    return {"level": ground.level, "because": ground.because, "proof": proof}


def warning_lines(answer: Answer) -> list[str]:
    """Write each warning of an answer; a long one continues below, with an indent."""
    texts = filter(None, [*answer.spec.warnings, answer.found.note, _failure(answer)])
    return [line for text in texts for line in _folded(f"warning: {text}")]


def _folded(text: str) -> list[str]:
    return fill(text, COLUMNS, subsequent_indent="  ", break_long_words=False).split("\n")


def next_lines(answer: Answer) -> list[str]:
    """Write what a user runs next, empty where that is nothing."""
    return _wrapped(answer.command) if answer.command else []


def _state(answer: Answer) -> str:
    """Say whether the image exists, which cell it is, and if it is for the CPU without a wish."""
    where = answer.found.where
    cell = f", cell {answer.cell}" if answer.cell else ""
    cpu = ", computes on the CPU" if _is_for_the_cpu(answer.spec) else ""
    return (f"exists {where}" if where else "not built yet") + cpu + cell


def _is_for_the_cpu(spec: ImageSpec) -> bool:
    """Say whether an image computes on the CPU though no constraint asks for that."""
    askers = {want.asked_by for want in spec.cell.wants if want.component == DEVICE}
    if spec.given.get(DEVICE) == CPU and askers - {WITHOUT_GPU}:
        return False
    lacks = any("computes on the CPU here" in warning for warning in spec.warnings)
    return spec.given.get(DEVICE) == CPU or lacks


def _wrapped(command: str) -> list[str]:
    """Write a command to paste; a long one continues on a new line after its `&&`."""
    text = f"next: {command}"
    return [text] if len(text) <= COLUMNS else text.replace(" && ", " &&\n      ").split("\n")


COLUMNS = 100
"""The width of an ordinary answer, which has at most 24 lines."""

_SHORT = ("component", "version", "from")
_LONG = ("component", "version", "where it comes from", "asked for by", "row")


def _short_row(pin: Pin) -> tuple[str, ...]:
    return pin.component, _version(pin), in_words(pin.release)


def _long_row(pin: Pin) -> tuple[str, ...]:
    release = pin.release
    return pin.component, _version(pin), release.origin, "; ".join(pin.via), release.row


def _version(pin: Pin) -> str:
    return f"{pin.version} ({pin.release.variant})" if pin.release.variant else pin.version


def next_command(
    answer: Answer,
    arguments: Sequence[str],
    options: Sequence[str],
    saved: str,
    is_free: Callable[[str], bool],
) -> str:
    """Write the command to run next.

    It validates an image that exists, builds a cell, or saves the request under a free name and
    builds that. `arguments` and `options` are those of the request; `saved` is the name of its
    matrix, if it was saved.
    """
    if answer.found.where:
        return f"imagegen validate {answer.found.reference}"
    overlay = options[options.index("--overlay") :][:2] if "--overlay" in options else ()
    if answer.cell and not saved:
        matrix, _, name = answer.cell.partition("/")
        return shlex.join(["imagegen", "build", "--matrix", matrix, name, *overlay])
    build = shlex.join(["imagegen", "build", "--matrix", saved or "NAME", *overlay])
    if saved:
        return build
    name = _free_name(arguments, is_free)
    save = shlex.join(["imagegen", "request", *arguments, *options, "--save", name])
    return f"{save} && {build.replace('NAME', name, 1)}"


def _free_name(arguments: Sequence[str], is_free: Callable[[str], bool]) -> str:
    """Make a free name for a matrix from the first argument: `torch-1-13`."""
    words = re.findall("[a-z0-9]+", arguments[0].casefold())
    name = "-".join(words)
    number = 1
    while not is_free(name):
        number += 1
        name = "-".join([*words, str(number)])
    return name
