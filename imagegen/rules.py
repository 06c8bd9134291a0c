"""What works with a reservation: the warnings about a set of pins, each a sentence of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.model import Catalog, Release
    from imagegen.space import Space

NCCL_OF_TORCH = "torch-nccl"


def warnings(
    chosen: Mapping[str, Release], space: Space, *, allow_unknown: bool
) -> tuple[str, ...]:
    """All reservations, in the order of the names."""
    found: list[str] = []
    for name in sorted(chosen):
        row = chosen[name]
        found += [f"{row.where}: {note}" for note in row.notes]
        found += _unmet(row, chosen, space)
        found += _other_builds(row, chosen, space)
        if allow_unknown:
            found += _unknown(row, chosen, space)
        if row.confidence == "medium":
            found.append(f"{row.where}: its source is not certain ({row.source})")
    found += _two_nccls(chosen)
    return tuple(dict.fromkeys(found))


def _meets(space: Space, name: str, wishes: tuple[str, ...], row: Release) -> bool:
    return bool(space.mask(name, wishes) >> space.candidates[name].index(row) & 1)


def reason(catalog: Catalog, component: str, other: str) -> str:
    """Why a component has a word about another, as its file says it."""
    found = catalog.components.get(component) or catalog.virtual.get(component)
    return found.rules.get(other, "") if found else ""


def _unmet(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    for name, wishes in row.warns.items():
        if name in chosen and not _meets(space, name, wishes, chosen[name]):
            why = reason(space.catalog, row.component, name)
            wanted = " or ".join(wishes)
            text = f"{row.where} was made for {name} {wanted}, here is {chosen[name].version}"
            yield f"{text}: {why}" if why else text


def _other_builds(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    for name, wishes in row.pairs.items():
        if name in chosen and not _meets(space, name, wishes, chosen[name]):
            yield (
                f"{row.where} brings {name} {' or '.join(wishes)} of its own, the image has "
                f"{name} {chosen[name].version}: both are there, and extensions are compiled with "
                "the image's"
            )


def _unknown(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    for name, wishes in row.known.items():
        if name in chosen and not _meets(space, name, wishes, chosen[name]):
            wanted = " or ".join(wishes) or "nothing"
            here = chosen[name].version
            yield f"{row.where} is known with {name} {wanted} only; {here} is unknown"


def _two_nccls(chosen: Mapping[str, Release]) -> Iterator[str]:
    torch, nccl = chosen.get("torch"), chosen.get("nccl")
    if torch is None or nccl is None or not torch.provides.get(NCCL_OF_TORCH):
        return
    own = torch.provides[NCCL_OF_TORCH]
    if own.removesuffix("?") == nccl.version:
        return
    said = (
        "an NCCL of its own whose version is unknown" if own == "unknown" else f"its own NCCL {own}"
    )
    sure = " (by a source that is not certain)" if own.endswith("?") else ""
    yield (
        f"two NCCLs: {torch.where} uses {said.removesuffix('?')}{sure}, the image has "
        f"NCCL {nccl.version}, which nccl-tests and Horovod use"
    )
