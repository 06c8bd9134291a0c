"""`imagegen list` shows the cells of one matrix, or of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from imagegen.workflow.project import Project, select

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imagegen.matrix.reader import Matrix
    from imagegen.model.image import ImageSpec


def list_cells(
    overlay: Path | None, matrix: str | None = None, patterns: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Make a row for each cell of one matrix, or of all, that the patterns select."""
    project = Project(overlay)
    families = [project.family(matrix)] if matrix is not None else project.families()
    matrices = {family.matrix.name: family.matrix for family in families}
    specs = select([spec for family in families for spec in family.specs], patterns)
    return [_row(spec, matrices[spec.cell.matrix]) for spec in specs]


def _row(spec: ImageSpec, matrix: Matrix) -> dict[str, Any]:
    return {
        "matrix": spec.cell.matrix,
        "cell": spec.cell.name,
        "image": spec.tag,
        "os": spec.os.id,
        "axes": dict(spec.cell.values),
        "components": {pin.component: pin.version for pin in spec.pins},
        "omitted": {o.component: o.reason for o in spec.cell.omitted},
        "owner": matrix.owner,
        "expires": matrix.expires,
    }
