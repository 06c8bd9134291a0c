"""Write an overlay folder of small components and one matrix for the families of the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

OS = "debian12"


@dataclass(frozen=True)
class Overlay:
    """Hold what `imagegen --overlay` reads; images of the matrix are `repository:value-value-…`."""

    folder: Path
    matrix: str
    repository: str

    def component(
        self, name: str, install: str, releases: Sequence[Mapping[str, Any]], **keys: Any
    ) -> None:
        """Write a component whose `install` is the template of its steps."""
        folder = self.folder / "dockerfiles/components" / name
        folder.mkdir(parents=True, exist_ok=True)
        rows = [{"origin": "a benchmark", "source": "a benchmark", **row} for row in releases]
        described = {"name": name, "title": name, "suites": [name], "releases": rows, **keys}
        (folder / "component.yaml").write_text(yaml.safe_dump(described, sort_keys=False))
        (folder / "install.j2").write_text(install + "\n")

    def write_matrix(
        self, axes: Mapping[str, Sequence[str]], components: Mapping[str, Any]
    ) -> None:
        """Write the matrix; axes with the names of components choose their releases."""
        data = {
            "name": self.matrix,
            "tag": f"{self.repository}:" + "-".join(f"{{{axis}}}" for axis in axes),
            "axes": dict(axes),
            "components": {"os": OS, **components},
        }
        path = self.folder / "matrices" / f"{self.matrix}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(data, sort_keys=False))
