"""A custom combination of versions: wishes -> one pinned image, or the facts that collide."""

from __future__ import annotations

import hashlib
from difflib import get_close_matches
from typing import TYPE_CHECKING

import yaml

from imagegen import constraint
from imagegen.errors import ConfigError, Problem, ResolutionError
from imagegen.matrix_checks import value_problem
from imagegen.model import Catalog, Cell, ImageSpec, Omission, Want
from imagegen.resolve import resolve_cell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ALWAYS = ("python", "openmpi", "ssh", "validate")
"""What every training image of this house has, unless a wish says `none`."""

MATRIX = "request"


def parse(wishes: Sequence[str], catalog: Catalog) -> dict[str, str]:
    """`KEY=VALUE` arguments -> component (or `os`) -> constraint.

    Raises ConfigError with every argument that is not a wish.
    """
    found: dict[str, str] = {}
    problems = []
    for wish in wishes:
        name, equals, value = wish.partition("=")
        problem = _problem(name, value, catalog) if equals and value else _not_a_wish(wish)
        if problem is None and name in found:
            problem = Problem(f"`{name}` is wished for twice", hint="give it once")
        if problem is not None:
            problems.append(problem)
        found[name] = value
    if problems:
        raise ConfigError(*problems)
    return found


def _not_a_wish(wish: str) -> Problem:
    return Problem(f"`{wish}` is not of the form KEY=VALUE", hint="such as `torch=1.13.1`")


def _problem(name: str, value: str, catalog: Catalog) -> Problem | None:
    known = ["os", *sorted(catalog.components)]
    if name not in known:
        near = get_close_matches(name, known, 1)
        return Problem(
            f"`{name}` is nothing that can be asked for",
            evidence=(f"known: {', '.join(known)}",),
            hint=f"did you mean `{near[0]}`?" if near else "imagegen request --help",
        )
    if name == "os":
        return None
    why = constraint.problem_with(value)
    return Problem(f"{name}: `{value}` {why}") if why else None


def as_cell(wishes: Mapping[str, str]) -> Cell:
    """The wishes as a cell of a matrix that no file holds."""
    everything = dict.fromkeys(ALWAYS, constraint.ANY) | dict(wishes)
    wants = [
        Want(name, value, "the request" if name in wishes else "every image")
        for name, value in everything.items()
        if value != constraint.NONE
    ]
    omitted = [Omission(n, "the request") for n, v in everything.items() if v == constraint.NONE]
    key = "\n".join(f"{name}={value}" for name, value in sorted(wishes.items()))
    name = hashlib.sha256(key.encode()).hexdigest()[:12]
    return Cell(MATRIX, name, {}, tuple(wants), tuple(omitted), "", "plain", "auto", "", 0)


def resolve_request(wishes: Mapping[str, str], catalog: Catalog) -> ImageSpec:
    """The pinned image that the wishes lead to, its tag made of what was asked for.

    Raises ResolutionError naming what does not fit.
    """
    unknown = _unknown_values(wishes, catalog)
    if unknown:
        raise ResolutionError(*unknown)
    try:
        spec = resolve_cell(as_cell(wishes), catalog)
    except ResolutionError as error:
        evidence = tuple(line for problem in error.problems for line in problem.evidence)
        hint = "change one of them, or leave it open: `KEY=any`"
        raise ResolutionError(
            Problem("nothing satisfies this request", evidence=evidence, hint=hint)
        ) from None
    return ImageSpec(spec.cell, spec.os, spec.pins, _tag(spec, wishes))


def _unknown_values(wishes: Mapping[str, str], catalog: Catalog) -> list[Problem]:
    """Values that no row of the catalog has: a request for them has no answer yet."""
    problems = []
    for name, value in wishes.items():
        if name == "os":
            if value not in catalog.os:
                known = f"known: {', '.join(sorted(catalog.os))}"
                text = f"`{value}` is not an OS of the catalog"
                problems.append(Problem(text, evidence=(known,), hint="add dockerfiles/os/ID.yaml"))
            continue
        found = value_problem(catalog.components[name], value)
        if found is not None:
            text, evidence, hint = found
            problems.append(Problem(text, evidence=tuple(evidence), hint=hint))
    return problems


def _tag(spec: ImageSpec, wishes: Mapping[str, str]) -> str:
    asked = [p for p in spec.pins if p.component in wishes and p.component not in ("validate",)]
    parts = [spec.os.id, *(f"{pin.component}{pin.version}" for pin in asked)]
    parts += [f"no-{omission.component}" for omission in spec.cell.omitted]
    text = "-".join(parts).replace("+", "-")
    return f"imagegen/{MATRIX}:{text}"


def same_image(spec: ImageSpec, others: Sequence[ImageSpec]) -> ImageSpec | None:
    """A cell that pins exactly the same, so that a request is answered with what exists."""
    return next((other for other in others if _pins(other) == _pins(spec)), None)


def _pins(spec: ImageSpec) -> tuple[str, frozenset[tuple[str, str, str]]]:
    rows = {(pin.component, pin.version, pin.release.variant) for pin in spec.pins}
    return spec.os.id, frozenset(rows)


def as_matrix(name: str, spec: ImageSpec, owner: str, expires: str) -> str:
    """The text of a matrix file that pins exactly this image."""
    repository, _, tag = spec.tag.rpartition(":")
    document: dict[str, object] = {"name": name, "title": "saved from a request"}
    document |= {key: value for key, value in (("owner", owner), ("expires", expires)) if value}
    document |= {
        "tag": f"{repository.rpartition('/')[0]}/{name}:{tag}",
        "axes": {"os": [spec.os.id]},
        "components": {pin.component: pin.version for pin in spec.pins},
    }
    return yaml.safe_dump(document, sort_keys=False)
