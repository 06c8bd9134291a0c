"""Read and write requests as files: those of a queue, and those saved as a matrix."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.config.patterns import NAME
from imagegen.config.yamlfile import load
from imagegen.errors import ConfigError, Problem
from imagegen.model import constraint
from imagegen.request.arguments import parse, quoted

if TYPE_CHECKING:
    from imagegen.config.payload import Payload
    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec, Pin

ABOUT = ("owner", "expires")


def today() -> date:
    """Return today's date in UTC, which decides whether a request has expired."""
    return datetime.now(timezone.utc).date()


def read_request(path: Path, catalog: Catalog) -> tuple[dict[str, str], dict[str, str]]:
    """Read a request file, a mapping of the keys of a request.

    The result is its constraints, and its owner and expiry date. Raises ConfigError with everything
    that is wrong in it.
    """
    document = load(path, str(path))
    texts = {name: value for name, value in document.data.items() if isinstance(value, str)}
    wrong = [
        Problem(f"`{name}` should be one value", str(path), document.line([name]), name)
        for name in document.data
        if name not in texts
    ]
    if wrong:
        raise ConfigError(*wrong)
    about = {name: value for name, value in texts.items() if name in ABOUT}
    found = about_problems(about.get("owner", ""), about.get("expires", ""))
    arguments = [f"{name}={value}" for name, value in texts.items() if name not in ABOUT]
    try:
        asked = parse(arguments, catalog)
    except ConfigError as error:
        raise ConfigError(*error.problems, *found) from error
    if not asked:
        found.append(Problem("nothing is asked for", str(path), hint="such as `torch: 1.13.1`"))
    if found:
        raise ConfigError(*found)
    return asked, about


def about_problems(owner: str, expires: str) -> list[Problem]:
    """Check the owner of a request, and its expiry date (an ISO date, not in the past)."""
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
    """Write a matrix file that pins exactly this image."""
    import yaml

    repository, _, tag = spec.tag.rpartition(":")
    document: dict[str, object] = {"name": name, "title": "saved from a request"}
    document |= {key: value for key, value in (("owner", owner), ("expires", expires)) if value}
    document |= {"allow_unknown": True} if spec.cell.allow_unknown else {}
    document |= {
        "tag": f"{repository.rpartition('/')[0]}/{name}:{tag}",
        "axes": {"os": [spec.os.id]},
        "components": {pin.component: _exactly(pin) for pin in spec.pins}
        | dict(spec.given)
        | {omission.component: constraint.NONE for omission in spec.cell.omitted},
    }
    return yaml.safe_dump(document, sort_keys=False)


def _exactly(pin: Pin) -> str:
    """Write the constraint that selects this row and no other of the same version."""
    variant = pin.release.variant
    return f"{pin.version} {variant}" if constraint.is_variant(variant) else pin.version


def check_saving(
    name: str, owner: str, expires: str, payload: Payload, overlay: Path | None, *, force: bool
) -> Path:
    """Return the path to save a request of this name to, below the overlay if there is one.

    Raises ConfigError with everything that is wrong: the name, the owner, the date, and an existing
    matrix of that name (unless `force`).
    """
    problems = about_problems(owner, expires)
    inside = Path("matrices", f"{name}.yaml")
    path = overlay / inside if overlay else inside
    if not re.fullmatch(NAME, name):
        text = f"{quoted(name)} cannot name a matrix"
        problems.insert(0, Problem(text, hint="lower-case letters, digits and `-`"))
    elif not force and (path.exists() or payload.find(inside.as_posix()) is not None):
        text = f"{path} exists already" if path.exists() else f"a matrix `{name}` exists already"
        problems.append(Problem(text, hint="choose another name, or `--force`"))
    if problems:
        raise ConfigError(*problems)
    return path


def save(path: Path, spec: ImageSpec, owner: str, expires: str) -> None:
    """Write a request as a matrix, whole or not at all.

    Raises ConfigError where it cannot be written.
    """
    temporary = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(as_matrix(path.stem, spec, owner, expires), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise ConfigError.of(f"{path} cannot be written: {error.strerror}") from error
