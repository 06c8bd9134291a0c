"""A custom combination of versions: wishes -> one pinned image, or the facts that collide."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

import yaml

from imagegen import constraint
from imagegen.alternatives import nearest
from imagegen.conflict import conflict_of, fits
from imagegen.errors import ConfigError, Problem
from imagegen.matrix_checks import value_problem
from imagegen.model import Catalog, Cell, ImageSpec, Omission, Want
from imagegen.refusal import EVERY_IMAGE, Refusal, told
from imagegen.resolve import resolve_cell, space_of
from imagegen.space import DRIVER, Space
from imagegen.yamlfile import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


ALWAYS = ("python", "openmpi", "ssh", "validate")
"""What every training image of this house has, unless a wish says `none`."""

MATRIX = "request"
ABOUT = ("owner", "expires")
HOSTS = (DRIVER, "gpu", "instance", "device", "flavour")
BUILDS_DIFFER = ("flavour", "torchvision")
RDMA, OFED = "rdma", "ofed"
VALUES = ("torchvision",)
"""Names that another component's rows have values of, and that can be asked for."""

THE_REQUEST = "the request"
MOST_TAG = 127


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
    known = names(catalog)
    if name not in known:
        near = get_close_matches(name, known, 1)
        return Problem(
            f"`{name}` is nothing that can be asked for",
            evidence=(f"known: {', '.join(known)}",),
            hint=f"did you mean `{near[0]}`?" if near else "imagegen request --help",
        )
    if name == "os" or name in catalog.virtual:
        return None
    why = constraint.problem_with(value)
    return Problem(f"{name}: `{value}` {why}") if why else None


def names(catalog: Catalog) -> list[str]:
    """Every key of a request."""
    return ["os", *sorted({*catalog.components, *catalog.virtual, DRIVER, *VALUES, OFED})]


def as_cell(wishes: Mapping[str, str]) -> Cell:
    """The wishes as a cell of a matrix that no file holds."""
    everything = dict.fromkeys(ALWAYS, constraint.ANY) | dict(wishes)
    wants = [
        Want(RDMA if name == OFED else name, value, THE_REQUEST if name in wishes else EVERY_IMAGE)
        for name, value in everything.items()
        if value != constraint.NONE
    ]
    if everything.get(OFED, constraint.NONE) != constraint.NONE:
        wants.append(Want(RDMA, "mlnx-ofed", THE_REQUEST))
    omitted = [Omission(n, THE_REQUEST) for n, v in everything.items() if v == constraint.NONE]
    key = "\n".join(f"{name}={value}" for name, value in sorted(wishes.items()))
    name = hashlib.sha256(key.encode()).hexdigest()[:12]
    return Cell(MATRIX, name, {}, tuple(wants), tuple(omitted), "", "plain", "auto", "", 0)


def answer_to(
    wishes: Mapping[str, str], catalog: Catalog, *, allow_unknown: bool = False
) -> ImageSpec | Refusal:
    """The image that the wishes lead to, or why there is none and what is nearest to them."""
    cell = as_cell(wishes)
    space = space_of(catalog, cell.wants)
    cell = replace(cell, wants=_with_framework(space, cell.wants, allow_unknown))
    if fits(space, cell.wants, allow_unknown=allow_unknown):
        spec = resolve_cell(cell, catalog, space, allow_unknown=allow_unknown)
        return replace(spec, tag=_tag(spec, wishes))
    unknown = _unknown_values(wishes, catalog)
    conflict = conflict_of(space, cell.wants, allow_unknown=allow_unknown)
    wants = cell.wants
    if any(want.component == DRIVER for want in conflict.wants):
        space = Space(catalog, {*_drivers(wants), *driver_floors(catalog, conflict.wants)})
    instead = nearest(space, wants, conflict.wants, allow_unknown=allow_unknown)
    return Refusal(told(unknown, conflict, instead), (conflict,), tuple(instead))


def _with_framework(space: Space, wants: tuple[Want, ...], allow_unknown: bool) -> tuple[Want, ...]:
    """Where something needs one of several frameworks and none is asked for, one that fits."""
    asked = {want.component for want in wants}
    for want in wants:
        component = space.catalog.components.get(want.component)
        if component is None or not component.one_of or asked & set(component.one_of):
            continue
        for name in component.one_of:
            more = (*wants, Want(name, constraint.ANY, f"{want.component}, by default"))
            if fits(space, more, allow_unknown=allow_unknown):
                return more
    return wants


def _drivers(wants: Sequence[Want]) -> set[str]:
    return {want.constraint for want in wants if want.component == DRIVER}


def driver_floors(catalog: Catalog, wants: Sequence[Want]) -> set[str]:
    """The lowest drivers that the rows of these components speak of."""
    rows = [
        release
        for want in wants
        if want.component in catalog.components
        for release in catalog.components[want.component].releases
    ]
    return {
        wish.removeprefix(">=") for release in rows for wish in release.constrains.get(DRIVER, ())
    }


def _unknown_values(wishes: Mapping[str, str], catalog: Catalog) -> list[Problem]:
    """Values that no row of the catalog has: a request for them has no answer yet."""
    problems = []
    for name, value in wishes.items():
        known = list(catalog.os) if name == "os" else _known_names(name, catalog)
        if known and value.casefold() not in [one.casefold() for one in [*known, "any", "none"]]:
            near = get_close_matches(value, known, 1)
            what = "an OS" if name == "os" else f"a {name}"
            hint = f"did you mean `{near[0]}`?" if near else "add dockerfiles/os/ID.yaml"
            text = f"`{value}` is not {what} of the catalog"
            problems.append(Problem(text, evidence=(f"known: {', '.join(known)}",), hint=hint))
        found = (
            value_problem(catalog.components[name], value) if name in catalog.components else None
        )
        if found is not None:
            text, evidence, hint = found
            problems.append(Problem(text, evidence=tuple(evidence), hint=hint))
    return problems


def _known_names(name: str, catalog: Catalog) -> list[str]:
    return (
        [one.version for one in catalog.virtual[name].releases] if name in catalog.virtual else []
    )


def _tag(spec: ImageSpec, wishes: Mapping[str, str]) -> str:
    asked = [p for p in spec.pins if p.component in wishes and p.component not in ("validate",)]
    if OFED in wishes and spec.pin(RDMA) and RDMA not in wishes:
        asked += [pin for pin in spec.pins if pin.component == RDMA]
    parts = [spec.os.id, *(f"{pin.component}{pin.version}" for pin in asked)]
    parts += [spec.given[name] for name in ("device", "flavour") if name in wishes]
    parts += [f"no-{omission.component}" for omission in spec.cell.omitted]
    text = "-".join(part for part in parts if part).replace("+", "-")
    if len(text) > MOST_TAG:
        text = f"{text[: MOST_TAG - 13]}-{spec.cell.name}"
    return f"imagegen/{MATRIX}:{text}"


def read_wishes(path: Path, catalog: Catalog) -> dict[str, str]:
    """The wishes of a request file: a mapping of the keys of a request, with owner and expires.

    Raises ConfigError with everything that is wrong in it.
    """
    document = load(path, str(path))
    told_apart = {name: value for name, value in document.data.items() if name not in ABOUT}
    wrong = [
        Problem(f"`{name}` should be one value", str(path), document.line([name]), name)
        for name, value in told_apart.items()
        if not isinstance(value, str)
    ]
    if wrong:
        raise ConfigError(*wrong)
    return parse([f"{name}={value}" for name, value in told_apart.items()], catalog)


def pinned(spec: ImageSpec) -> dict[str, str]:
    """All that the answer settles: the OS, components, and values such as torchvision."""
    return {"os": spec.os.id} | {pin.component: pin.version for pin in spec.pins} | dict(spec.given)


def may_be(cell: Cell, spec: ImageSpec) -> bool:
    """Whether a cell can come to the same pins: it speaks of nothing that they lack, or exclude."""
    for want in cell.wants:
        pin = spec.pin(want.component)
        if want.component == "os":
            if want.constraint not in (spec.os.id, constraint.ANY):
                return False
        elif pin is None:
            if want.component not in (*VALUES, *HOSTS):
                return False
        elif constraint.is_version(want.constraint) and not any(
            constraint.matches(want.constraint, name) for name in (pin.version, *pin.release.also)
        ):
            return False
    return True


def same_image(spec: ImageSpec, others: Sequence[ImageSpec]) -> ImageSpec | None:
    """A cell that pins exactly the same, so that a request is answered with what exists."""
    return next((other for other in others if _pins(other) == _pins(spec)), None)


def _pins(spec: ImageSpec) -> tuple[str, frozenset[tuple[str, str, str]]]:
    rows = {(pin.component, pin.version, pin.release.variant) for pin in spec.pins}
    rows |= {(name, value, "") for name, value in spec.given.items() if name in BUILDS_DIFFER}
    return spec.os.id, frozenset(rows)


def as_matrix(name: str, spec: ImageSpec, owner: str, expires: str) -> str:
    """The text of a matrix file that pins exactly this image."""
    repository, _, tag = spec.tag.rpartition(":")
    document: dict[str, object] = {"name": name, "title": "saved from a request"}
    document |= {key: value for key, value in (("owner", owner), ("expires", expires)) if value}
    document |= {
        "tag": f"{repository.rpartition('/')[0]}/{name}:{tag}",
        "axes": {"os": [spec.os.id]},
        "components": {pin.component: pin.version for pin in spec.pins}
        | {name: value for name, value in spec.given.items() if name in BUILDS_DIFFER},
    }
    return yaml.safe_dump(document, sort_keys=False)
