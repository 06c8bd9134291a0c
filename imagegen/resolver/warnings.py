"""What works with a reservation: the warnings about a set of pins, each a sentence of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.model.constraint import version_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.model.catalog import Catalog, Release
    from imagegen.resolver.candidates import Space

NCCL_OF_TORCH = "torch-nccl"
NVIDIA = "nvidia-"


def warnings(
    chosen: Mapping[str, Release], space: Space, *, allow_unknown: bool
) -> tuple[str, ...]:
    """All reservations, in the order of the names."""
    found: list[str] = []
    for name in sorted(chosen):
        row = chosen[name]
        found += [f"{row.where}: {note}" for note in row.notes] if row.notes else ()
        found += _unmet(row, chosen, space) if row.recommends else ()
        found += _other_builds(row, chosen, space) if row.built_for else ()
        if allow_unknown:
            found += _unknown(row, chosen, space)
        if row.confidence == "medium":
            found.append(f"{row.where}: its source is not certain ({row.source})")
    found += _two_nccls(chosen)
    found += _other_pins(chosen)
    found += _default_of_pypi(chosen, space)
    found += _without_cuda(chosen)
    return tuple(dict.fromkeys(found))


def _meets(space: Space, name: str, constraints: tuple[str, ...], row: Release) -> bool:
    return bool(space.mask(name, constraints) >> space.place(name, row) & 1)


def reason(catalog: Catalog, component: str, other: str) -> str:
    """Why a component has a word about another, as its file says it."""
    found = catalog.components.get(component) or catalog.virtual.get(component)
    return found.rules.get(other, "") if found else ""


def _unmet(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    for name, constraints in row.recommends.items():
        if name in chosen and not _meets(space, name, constraints, chosen[name]):
            why = reason(space.catalog, row.component, name)
            wanted = " or ".join(constraints)
            text = f"{row.where} was made for {name} {wanted}, here is {chosen[name].version}"
            yield f"{text}: {why}" if why else text


def _other_builds(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    for name, constraints in row.built_for.items():
        if name in chosen and not _meets(space, name, constraints, chosen[name]):
            yield (
                f"{row.where} brings {name} {' or '.join(constraints)} of its own, the image has "
                f"{name} {chosen[name].version}: both are there, and extensions are compiled with "
                "the image's (R9)"
            )


def _unknown(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    """What nobody knows to work: a silent source, one that is not certain, a driver's branch."""
    for name, constraints in row.known_with.items():
        if name in chosen and not _meets(space, name, constraints, chosen[name]):
            wanted = " or ".join(constraints) or "nothing"
            here = chosen[name].version
            yield f"{row.where} is known with {name} {wanted} only; {here} is unknown"
    for name, constraints in {**row.requires, **row.limits}.items():
        other = chosen.get(name)
        if other is not None and not _meets(space, name, constraints, other):
            here = "what is here" if other.variant == "unknown" else f"{name} {other.version}"
            wanted = " or ".join(constraints)
            yield f"{row.where} asks for {name} {wanted}; whether {here} will do is unknown"


def _two_nccls(chosen: Mapping[str, Release]) -> Iterator[str]:
    torch, nccl = chosen.get("torch"), chosen.get("nccl")
    if torch is None or nccl is None or not torch.provides.get(NCCL_OF_TORCH):
        return
    own = torch.provides[NCCL_OF_TORCH]
    if own.removesuffix("?") == nccl.version or set(torch.wheels) & set(nccl.wheels):
        return  # of one wheel there is one release in an image: `_other_pins` speaks of that
    said = (
        "an NCCL of its own whose version is unknown" if own == "unknown" else f"its own NCCL {own}"
    )
    sure = " (by a source that is not certain)" if own.endswith("?") else ""
    yield (
        f"R13: two NCCLs: {torch.where} uses {said.removesuffix('?')}{sure}, the image has "
        f"NCCL {nccl.version}, which nccl-tests and Horovod use"
    )


def _other_pins(chosen: Mapping[str, Release]) -> Iterator[str]:
    """R27: a wheel of NVIDIA in another version than the one that torch asks pip for."""
    torch = chosen.get("torch")
    if torch is None:
        return
    for name, row in sorted(chosen.items()):
        own = str(torch.facts.get(name) or "")
        wheels = [wheel for wheel in row.wheels if wheel.startswith(NVIDIA)]
        if name != "torch" and wheels and own and version_key(own) != version_key(row.version):
            yield (
                f"R27: {torch.where} asks pip for {name} {own}, the image has {row.version} as "
                f"{wheels[0]}: `pip check` will complain"
            )


def _default_of_pypi(chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    """R9: where pip alone would take a build that does not run on the GPU that is asked for."""
    torch, gpu = chosen.get("torch"), chosen.get("gpu")
    minor = torch.facts.get("pypi_cuda") if torch else None
    if torch is None or gpu is None or not minor:
        return
    public = torch.version.partition("+")[0]
    for row in space.candidates["torch"]:
        same = row.version.partition("+")[0] == public and row.facts.get("cuda") == minor
        constraints = row.limits.get("sm", ())
        if same and constraints and not _meets(space, "sm", constraints, chosen["sm"]):
            yield (
                f"R9: {torch.where} comes from {torch.index}: what pip takes from its default "
                f"index is the CUDA {minor} build of {public}, which does not run on {gpu.version}"
            )
            return


def _without_cuda(chosen: Mapping[str, Release]) -> Iterator[str]:
    tensorflow, device = chosen.get("tensorflow"), chosen.get("device")
    if tensorflow is None or "cuda" in chosen or (device and device.version == "cpu"):
        return
    yield f"R29: {tensorflow.where} computes on the CPU here: the image has no CUDA"
