"""Keep what was parsed from files, and use it again while no file has changed.

It is kept as pickles in a folder of the user. A pickle is read only where no other user can have
written it. If anything is wrong with the pickle, the folder or the disk, the files are read again.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import stat
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from imagegen import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

T = TypeVar("T")


class Memory(Generic[T]):
    """One result that is kept between runs, valid until one of its files changes.

    `of` says what the result was made for, where the files alone do not say it.
    """

    def __init__(
        self,
        kind: str,
        files: Iterable[Path],
        of: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._kind = kind
        try:
            folder = _own_folder(os.environ if environ is None else environ)
            self._file: Path | None = folder / f"{kind}-{_key(files, of)}.pickle"
        except (OSError, RuntimeError):
            self._file = None

    def recall(self) -> T | None:
        """Read the kept result; None where nothing was kept or it cannot be read."""
        found: list[T] = _read(self._kind, self._file) if self._file else []
        return found[0] if found else None

    def keep(self, made: T) -> None:
        """Write the result, whole or not at all, and keep only the newest MOST_KEPT of its kind."""
        if self._file:
            _keep(made, self._kind, self._file)


MOST_KEPT = 8
"""The number of pickles of one kind: one for each set of roots that a user works with at a time."""

OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def remembered(
    kind: str,
    files: Iterable[Path],
    make: Callable[[], T],
    environ: Mapping[str, str] | None = None,
) -> T:
    """Return what `make` makes of these files, from an earlier run where that was kept.

    Raises what `make` raises; a failure is not kept.
    """
    memory = Memory[T](kind, files, environ=environ)
    found = memory.recall()
    if found is None:
        found = make()
        memory.keep(found)
    return found


def _key(files: Iterable[Path], of: str) -> str:
    """Compute a key that changes with everything that the result depends on.

    That is Python, the tool (a checkout changes without a new version), the files, and the names
    that the files have for a user in the current directory.
    """
    here = os.path.realpath(Path.cwd()) + os.sep
    lines = [__version__, sys.version, of]
    own = sorted(_modules(os.path.dirname(os.path.dirname(__file__))))  # noqa: PTH120
    lines += [f"{path} {_state(os.stat(path))}" for path in own]  # noqa: PTH116
    folders: dict[Path, str] = {}
    for path in files:
        found, real = path.lstat(), folders.get(path.parent)
        if real is None:
            real = folders[path.parent] = os.path.realpath(path.parent)
        name = f"{real}{os.sep}{path.name}"
        if stat.S_ISLNK(found.st_mode):
            found, name = path.stat(), os.path.realpath(path)
        lines.append(f"{path} {name} {name.removeprefix(here)} {_state(found)}")
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def _modules(folder: str) -> Iterator[str]:
    """List the tool's own modules below a folder, without the payload that travels with it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.name not in ("payload", "__pycache__") and entry.is_dir():
                yield from _modules(entry.path)


def _state(found: os.stat_result) -> str:
    return f"{found.st_size} {found.st_mtime_ns}"


def _own_folder(environ: Mapping[str, str]) -> Path:
    """Return `$XDG_CACHE_HOME/imagegen`; make it where it is missing.

    Raises PermissionError where another user owns it or may write to it, as happens with `sudo` in
    another user's home.
    """
    xdg = environ.get("XDG_CACHE_HOME", "")
    parent = Path(xdg) if xdg.startswith("/") else Path.home() / ".cache"
    folder = parent / "imagegen"
    if not folder.is_dir():
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if parent.stat().st_uid != os.geteuid():
            raise PermissionError(parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    if not (stat.S_ISDIR(folder.lstat().st_mode) and _is_ours(folder.lstat())):
        raise PermissionError(folder)
    return folder


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & OTHERS_MAY_WRITE


def _read(kind: str, file: Path) -> list[T]:
    """Read a pickle that belongs to this user; return an empty list where it cannot be read."""
    with suppress(Exception):
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened, no_collection():
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and _is_ours(found):
                kept_kind, made = pickle.load(opened)
                return [made] if kept_kind == kind else []
    return []


def _keep(made: object, kind: str, file: Path) -> None:
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    with suppress(OSError, pickle.PicklingError):
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as opened:
                pickle.dump((kind, made), opened, pickle.HIGHEST_PROTOCOL)
            part.replace(file)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        kept = sorted(file.parent.glob(f"{kind}-*.pickle"), key=lambda one: one.stat().st_mtime_ns)
        for old in kept[:-MOST_KEPT]:
            old.unlink()


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause the cyclic garbage collector; turn it on afterwards if it was on before.

    Where thousands of records are made that all stay in use, it would visit them and free none.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
