"""Add to a request what its constraints need and do not name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.model import constraint
from imagegen.model.catalog import TOOLKIT
from imagegen.model.cell import Want
from imagegen.resolver.blame import fits
from imagegen.resolver.candidates import DRIVER
from imagegen.resolver.propagation import domains_of
from imagegen.resolver.resolve import constraints_of
from imagegen.resolver.search import best_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from imagegen.model.cell import Cell
    from imagegen.resolver.candidates import Space

DEVICE, GPU, CPU = "device", "gpu", "cpu"
WITHOUT_GPU = "a request that fits on no GPU"
"""Who asks for a CPU where nobody else does."""


def with_defaults(space: Space, cell: Cell) -> tuple[Want, ...]:
    """Return the constraints of a cell and their defaults.

    These are one of several frameworks, where it fits, and the libraries that a framework needs to
    compute on a GPU: whoever names a GPU, a driver or a library of one gets them in any case.
    """
    omitted = constraints_of(cell)[len(cell.wants) :]

    def fit(wants: Sequence[Want]) -> bool:
        return fits(space, (*wants, *omitted), allow_unknown=cell.allow_unknown)

    wants = cell.wants
    for more in _frameworks(space, wants):
        if fit((*wants, *more)):
            wants = (*wants, *more)
            break
    needs_gpu = names_a_gpu(space, cell)
    for name, more in _gpu_libraries(space, (*wants, *omitted)):
        asked = (*wants, *(one for one in more if one.component not in _names(wants)))
        if needs_gpu or (_on_gpu(space, name, (*wants, *omitted), cell) and fit(asked)):
            wants = asked
    return wants


def _names(wants: Sequence[Want]) -> set[str]:
    return {want.component for want in wants}


def _frameworks(space: Space, wants: Sequence[Want]) -> Iterator[tuple[Want, ...]]:
    for want in wants:
        component = space.catalog.components.get(want.component)
        if component is not None and component.one_of and not _names(wants) & {*component.one_of}:
            asker = f"{want.component}, by default"
            yield from ((Want(name, constraint.ANY, asker),) for name in component.one_of)
            return


def names_a_gpu(space: Space, cell: Cell) -> bool:
    """Say whether a user names a GPU, a driver, or a library that only a GPU has use for."""
    asked = {w.component: w.constraint for w in cell.wants if w.asked_by != "every image"}
    libraries = {
        name for one in space.catalog.components.values() for name in one.request.gpu_libraries
    }
    return asked.get(DEVICE) == GPU or bool({"gpu", "instance", DRIVER, *libraries} & asked.keys())


def _gpu_libraries(space: Space, wants: Sequence[Want]) -> Iterator[tuple[str, tuple[Want, ...]]]:
    """List what a framework without a toolkit of its own needs to compute on a GPU."""
    asked: Mapping[str, str] = {want.component: want.constraint for want in wants}
    if asked.get(DEVICE) == CPU:
        return
    for name, framework in space.catalog.components.items():
        if framework.request.gpu_libraries and asked.get(name, constraint.NONE) != constraint.NONE:
            yield (
                name,
                tuple(
                    Want(library, constraint.ANY, f"{name}, by default")
                    for library in framework.request.gpu_libraries
                    if library not in asked
                ),
            )


def _on_gpu(space: Space, name: str, wants: Sequence[Want], cell: Cell) -> bool:
    """Say whether a component on top of frameworks finds one that computes on a GPU."""
    if not space.catalog.components[name].one_of:
        return True
    chosen = best_answer(domains_of(space, wants, allow_unknown=cell.allow_unknown))
    if chosen is None or DEVICE not in chosen:
        return False
    toolkit = space.catalog.with_role(TOOLKIT)
    return space.candidates[DEVICE][chosen[DEVICE]].version == GPU or toolkit in chosen
