"""Warn about pins that fit with a reservation, one line for each.

A warning ends with the name of its rule; `dockerfiles/rules` has what the rule says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.model.catalog import rules_named
from imagegen.model.constraint import version_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.model.catalog import Catalog
    from imagegen.model.release import Release
    from imagegen.resolver.candidates import Space

NCCL_OF_TORCH = "torch-nccl"
NVIDIA = "nvidia-"


def warnings(
    chosen: Mapping[str, Release], space: Space, *, allow_unknown: bool
) -> tuple[str, ...]:
    """List all warnings, sorted by component."""
    found: list[str] = []
    for name in sorted(chosen):
        row = chosen[name]
        found += [f"{_short(row)}: {note}" for note in row.notes] if row.notes else ()
        found += _unmet(row, chosen, space) if row.recommends else ()
        found += _other_builds(row, chosen, space) if row.built_for else ()
        if allow_unknown:
            found += _unknown(row, chosen, space)
        if row.confidence == "medium":
            found.append(f"{_short(row)}: its source is not certain (rule uncertain-source)")
    found += _two_nccls(chosen)
    found += _other_pins(chosen)
    found += _default_of_pypi(chosen, space)
    found += _without_cuda(chosen)
    return tuple(dict.fromkeys(found))


def _short(row: Release) -> str:
    """Name a release without its variant, which the pins show, so that a warning fits a line."""
    return f"{row.component} {row.version}"


def _meets(space: Space, name: str, constraints: tuple[str, ...], row: Release) -> bool:
    return bool(space.mask(name, constraints) >> space.place(name, row) & 1)


def reason(catalog: Catalog, component: str, other: str) -> str:
    """Return why a component constrains another one, as its file says it."""
    found = catalog.components.get(component) or catalog.virtual.get(component)
    return found.rules.get(other, "") if found else ""


def _unmet(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    for name, constraints in row.recommends.items():
        if name in chosen and not _meets(space, name, constraints, chosen[name]):
            rules = rules_named(reason(space.catalog, row.component, name))
            wanted, here = " or ".join(constraints), chosen[name].version
            text = f"{_short(row)} is for {name} {wanted}, not {here}"
            yield f"{text} (rule {rules[-1]})" if rules else text


def _other_builds(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    for name, constraints in row.built_for.items():
        if name in chosen and not _meets(space, name, constraints, chosen[name]):
            own, here = " or ".join(constraints), chosen[name].version
            text = f"{_short(row)} brings {name} {own} of its own, the image has {here}"
            yield f"{text} (rule two-cudas)"


def _unknown(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    """Warn about what is not known to work: missing or uncertain facts, a driver's branch."""
    for name, constraints in row.known_with.items():
        if name in chosen and not _meets(space, name, constraints, chosen[name]):
            wanted, here = " or ".join(constraints) or "nothing", chosen[name].version
            text = f"{_short(row)} is known with {name} {wanted} only; {here} is unknown"
            yield f"{text} (rule unknown-facts)"
    for name, constraints in {**row.requires, **row.limits}.items():
        other = chosen.get(name)
        if other is not None and not _meets(space, name, constraints, other):
            here = "what is here" if other.variant == "unknown" else f"{name} {other.version}"
            text = f"{_short(row)} asks for {name} {' or '.join(constraints)}"
            yield f"{text}; whether {here} will do is unknown (rule unknown-facts)"


def _two_nccls(chosen: Mapping[str, Release]) -> Iterator[str]:
    torch, nccl = chosen.get("torch"), chosen.get("nccl")
    if torch is None or nccl is None or not torch.provides.get(NCCL_OF_TORCH):
        return
    own = torch.provides[NCCL_OF_TORCH]
    if own.removesuffix("?") == nccl.version or set(torch.wheels) & set(nccl.wheels):
        return  # an image has one release of a wheel; `_other_pins` warns about it
    version = "one of unknown version" if own == "unknown" else own.removesuffix("?")
    sure = " (not certain)" if own.endswith("?") else ""
    here = f"{nccl.version} in the image (rule two-nccls)"
    yield f"two NCCLs: {version}{sure} in {_short(torch)}, {here}"


def _other_pins(chosen: Mapping[str, Release]) -> Iterator[str]:
    """Warn about a wheel of NVIDIA in another version than the one that torch asks pip for."""
    torch = chosen.get("torch")
    if torch is None:
        return
    for name, row in sorted(chosen.items()):
        own = str(torch.facts.get(name) or "")
        wheels = [wheel for wheel in row.wheels if wheel.startswith(NVIDIA)]
        if name != "torch" and wheels and own and version_key(own) != version_key(row.version):
            text = f"{_short(torch)} asks pip for {name} {own}, the image has {row.version}"
            yield f"{text} (rule pins-of-torch)"


def _default_of_pypi(chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    """Warn where pip alone would take a build that does not run on the requested GPU."""
    torch, gpu = chosen.get("torch"), chosen.get("gpu")
    minor = torch.facts.get("pypi_cuda") if torch else None
    if torch is None or gpu is None or not minor:
        return
    public = torch.version.partition("+")[0]
    for row in space.candidates["torch"]:
        same = row.version.partition("+")[0] == public and row.facts.get("cuda") == minor
        constraints = row.limits.get("sm", ())
        if same and constraints and not _meets(space, "sm", constraints, chosen["sm"]):
            text = f"pip's default build of {public}, for CUDA {minor}, does not run on"
            yield f"{text} {gpu.version} (rule default-wheel)"
            return


def _without_cuda(chosen: Mapping[str, Release]) -> Iterator[str]:
    tensorflow, device = chosen.get("tensorflow"), chosen.get("device")
    if tensorflow is None or "cuda" in chosen or (device and device.version == "cpu"):
        return
    text = f"{_short(tensorflow)} computes on the CPU here: the image has no CUDA"
    yield f"{text} (rule cuda-of-tensorflow)"
