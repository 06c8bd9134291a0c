"""Draw requests at random from the values of the catalog; a seed gives the same ones each time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from imagegen.model.catalog import Catalog

LIKELY = {
    "os": 6, "torch": 8, "python": 4, "cuda": 5, "tensorflow": 4, "horovod": 4, "gpu": 4,
    "driver": 3, "nccl": 3, "cudnn": 3, "device": 2, "ofed": 2, "rdma": 2, "harp": 1, "gcc": 1,
    "flavour": 1, "openmpi": 1, "mxnet": 1, "lightcc": 1, "torchvision": 1, "instance": 1,
}  # fmt: skip
DRIVERS = ("384.81", "418.87.01", "450.80.02", "470.57.02", "525.60.13", "550.54.14", "580.65.06")


def random_requests(catalog: Catalog, seed: int, count: int) -> list[dict[str, str]]:
    """Draw requests of one to five keys, with versions, prefixes of them, variants and `any`."""
    drawn = random.Random(seed)
    names = [name for name in LIKELY if name != "ofed" or "rdma" in catalog.components]
    found = []
    for _ in range(count):
        size = drawn.choice((1, 2, 2, 3, 3, 3, 4, 4, 5))
        chosen: dict[str, str] = {}
        while len(chosen) < size:
            name = drawn.choices(names, [LIKELY[one] for one in names])[0]
            if {name, *chosen} >= {"ofed", "rdma"}:
                continue
            chosen[name] = _value(catalog, name, drawn)
        found.append(chosen)
    return found


def _value(catalog: Catalog, name: str, drawn: random.Random) -> str:
    if name == "os":
        return drawn.choice(sorted(catalog.os))
    if name == "driver":
        return drawn.choice(DRIVERS)
    if name in catalog.virtual:
        return drawn.choice(catalog.virtual[name].releases).version
    if name == "torchvision":
        rows = [r for r in catalog.components["torch"].releases if name in r.provides]
        return drawn.choice(rows).provides[name]
    component = catalog.components["rdma" if name == "ofed" else name]
    rows = [r for r in component.releases if name != "ofed" or r.variant == "mlnx-ofed"]
    row = drawn.choice(rows)
    parts = row.version.partition("+")[0].split(".")
    forms = [row.version, row.version.partition("+")[0], ".".join(parts[:2]), "any"]
    if name in ("rdma", "nccl", "openmpi") and row.variant:
        forms.append(row.variant)
    return drawn.choices(forms, [4, 4, 3, 1, 1][: len(forms)])[0]
