"""The catalog of the last run: what was parsed once is not parsed again while no file has changed.

A pickle in a folder of the user's own. It is read only where nobody else can have written it, and
whatever is wrong with it, with the folder or with the disk, the files themselves are read.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import stat
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen import __version__
from imagegen.catalog import catalog_files, read_catalog
from imagegen.model import Catalog
from imagegen.payload import Payload, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_KEPT = 8
"""Catalogs that are kept: one for each set of roots that somebody works with at a time."""

READERS = ("catalog", "catalog_rows", "constraint", "model", "tables", "yamlfile")
"""Modules whose change changes what is read: in a checkout they change without a new version."""

OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cached_catalog(payload: Payload, environ: Mapping[str, str] | None = None) -> Catalog:
    """What `read_catalog` gives. Raises ConfigError as that does."""
    try:
        folder = _own_folder(os.environ if environ is None else environ)
        file = folder / f"catalog-{_key(payload)}.pickle"
    except (OSError, RuntimeError):
        return read_catalog(payload)
    return _read(file) or _keep(read_catalog(payload), file)


def _key(payload: Payload) -> str:
    """Changes with the tool, Python, the files, and the names under which a user sees them."""
    here = Path(__file__).parent
    lines = [f"{__version__} {sys.version} {here}"]
    for path in (*(here / f"{name}.py" for name in READERS), *catalog_files(payload)):
        found = path.stat()
        lines.append(f"{path} {shown(path)} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def _own_folder(environ: Mapping[str, str]) -> Path:
    """`$XDG_CACHE_HOME/imagegen`, made where it is missing.

    Raises PermissionError where somebody else owns it or may write to it, as with `sudo` in
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


def _read(file: Path) -> Catalog | None:
    """The catalog of a file that is ours. What cannot be read is as good as not there."""
    with suppress(Exception):
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened, _no_collection():
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and _is_ours(found):
                read = pickle.load(opened)
                return read if isinstance(read, Catalog) else None
    return None


@contextmanager
def _no_collection() -> Iterator[None]:
    """Thousands of new objects and no garbage: the collector would look at them for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _keep(catalog: Catalog, file: Path) -> Catalog:
    """Whole or not at all, and no more than MOST_KEPT of them."""
    with suppress(OSError, pickle.PicklingError):
        descriptor, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=file.parent)
        try:
            with os.fdopen(descriptor, "wb") as opened:
                pickle.dump(catalog, opened, pickle.HIGHEST_PROTOCOL)
            Path(name).replace(file)
        except OSError:
            Path(name).unlink()
            raise
        kept = sorted(file.parent.glob("catalog-*.pickle"), key=lambda one: one.stat().st_mtime_ns)
        for old in kept[:-MOST_KEPT]:
            old.unlink()
    return catalog
