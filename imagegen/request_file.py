"""Requests as files: those of a queue, and those saved as a matrix with who asked, until when."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import TYPE_CHECKING

import yaml

from imagegen.errors import ConfigError, Problem
from imagegen.request import BUILDS_DIFFER
from imagegen.wishes import parse, quoted
from imagegen.yamlfile import load

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model import Catalog, ImageSpec

ABOUT = ("owner", "expires")


def today() -> date:
    """The day in UTC, by which a request expires."""
    return datetime.now(timezone.utc).date()


def read_wishes(path: Path, catalog: Catalog) -> tuple[dict[str, str], dict[str, str]]:
    """Of a request file (a mapping of the keys of a request): the wishes, and owner and expires.

    Raises ConfigError with everything that is wrong in it.
    """
    document = load(path, str(path))
    wrong = [
        Problem(f"`{name}` should be one value", str(path), document.line([name]), name)
        for name, value in document.data.items()
        if not isinstance(value, str)
    ]
    if wrong:
        raise ConfigError(*wrong)
    about = {name: value for name, value in document.data.items() if name in ABOUT}
    found = about_problems(about.get("owner", ""), about.get("expires", ""))
    wishes = [f"{name}={value}" for name, value in document.data.items() if name not in ABOUT]
    try:
        asked = parse(wishes, catalog)
    except ConfigError as error:
        raise ConfigError(*error.problems, *found) from error
    if not asked:
        found.append(Problem("nothing is asked for", str(path), hint="such as `torch: 1.13.1`"))
    if found:
        raise ConfigError(*found)
    return asked, about


def about_problems(owner: str, expires: str) -> list[Problem]:
    """What is wrong with who asked, and until when it is needed (an ISO date, not in the past)."""
    problems = []
    if not owner.isprintable():
        problems.append(Problem("the owner has characters that cannot be printed", hint="a name"))
    if not expires:
        return problems
    hint = f"a day from today on, such as `{today().replace(month=12, day=31).isoformat()}`"
    try:
        day = date.fromisoformat(expires) if len(expires) == len("2026-12-31") else None
    except ValueError:
        day = None
    if day is None:
        problems.append(Problem(f"{quoted(expires)} is not a date YYYY-MM-DD", hint=hint))
    elif day < today():
        problems.append(Problem(f"`{expires}` is in the past", hint=hint))
    return problems


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
