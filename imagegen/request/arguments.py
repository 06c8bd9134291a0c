"""Read the `KEY=VALUE` arguments of a request: constraints, then a cell."""

from __future__ import annotations

import hashlib
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from imagegen.errors import ConfigError, Problem
from imagegen.model import constraint
from imagegen.model.cell import Cell, Omission, Want
from imagegen.resolver.candidates import DRIVER, OS
from imagegen.resolver.refusal import EVERY_IMAGE, THE_REQUEST
from imagegen.text import FEW, few, few_like

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from imagegen.model.catalog import Catalog

MATRIX = "request"
OPEN = (constraint.ANY, constraint.NONE)
HOST_ONLY = ("nvidia-fabricmanager", "fabricmanager", "nv-peer-memory", "nvidia-peermem", "tfabric")
"""Services and modules of a host (rule host-only)."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DRIVER = re.compile(r"(?:>=)?\d+(?:\.\d+)*")
_OPERATOR = re.compile(r"([a-z0-9-]+)\s*(>=|<=|==|~=|!=|<|>|=)\s*(.*)", re.DOTALL)


def names(catalog: Catalog) -> list[str]:
    """List every key of a request."""
    asked = (*catalog.request_values, *catalog.request_keys)
    return [OS, *sorted({*catalog.components, *catalog.virtual, DRIVER, *asked})]


def parse(arguments: Sequence[str], catalog: Catalog) -> dict[str, str]:
    """Read `KEY=VALUE` arguments as a map of component (or `os`) to constraint.

    Raises ConfigError with everything that is wrong in the arguments.
    """
    found: dict[str, str] = {}
    problems = []
    known = names(catalog)
    for text in arguments:
        name, value = _split(text, known)
        problem = _problem(name, value, known, catalog) if value else _malformed(text)
        if problem is None and name in found:
            problem = Problem(f"`{name}` is given twice", hint="give it once")
        if problem is not None:
            problems.append(problem)
        found[name] = value
    if problems:
        raise ConfigError(*problems)
    return found


def _split(argument: str, known: Sequence[str]) -> tuple[str, str]:
    """Split `torch=1.13`, or `torch>=1.12,<2` as pip writes it; the value is empty for neither."""
    as_pip = _OPERATOR.fullmatch(argument)
    if as_pip and as_pip[1] in known and as_pip[2] != "=" and as_pip[3]:
        return as_pip[1], as_pip[2] + as_pip[3]
    name, _, value = argument.partition("=")
    return name, value


def _malformed(argument: str) -> Problem:
    meant = _OPERATOR.fullmatch(argument)
    hint = f"did you mean `{meant[1]}='{meant[2]}{meant[3]}'`?" if meant and meant[3] else ""
    text = f"{argument!a} is not of the form KEY=VALUE".replace("'", "`")
    return Problem(text, hint=hint or "such as `torch=1.13.1`")


def _problem(name: str, value: str, known: Sequence[str], catalog: Catalog) -> Problem | None:
    if name not in known:
        return _unknown_name(name, value, known)
    if (name, value) == (OS, constraint.NONE):
        return Problem("every image stands on an OS", hint="`os=any`, or nothing at all")
    why = "" if value in OPEN else _why_not(name, value, catalog)
    if not why:
        return None
    return Problem(f"{name}: {quoted(value)} {why}", hint=_near_value(name, value, catalog))


def _why_not(name: str, value: str, catalog: Catalog) -> str:
    if len(value) > constraint.LONGEST:
        return f"is longer than {constraint.LONGEST} characters"
    if name == OS or name in catalog.virtual:
        return "" if _NAME.fullmatch(value) else "has characters that no name has"
    if name == DRIVER:
        return "" if _DRIVER.fullmatch(value) else "is not the version of a driver"
    if _version_of_index(name, value, catalog):
        return "is the name of a wheel index, not a version"
    return constraint.problem_with(value)


def _version_of_index(name: str, value: str, catalog: Catalog) -> str:
    """Return the version that the name of a wheel index means (11.3 for `cu113`); else empty."""
    component = catalog.components.get(name)
    prefix = component.request.index_prefix if component else ""
    found = re.fullmatch(rf"{prefix}(\d{{1,2}})(\d)", value) if prefix else None
    return f"{found[1]}.{found[2]}" if found else ""


def _unknown_name(name: str, value: str, known: Sequence[str]) -> Problem:
    if name.casefold().replace("_", "-").startswith(HOST_ONLY):
        text = f"{quoted(name)} belongs to the host, bound to its driver or kernel (rule host-only)"
        return Problem(text, hint="leave it out: no image has it")
    bare = re.sub(r"[^a-z0-9-]+", "-", name.casefold()).strip("-")
    operator = name[len(name.rstrip("<>~!= ")) :].strip()
    near = [bare] if bare in known else get_close_matches(bare, known, 1)
    meant = f"{near[0]}='{operator}={value}'" if near and operator else "".join(near)
    return Problem(
        f"{quoted(name)} is not a key of a request",
        evidence=(f"known: {few_like(bare, known, 'imagegen catalog')}",),
        hint=f"did you mean `{meant}`?" if near else "such as `torch=1.13.1`",
    )


def quoted(text: str) -> str:
    """Quote a text so that control characters never reach a terminal."""
    return f"`{text}`" if text.isprintable() else f"`{text!a}`"


def _near_value(name: str, value: str, catalog: Catalog) -> str:
    """Suggest what a value that is no constraint may mean."""
    if name == DRIVER:
        return "what the hosts have at least, such as `driver=470.57.02`"
    version = _version_of_index(name, value, catalog)
    if version:
        return f"did you mean `{name}={version}`?"
    bare = value.strip("=v* .").replace("_", "-")
    component = catalog.components.get(name)
    if bare != value and not constraint.problem_with(bare):
        return f"did you mean `{name}={bare}`?"
    known = [*component.variants, *component.aliases] if component else []
    near = get_close_matches(bare.casefold(), known, 1)
    return f"did you mean `{name}={near[0]}`?" if near else "such as `1.13.1` or `>=1.11,<1.13`"


def meant(constraints: Mapping[str, str], catalog: Catalog) -> dict[str, str]:
    """Drop constraints that mean nothing: an open GPU or machine, and `ofed=none`.

    A driver is the lowest one of the hosts, so `>=470` becomes 470.
    """
    hosts = (DRIVER, *catalog.request_values, *catalog.virtual)
    for key, (component, variant) in catalog.request_keys.items():
        none = constraints.get(key) == constraint.NONE
        if none and constraints.get(component) not in (key, variant):
            constraints = {name: value for name, value in constraints.items() if name != key}
    found = {
        name: value
        for name, value in constraints.items()
        if not (name in hosts and value == constraint.NONE)
        and not (name in (DRIVER, *catalog.virtual) and value == constraint.ANY)
    }
    if DRIVER in found:
        found[DRIVER] = found[DRIVER].removeprefix(">=")
    return found


def as_cell(constraints: Mapping[str, str], catalog: Catalog) -> Cell:
    """Make a cell of these constraints, in a matrix without a file."""
    everything = dict.fromkeys(catalog.in_every_image, constraint.ANY) | dict(constraints)
    component = {name: name for name in everything}
    component |= {key: name for key, (name, _) in catalog.request_keys.items()}
    wants = [
        Want(component[name], value, THE_REQUEST if name in constraints else EVERY_IMAGE)
        for name, value in everything.items()
        if value != constraint.NONE
    ]
    wants += [
        Want(name, variant, THE_REQUEST)
        for key, (name, variant) in catalog.request_keys.items()
        if constraints.get(key, constraint.NONE) != constraint.NONE
    ]
    omitted = [
        Omission(component[name], THE_REQUEST)
        for name, value in everything.items()
        if value == constraint.NONE
    ]
    key = "\n".join(f"{name}={value}" for name, value in sorted(constraints.items()))
    name = hashlib.sha256(key.encode()).hexdigest()[:12]
    return Cell(MATRIX, name, {}, tuple(wants), tuple(omitted), "", "plain", "auto", "", 0)


def unknown_values(constraints: Mapping[str, str], catalog: Catalog) -> list[Problem]:
    """Report values that no row of the catalog has: a request for them has no answer yet."""
    return [
        problem for name, value in constraints.items() for problem in _unknown(name, value, catalog)
    ]


def _unknown(name: str, value: str, catalog: Catalog) -> Iterator[Problem]:
    if name in catalog.components:
        from imagegen.matrix.checks import value_problem

        found = value_problem(catalog.components[name], value)
        if found is not None:
            text, evidence, hint = found
            yield Problem(text, evidence=tuple(evidence), hint=hint)
        return
    known = _known_names(name, catalog)
    is_one = _same_version if name in catalog.request_values else _same_name
    if not known or value in OPEN or any(is_one(value, one) for one in known):
        return
    near = get_close_matches(value.casefold(), [one.casefold() for one in known], 1)
    spelled = [one for one in known if near and one.casefold() == near[0]]
    what = "an OS" if name == OS else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
    hint = f"did you mean `{spelled[0]}`?" if spelled else "take one that is known"
    text = f"`{value}` is not {what} of the catalog"
    if is_one is _same_name:
        listed = few_like(value, known, f"imagegen catalog {name}")
    else:
        listed = few(known, constraint.nearest(value, known, FEW), "imagegen catalog")
    yield Problem(text, evidence=(f"known: {listed}",), hint=hint)


def _same_version(value: str, known: str) -> bool:
    return constraint.matches(value, known)


def _same_name(value: str, known: str) -> bool:
    return value.casefold() == known.casefold()


def _known_names(name: str, catalog: Catalog) -> list[str]:
    """List all values of a name that is no component; empty if it may have any version."""
    if name == OS:
        return list(catalog.os)
    if name in catalog.virtual:
        rows = catalog.virtual[name].releases
        return [text for row in rows for text in (row.version, *row.aliases)]
    every = [release for one in catalog.components.values() for release in one.releases]
    found = {release.provides[name] for release in every if name in release.provides}
    return sorted((one for one in found if constraint.is_version(one)), key=constraint.version_key)
