"""Write `/etc/imagegen/image.json`: what an image promises, which `validate` measures.

Its contract (what a launch must give the image) and its environment are computed here too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NotRequired, TypedDict

import orjson

from imagegen import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from imagegen.model.catalog import Catalog, Component, Contract
    from imagegen.model.image import ImageSpec, Pin
    from imagegen.model.release import Release

SCHEMA = 1
AS_TEXT = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
BASE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BASE_ENV = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PATH": BASE_PATH}
"""The variables that Dockerfile.j2 sets in the base, in this order."""


class Expectation(TypedDict):
    """The keys of image.json."""

    schema: int
    tool: str
    image: str
    matrix: str
    cell: str
    profile: str
    device: str
    os: Mapping[str, str]
    env: Mapping[str, str]
    components: Mapping[str, Mapping[str, object]]
    omitted: Mapping[str, str]
    suites: Sequence[str]
    contract: Contract
    patched: Sequence[Mapping[str, str]]
    user: NotRequired[Mapping[str, str | int]]


def stage_env(component: Component, release: Release, path: str) -> dict[str, str]:
    """Compute the ENV lines that a component adds on top of a `PATH`, sorted by name.

    A row that is installed in another place than the others has `bin`, a list of folders, in its
    facts.
    """
    env = dict(component.env)
    own = release.facts.get("bin", [])
    folders = [*component.path, *(own if isinstance(own, list) else [])]
    if folders:
        env["PATH"] = ":".join([*folders, path])
    return dict(sorted(env.items()))


def environment(spec: ImageSpec, order: Sequence[str], catalog: Catalog) -> dict[str, str]:
    """Compute the whole environment of the finished image, sorted by name."""
    env = dict(BASE_ENV)
    pins = {pin.component: pin.release for pin in spec.pins}
    for name in order:
        if name in pins:
            env |= stage_env(catalog.components[name], pins[name], env["PATH"])
    return dict(sorted({**env, **spec.cell.env}.items()))


def contract(spec: ImageSpec, catalog: Catalog) -> Contract:
    """Compute what a launch has to give the image.

    These are capabilities, devices, ulimits, shared memory in bytes, the network, and the number of
    a user other than root. Lists are united; the largest shared memory wins, and the host network
    wins over a bridge.
    """
    found = _contract(tuple(pin.component for pin in spec.pins), catalog)
    user = spec.cell.user
    return {**found, "user": user.uid} if user else found


@lru_cache(maxsize=256)
def _contract(names: tuple[str, ...], catalog: Catalog) -> Contract:
    parts = [catalog.components[name].contract for name in names]
    ulimits: dict[str, int] = {}
    for part in parts:
        ulimits |= part.get("ulimits", {})
    return {
        "caps": _united(part.get("caps", []) for part in parts),
        "devices": _united(part.get("devices", []) for part in parts),
        "ulimits": dict(sorted(ulimits.items())),
        "shm_bytes": max((part.get("shm_bytes", 0) for part in parts), default=0),
        "network": "host" if any(p.get("network") == "host" for p in parts) else "bridge",
    }


def _united(lists: Iterable[Sequence[str]]) -> list[str]:
    return sorted({one for each in lists for one in each})


def suites(spec: ImageSpec, catalog: Catalog) -> list[str]:
    """List the suites that prove this image.

    Those of omitted components are among them: they report why they are skipped.
    """
    names = [pin.component for pin in spec.pins] + [o.component for o in spec.cell.omitted]
    return _suites(tuple(names), catalog)


@lru_cache(maxsize=256)
def _suites(names: tuple[str, ...], catalog: Catalog) -> list[str]:
    return sorted({suite for name in names for suite in catalog.components[name].suites})


def device(spec: ImageSpec) -> str:
    """Return `gpu` when a component brings CUDA, else `cpu`."""
    return "gpu" if any(pin.release.facts.get("device") == "gpu" for pin in spec.pins) else "cpu"


def _askers(pin: Pin, spec: ImageSpec) -> list[str]:
    """List who asked for a pin, without paths and lines.

    The same image must have the same bytes in every folder.
    """
    return _without_places(pin.via, spec.cell.file or "no file", spec.cell.matrix)


@lru_cache(maxsize=4096)
def _without_places(via: tuple[str, ...], file: str, matrix: str) -> list[str]:
    texts = [text.replace(file, f"matrix {matrix}", 1) for text in via]
    return sorted({text.partition(" (")[0] for text in texts})


def _facts(pin: Pin, spec: ImageSpec) -> dict[str, object]:
    """Join the facts of a row with the values chosen for its virtual names, such as its flavour."""
    chosen = {name: spec.given[name] for name in pin.release.requires if name in spec.given}
    return {**chosen, **pin.release.facts}


def expectation(spec: ImageSpec, order: Sequence[str], catalog: Catalog) -> Expectation:
    """Make the document as data; validate/expected.py describes its schema."""
    document: Expectation = {
        "schema": SCHEMA,
        "tool": __version__,
        "image": spec.tag,
        "matrix": spec.cell.matrix,
        "cell": spec.cell.name,
        "profile": spec.cell.profile,
        "device": device(spec),
        "os": {
            "id": spec.os.id,
            "ID": spec.os.os_id,
            "VERSION_ID": spec.os.version_id,
            "arch": "x86_64",
            "glibc": spec.os.glibc,
            "lib_dir": spec.os.lib_dir,
        },
        "env": environment(spec, order, catalog),
        "components": {
            pin.component: {
                "version": pin.version,
                "variant": pin.release.variant,
                "origin": pin.release.origin,
                "source": pin.release.source,
                "via": _askers(pin, spec),
                "facts": _facts(pin, spec),
            }
            for pin in spec.pins
        },
        "omitted": {omission.component: omission.reason for omission in spec.cell.omitted},
        "suites": suites(spec, catalog),
        "contract": contract(spec, catalog),
        "patched": patched(spec),
    }
    if user := spec.cell.user:
        document["user"] = {"name": user.name, "uid": user.uid, "home": user.home}
    return document


def patched(spec: ImageSpec) -> list[dict[str, str]]:
    """List the files of packages that the image has changed, with the reasons, sorted by path."""
    reasons = {path: why for pin in spec.pins for path, why in pin.release.patched.items()}
    return [{"path": path, "reason": why} for path, why in sorted(reasons.items())]


def as_json(document: Mapping[str, object]) -> bytes:
    """Write a document as JSON: the same bytes for the same data."""
    return orjson.dumps(document, option=AS_TEXT)
