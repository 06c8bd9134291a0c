"""Write `validate.pyz`: the checks in one file, with the packages that they need.

It runs on every Python that the checks know, in any container or on any host, without pip. The
packages are the wheels of the component that brings the checks into images, for each Python those
that images of it have. Their sha256 stand in `wheels.sha256` beside its component.yaml, so that the
same tool writes the same bytes everywhere.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import TYPE_CHECKING

from imagegen.config.payload import COMPONENTS_FOLDER
from imagegen.config.state import state_folder
from imagegen.engine.host.archives import pip_download
from imagegen.errors import BuildError, ConfigError
from imagegen.model import constraint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from imagegen.config.payload import Payload
    from imagegen.model.catalog import Catalog, Component

SUMS = "wheels.sha256"
CHECKS, INTERPRETER = "checks", "interpreter"
"""Roles of components."""
TREE, MAIN = "validate", "pyz_main.py"
SHEBANG = b"#!/usr/bin/env python3\n"
THEN = (1980, 1, 1, 0, 0, 0)
"""The earliest time of a zip file: the same bytes on every day."""
MINORS = range(6, 16)
"""Releases of Python 3 that are looked for; a later one takes the packages of the last."""
NOT_NEEDED = (".pyc", "entry_points.txt", "/RECORD", "/INSTALLER", "/WHEEL")


def export(path: Path, payload: Payload, catalog: Catalog, on_line: Callable[[str], None]) -> None:
    """Write the file. Raises ConfigError where it cannot be, BuildError without its wheels."""
    content = pyz(payload, catalog, on_line)
    try:
        path.write_bytes(content)
        path.chmod(0o755)
    except OSError as error:
        text = f"cannot write `{path}`: {(error.strerror or '').lower()}"
        raise ConfigError.of(text, hint="name another file") from None
    on_line(
        f"wrote {path}: {len(content) / 1e6:.1f} MB, sha256 {hashlib.sha256(content).hexdigest()}"
    )


def pyz(payload: Payload, catalog: Catalog, on_line: Callable[[str], None]) -> bytes:
    """Make the bytes of the file; wheels that this host has not yet are downloaded."""
    component = _of_role(CHECKS, catalog)
    sums = _sums(payload, component.name)
    sets = packages_by_python(component, _of_role(INTERPRETER, catalog).name)
    files = dict(_tree(payload))
    files["pythons.json"] = (json.dumps(sets, indent=1, sort_keys=True) + "\n").encode()
    wanted = sorted({one for names in sets.values() for one in names})
    files |= {
        f"wheels/{one}/{inside}": data
        for one in wanted
        for inside, data in _unpacked(_wheel(one, sums, on_line))
    }
    return SHEBANG + _packed(files)


def packages_by_python(checks: Component, interpreter: str) -> dict[str, list[str]]:
    """Map the minor of each Python 3 to its packages, as `NAME-VERSION`.

    A release that brings a Python of its own, as a tarball, is left out.
    """
    found = {}
    for minor in MINORS:
        for release in checks.releases:
            wanted = release.requires.get(interpreter, ())
            if not release.tarball and any(constraint.matches(w, f"3.{minor}") for w in wanted):
                found[str(minor)] = sorted(f"{n}-{v}" for n, v in release.wheels.items())
                break
    return found


def _of_role(role: str, catalog: Catalog) -> Component:
    return next(one for one in catalog.components.values() if one.role == role)


def _sums(payload: Payload, component: str) -> Mapping[str, tuple[str, str]]:
    """Map `NAME-VERSION` to the file of the wheel and its sha256."""
    path = payload.find(f"{COMPONENTS_FOLDER}/{component}/{SUMS}")
    lines = path.read_text().splitlines() if path else []
    pairs = [line.split() for line in lines if line.strip()]
    return {key_of(file): (file, digest) for digest, file in pairs}


def key_of(file: str) -> str:
    """Return `NAME-VERSION` of the file of a wheel, as a release writes both."""
    name, version = file.split("-")[:2]
    return f"{name.replace('_', '-').lower()}-{version}"


def _tree(payload: Payload) -> Iterator[tuple[str, bytes]]:
    """List the checks, what starts them, and the licence."""
    for relative, path in payload.code(TREE):
        yield f"{TREE}/{relative}", path.read_bytes()
        if relative == MAIN:
            yield "__main__.py", path.read_bytes()
    licence = next(
        (one for root in payload.code_roots if (one := root / "LICENSE").is_file()), None
    )
    if licence is not None:
        yield "LICENSE", licence.read_bytes()


def _wheel(key: str, sums: Mapping[str, tuple[str, str]], on_line: Callable[[str], None]) -> bytes:
    """Return a wheel from the folder of wheels that were downloaded, or download it."""
    file, digest = sums[key]
    path = state_folder() / "wheels" / file
    if not path.is_file() or _digest(path) != digest:
        on_line(f"download {file}")
        path.parent.mkdir(parents=True, exist_ok=True)
        name, _, version = key.rpartition("-")
        evidence = pip_download(name, version, path.parent)
        if not path.is_file() or _digest(path) != digest:
            text = f"`{file}` cannot be had with the sha256 {digest}"
            hint = "make an index that has it known to pip: `pip config set global.index-url URL`"
            raise BuildError.of(text, evidence=evidence, hint=hint)
    return path.read_bytes()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _unpacked(wheel: bytes) -> Iterator[tuple[str, bytes]]:
    """List the modules of a wheel, with its metadata and licences."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as packed:
        for name in packed.namelist():
            if not name.endswith((*NOT_NEEDED, "/")):
                yield name, packed.read(name)


def _packed(files: Mapping[str, bytes]) -> bytes:
    """Pack the files: sorted, of one time and one mode, not compressed (zlib has many makers)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, THEN)
            info.external_attr, info.create_system = 0o644 << 16, 3
            packed.writestr(info, files[name])
    return buffer.getvalue()
