"""Read, resolve, order and render a matrix: the images that the commands work on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

from imagegen.config.cache import Memory, no_collection, remembered
from imagegen.config.payload import Payload, in_checkout, open_payload
from imagegen.errors import ImagegenError, NothingSelectedError
from imagegen.text import few_like

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from imagegen.builder.up_to_date import ExpectedImage
    from imagegen.matrix.reader import Matrix
    from imagegen.model.catalog import Catalog
    from imagegen.model.cell import Cell
    from imagegen.model.image import ImageSpec
    from imagegen.model.recipe import Recipe
    from imagegen.renderer.renderer import Renderer
    from imagegen.sources.artifacts import Artifacts


@dataclass(frozen=True)
class Family:
    """One matrix with every cell resolved, and the order of layers on each OS."""

    matrix: Matrix
    specs: tuple[ImageSpec, ...]
    orders: Mapping[str, tuple[str, ...]]


class Project:
    """The catalog and the matrices of one run.

    Its methods import the stages that they call. `imagegen list` and `imagegen request` mostly need
    only what the last run kept; with all imports they would take a third longer (benchmarks, row
    6).
    """

    def __init__(
        self, overlay: Path | None = None, measured: Mapping[str, float] | None = None
    ) -> None:
        self.payload: Payload = open_payload(overlay)
        self._measured = dict(measured or {})

    @cached_property
    def catalog(self) -> Catalog:
        """Read the catalog, from the last run where no file has changed since."""
        files = self.payload.catalog_files()
        return remembered("catalog", files, self._read_catalog)

    def _read_catalog(self) -> Catalog:
        from imagegen.catalog.reader import read_catalog

        return read_catalog(self.payload, check_shipped=in_checkout())

    @cached_property
    def artifacts(self) -> Artifacts:
        """Read the vendor parts that artifacts.yaml lists."""
        from imagegen.sources.artifacts import read_artifacts

        return read_artifacts(self.payload)

    @cached_property
    def _renderer(self) -> Renderer:
        from imagegen.renderer.renderer import Renderer

        return Renderer(self.payload, self.catalog)

    def _recipe(self, spec: ImageSpec, order: Sequence[str]) -> Recipe:
        from imagegen.sources.parts import with_parts

        return with_parts(self._renderer.recipe(spec, order), self.artifacts)

    def family(self, name: str) -> Family:
        """Read a matrix, resolve its cells, and order their layers.

        Raises ConfigError, NothingSelectedError or ResolutionError.
        """
        from imagegen.matrix.reader import read_matrix
        from imagegen.planner.layer_order import layer_orders
        from imagegen.resolver.resolve import resolve_cells

        with no_collection():
            matrix = read_matrix(self.payload, name, self.catalog)
            specs = resolve_cells(matrix.cells, self.catalog)
            return Family(matrix, specs, layer_orders(specs, self.catalog, self._measured))

    def families(self) -> tuple[Family, ...]:
        """Read and resolve all matrices of the payload.

        Raises the problems of all of them at once.
        """
        from imagegen.matrix.reader import matrix_names

        found, errors = [], []
        for name in matrix_names(self.payload):
            try:
                found.append(self.family(name))
            except ImagegenError as error:
                errors.append(error)
        if errors:
            raise type(errors[0])(*(problem for error in errors for problem in error.problems))
        return tuple(found)

    def cells(self) -> Mapping[str, tuple[Cell, ...]]:
        """List the cells of all matrices without errors, by matrix, before they are resolved."""
        files = (*self.payload.catalog_files(), *self.payload.matrix_files())
        return remembered("cells", files, self._read_cells)

    def _read_cells(self) -> dict[str, tuple[Cell, ...]]:
        from imagegen.matrix.reader import matrix_names, read_matrix

        found = {}
        for name in matrix_names(self.payload):
            with suppress(ImagegenError):
                found[name] = read_matrix(self.payload, name, self.catalog).cells
        return found

    def recipes(self, family: Family, patterns: Sequence[str] = ()) -> list[Recipe]:
        """Render the cells that the patterns select, or all without patterns."""
        with no_collection():
            return [self.recipe(family, spec) for spec in select(family.specs, patterns)]

    def last_expected(self, matrix: str) -> Memory[tuple[ExpectedImage, ...]] | None:
        """Return the memory of the images that the last run wanted for all cells of a matrix.

        The result is None for a matrix that is given by its path, and where the order of layers
        follows what was measured on this machine.
        """
        files = self.payload.recipe_files(matrix, self.trees())
        if not files or self._measured:
            return None
        return Memory("wanted", files, matrix)

    def trees(self) -> tuple[str, ...]:
        """List the folders that components copy into images beside their own files."""
        return remembered("trees", self.payload.catalog_files(), self._trees)

    def _trees(self) -> tuple[str, ...]:
        components = self.catalog.components.values()
        return tuple(sorted({tree for one in components for tree in one.trees.values()}))

    def recipe(self, family: Family, spec: ImageSpec) -> Recipe:
        """Render one cell of a family.

        Raises RenderError where no template can make it.
        """
        return self._recipe(spec, family.orders[spec.os.id])

    def recipe_of(self, spec: ImageSpec) -> Recipe:
        """Render a cell of any matrix in its family's layer order, or a request in no matrix."""
        from imagegen.matrix.reader import matrix_names
        from imagegen.planner.layer_order import layer_orders

        if spec.cell.matrix in matrix_names(self.payload):
            family = self.family(spec.cell.matrix)
            if spec in family.specs:
                return self.recipe(family, spec)
        order = layer_orders([spec], self.catalog, self._measured)[spec.os.id]
        return self._recipe(spec, order)

    def cell(self, pattern: str) -> tuple[Family, ImageSpec]:
        """Find the one cell that a name, `matrix/name`, tag or glob matches, over all matrices.

        A whole `matrix/name` needs that matrix alone. Raises NothingSelectedError where it matches
        none, or more than one.
        """
        named = self._named(pattern)
        if named:
            return named
        families = self.families()
        every = [(family, spec) for family in families for spec in family.specs]
        chosen = select([spec for _, spec in every], [pattern])
        if len(chosen) > 1:
            raise NothingSelectedError.of(
                f"`{pattern}` means {len(chosen)} cells",
                evidence=[spec.cell.id for spec in chosen],
                hint=f"name one: `{chosen[0].cell.id}`",
            )
        return next((family, spec) for family, spec in every if spec is chosen[0])

    def _named(self, name: str) -> tuple[Family, ImageSpec] | None:
        """Find the cell of a whole `matrix/name`, where its matrix has no errors."""
        from imagegen.matrix.reader import matrix_names

        matrix = name.partition("/")[0]
        with suppress(ImagegenError):
            if matrix in matrix_names(self.payload):
                family = self.family(matrix)
                return next(((family, spec) for spec in family.specs if spec.cell.id == name), None)
        return None


def names_of(spec: ImageSpec) -> tuple[str, ...]:
    """List the names that a user may give a cell: its name, `matrix/name`, or its image."""
    return (spec.cell.name, spec.cell.id, spec.tag)


def select(specs: Iterable[ImageSpec], patterns: Sequence[str]) -> list[ImageSpec]:
    """Select the cells that any of the globs matches, in their order; all without patterns.

    Raises NothingSelectedError for a pattern that matches nothing, with similar names.
    """
    everything = list(specs)
    if not patterns:
        return everything
    lost = [p for p in patterns if not any(_matches(spec, p) for spec in everything)]
    if lost:
        known = [name for spec in everything for name in names_of(spec)]
        cells = [spec.cell.name for spec in everything]
        near = get_close_matches(lost[0], known, 3, 0.4)
        raise NothingSelectedError.of(
            f"`{lost[0]}` matches no cell",
            evidence=[f"cells: {few_like(lost[0], cells, 'imagegen list') or 'none'}"],
            hint=f"did you mean `{'` or `'.join(near)}`?" if near else "imagegen list",
        )
    return [spec for spec in everything if any(_matches(spec, p) for p in patterns)]


def _matches(spec: ImageSpec, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names_of(spec))
