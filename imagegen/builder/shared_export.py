"""Decide which cell makes the engine pack a large new layer that all cells of an OS share.

When the steps of an image are done, the engine packs the layers that no image had before: it reads
and hashes all of their bytes. It does so again for each image that ends at that time, even for a
layer that they share (moby, builder/builder-next/adapters/snapshot/layer.go, EnsureLayer: "TODO:
add flightcontrol"): eight images packed one layer of 4.5 GB eight times in parallel, and the last
was done after 97 s; packed once, it took 26 s. So the first cell on such a layer builds an image
that ends with it, and the other cells begin when the layer is packed. Cells whose own steps take
longer than the packing begin before that.

Layers that only some cells have are left to the engine: when other cells were built beside the cell
that packs, Docker 20.10 ran the steps of such a layer again for that cell's own image.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from imagegen.planner.chain import Chain, SharedLayer

LARGE = 500_000_000
"""Bytes. Packing a larger layer takes longer than one more request to the engine."""

PACKED_A_SECOND = 100_000_000
"""Bytes; half of what was measured, because other builds use the processor cores at the same time.
"""


class SharedExport:
    """Know the large new layer of each OS in a run, and the cell that packs it."""

    def __init__(self, layers: Iterable[SharedLayer] = ()) -> None:
        """Choose the layer of each OS that is packed first.

        `layers` are the layers that all cells of an OS share and no image has yet, the lower ones
        first. The highest large layer of an OS is chosen; the layers below it are packed with it.
        """
        large = [layer for layer in layers if layer.size_bytes >= LARGE]
        self._of = {cell: layer for layer in large for cell, _ in layer.above}
        self._packer: dict[SharedLayer, str] = {}
        self._made: set[SharedLayer] = set()
        self._lock = threading.Lock()

    @property
    def layers(self) -> frozenset[tuple[str, Chain]]:
        """Return the layers that one cell packs for all, each with its OS."""
        with self._lock:
            return frozenset((layer.os_id, layer.chain) for layer in self._of.values())

    def waits_for(self, cell_id: str) -> str:
        """Return what a cell has to wait for where another cell packs their shared layer.

        It is empty where the cell need not wait, as its own steps take longer than the packing.
        """
        with self._lock:
            layer = self._of.get(cell_id)
            packer = self._packer.get(layer, cell_id) if layer else cell_id
            if layer is None or packer == cell_id:
                return ""
            packing = layer.size_bytes / PACKED_A_SECOND
            if layer in self._made and dict(layer.above)[cell_id] >= packing:
                return ""
            return f"{packer} to export {layer.component} for {len(layer.above)} images"

    def begin(self, cell_id: str) -> None:
        """Note that a cell begins; it packs its shared layer unless another cell does."""
        with self._lock:
            layer = self._of.get(cell_id)
            if layer is not None:
                self._packer.setdefault(layer, cell_id)

    def own(self, cell_id: str) -> SharedLayer | None:
        """Return the layer that the cell has to pack before its own image, or None."""
        with self._lock:
            layer = self._of.get(cell_id)
            return layer if layer and self._packer.get(layer) == cell_id else None

    def made(self, layer: SharedLayer) -> None:
        """Note that the steps of the layer are done; from now on it is being packed."""
        with self._lock:
            self._made.add(layer)

    def end(self, cell_id: str) -> None:
        """Note that the cell packed its layer, or could not; the other cells stop waiting for it.

        A layer that cannot be made is not tried again by the next cell.
        """
        layer = self.own(cell_id)
        with self._lock:
            self._of = {cell: one for cell, one in self._of.items() if one != layer}
