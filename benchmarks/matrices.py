"""Write matrices of any size from real versions, in which every cell resolves and renders."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

AXES: dict[str, tuple[str, ...]] = {
    "flavour": ("devel", "runtime"),
    "torch": ("2.4.0", "2.4.1", "2.5.0", "2.5.1", "2.6.0"),
    "cudnn": (
        "9.1.0.70", "9.2.1.18", "9.3.0.75", "9.5.0.50", "9.5.1.17",
        "9.7.0.66", "9.8.0.87", "9.9.0.52", "9.10.2.21", "9.2.0.82",
    ),
    "nccl": (
        "2.20.5", "2.21.5", "2.22.3", "2.23.4", "2.25.1", "2.26.5", "2.27.3",
        "2.19.3", "2.18.5", "2.17.1",
    ),
    "openmpi": (
        "4.1.8 source", "4.1.7 source", "4.1.6 source", "4.1.5 source", "4.1.4 source",
        "5.0.8 source", "5.0.7 source", "5.0.6 source", "5.0.5 source", "5.0.3 source",
    ),
}  # fmt: skip
"""In the order of the axes: the last one changes fastest. For fewer cells, values of the first axes
are dropped first.
"""

HEAD = """\
name: {name}
tag: "imagegen/{name}:{{flavour}}-{{torch}}-{{cudnn}}-{{nccl}}-{{openmpi}}"
axes:
"""
REST = """\
components:
  os: ubuntu22.04
  python: any
  cuda: "12.4"
  rdma: none
  ssh: any
  validate: any
"""


def axes_of(cells: int) -> dict[str, tuple[str, ...]]:
    """Choose the first values of each axis so that their product has this many cells.

    Raises ValueError if no product of them has this many.
    """
    chosen = dict(AXES)
    for name, values in AXES.items():
        rest = prod(len(other) for other in chosen.values()) // len(values)
        needed = -(-cells // rest)
        chosen[name] = values[: max(1, needed)]
        if prod(len(other) for other in chosen.values()) == cells:
            return chosen
    raise ValueError(f"no product of the axes has {cells} cells")


def write(folder: Path, cells: int) -> str:
    """Write `matrices/product<cells>.yaml` below a folder and return the name of the matrix."""
    name = f"product{cells}"
    path = folder / "matrices" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    axes = "".join(f"  {axis}: {list(values)}\n" for axis, values in axes_of(cells).items())
    path.write_text(HEAD.format(name=name) + axes + REST)
    return name
