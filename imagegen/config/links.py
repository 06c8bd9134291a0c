"""Refuse what must not get from this host into a build context, or into a Dockerfile.

The current directory is one of the roots, whoever made it. A link in it can lead anywhere, to
`/etc/shadow` too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK_OF_EDITOR = ".#"
"""The start of the name of a link that Emacs makes beside a file that is being edited."""


def check_contents(root: Path, folder: str) -> None:
    """Check a folder of a root, and all that is in it.

    Raises ConfigError with every problem.
    """
    top = root / folder
    if not top.is_dir():
        return
    if not leads_into(top, root):
        raise ConfigError(_leaves(top, root))
    problems = [*_problems(top)]
    if problems:
        raise ConfigError(*problems)


def leads_into(path: Path, folder: Path) -> bool:
    """Return whether a path is in a folder, after all links on its way are followed."""
    try:
        return path.resolve(strict=True).is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return False


def _problems(top: Path) -> Iterator[Problem]:
    for path in sorted(top.rglob("*")):
        if path.name.startswith(LOCK_OF_EDITOR):
            continue
        if path.is_symlink():
            if not leads_into(path, top):
                yield _leaves(path, top)
            elif path.is_dir():
                yield _no_file(path, "is a link to a folder", "copy that folder")
        elif not path.is_dir() and not path.is_file():
            yield _no_file(path, "is no file, no folder and no link", "remove it")
        if not _is_text(path.name):
            yield _no_file(path, "has a name that is not UTF-8", "rename it")


def _leaves(path: Path, folder: Path) -> Problem:
    target = path.readlink() if path.is_symlink() else path.resolve()
    return Problem(
        f"`{path}` leads out of `{folder}`, or nowhere",
        evidence=(f"it leads to `{target}`", "what it leads to would be in a build context"),
        hint="copy the file that is meant there",
    )


def _no_file(path: Path, text: str, hint: str) -> Problem:
    return Problem(f"`{path}` {text}", evidence=("a build context has files only",), hint=hint)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
