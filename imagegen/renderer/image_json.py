"""Write `/etc/imagegen/image.json`: what an image promises, which `validate` measures.

Its contract (what a launch must give the image) and its environment are computed here too.
"""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, NotRequired, TypedDict

import orjson

from imagegen import __version__
from imagegen.model.constraint import holds, is_version, version_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from imagegen.model.catalog import Catalog, Component
    from imagegen.model.image import ImageSpec, Pin
    from imagegen.model.launch import Contract
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

    These are capabilities, devices, ulimits, shared memory in bytes, the network, the GPU driver,
    the number of a user other than root, and for a transport that needs more of the host: rights,
    huge pages, folders and variables. Lists are united; the largest shared memory wins, and the
    host network wins over a bridge. What is not needed is left out, other than the first five.
    """
    of_components = _contract(tuple(pin.component for pin in spec.pins), catalog)
    more: Contract = {}
    if said := {one for pin in spec.pins for one in pin.release.limits.get("driver", ())}:
        more["driver"] = _driver(frozenset(said))
    if device(spec) == "gpu" and (env := _transport_env(spec, catalog)):
        more["env"] = env
    if spec.cell.user:
        more["user"] = spec.cell.user.uid
    return {**of_components, **more}


@lru_cache(maxsize=256)
def _driver(said: frozenset[str]) -> str:
    """Join constraints on the driver of the host; the highest bound wins."""
    least = {one.removeprefix(">=") for one in said if one.startswith(">=") and "," not in one}
    rest = sorted(one for one in said if one.removeprefix(">=") not in least)
    highest = [f">={max(least, key=version_key)}"] if least else []
    return ",".join([*highest, *rest])


def _transport_env(spec: ImageSpec, catalog: Catalog) -> dict[str, str]:
    """Compute the variables that the image's own transport takes, whatever else is chosen."""
    variables = _transport_variables(tuple(pin.component for pin in spec.pins), catalog)
    versions = launch_versions(spec, catalog) if any(only for _, _, only in variables) else {}
    return {name: value for name, value, only in variables if holds(only, versions)}


@lru_cache(maxsize=256)
def _transport_variables(
    names: tuple[str, ...], catalog: Catalog
) -> tuple[tuple[str, str, Mapping[str, str]], ...]:
    """List variables of the transports of components, with their constraints, sorted by name."""
    found: list[tuple[str, str, Mapping[str, str]]] = []
    for launch in (catalog.components[name].launch for name in names):
        for one in launch.variables if launch.transports else ():
            name, _, value = one.setting.partition("=")
            fixed = one.transport in ("", *launch.transports[:1]) and not one.several_nodes
            if fixed and "{" not in value:
                found.append((name, value, one.only))
    return tuple(sorted(found, key=itemgetter(0)))


def launch_versions(spec: ImageSpec, catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """Map each component to its versions in the image: its own, and copies that others bring."""
    found: dict[str, tuple[str, ...]] = {pin.component: (pin.version,) for pin in spec.pins}
    for pin in spec.pins:
        for name, copy in catalog.components[pin.component].own_copies.items():
            version = pin.release.provides.get(name, "")
            for other in copy.of if is_version(version) else ():
                found[other] = (*found.get(other, ()), version)
    return found


@lru_cache(maxsize=256)
def _contract(names: tuple[str, ...], catalog: Catalog) -> Contract:
    components = [catalog.components[name] for name in names]
    parts = [one.contract for one in components]
    ulimits: dict[str, int] = {}
    for part in parts:
        ulimits |= part.get("ulimits", {})
    found: Contract = {
        "caps": _united(part.get("caps", []) for part in parts),
        "devices": _united(part.get("devices", []) for part in parts),
        "ulimits": dict(sorted(ulimits.items())),
        "shm_bytes": max((part.get("shm_bytes", 0) for part in parts), default=0),
        "network": "host" if any(p.get("network") == "host" for p in parts) else "bridge",
    }
    if any(one.launch.host_network for one in components):
        found["network"] = "host"
    for launch in (one.launch for one in components):
        if launch.privileged:
            found["privileged"] = True
        if launch.hugepages:
            pages = launch.hugepages
            found["hugepages"] = {
                "size": pages.size,
                "per_gpu": pages.per_gpu,
                "more": pages.more,
            }
        if launch.mounts:
            found["mounts"] = [
                {"name": one.name, "host": one.host, "path": one.path} for one in launch.mounts
            ]
    return found


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
