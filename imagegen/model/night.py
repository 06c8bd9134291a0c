"""Define the report of a nightly run, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.errors import ImagegenError
    from imagegen.model.validation import Proof


@dataclass(frozen=True)
class CellReport:
    """What a nightly did for one cell.

    `warnings` are those of its build, such as an image over its size budget.
    """

    cell: str
    image: str
    build: str
    image_id: str = ""
    seconds: float = 0.0
    validation: str = ""
    publication: str = ""
    digest: str = ""
    detail: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        """Say whether the build or the validation of the cell failed."""
        return self.build in ("failed", "cancelled") or self.validation == "failed"


@dataclass(frozen=True)
class NightReport:
    """What a whole nightly did.

    `reports` are those of `validate`, earlier ones included. `failure` is the error that ended the
    run early, such as a registry that refused or an engine that died. `proofs` are
    those of this run.
    """

    matrices: tuple[str, ...]
    cells: tuple[CellReport, ...] = ()
    reports: tuple[Mapping[str, object], ...] = ()
    failure: ImagegenError | None = None
    proofs: tuple[Proof, ...] = ()

    @property
    def changed(self) -> int:
        """Count the cells that were built, validated or published in this run."""
        return sum(
            cell.build == "built"
            or cell.validation in ("passed", "failed")
            or cell.publication == "published"
            for cell in self.cells
        )

    @property
    def broken(self) -> list[CellReport]:
        """List the cells whose build or validation failed."""
        return [cell for cell in self.cells if cell.broken]

    @property
    def headline(self) -> str:
        """Say in one sentence how the run went."""
        if self.failure is not None:
            return f"the night ended early: {self.failure.problems[0].text}"
        if self.broken:
            return f"{len(self.broken)} of {len(self.cells)} cells are broken"
        if not self.changed:
            return f"nothing to do: all {len(self.cells)} images are built, validated and published"
        return f"{self.changed} of {len(self.cells)} images are new, all of them passed"
