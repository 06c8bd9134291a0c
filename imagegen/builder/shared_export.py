"""Which cell has the engine pack a large new layer that all cells of an OS stand on.

When the steps of an image are done, the engine packs the layers that no image had before: it reads
and hashes all of their bytes. It does so once for each image that ends meanwhile, whatever they
share (moby, builder/builder-next/adapters/snapshot/layer.go, EnsureLayer: "TODO: add
flightcontrol"): eight images packed one layer of 4.5 GB eight times, side by side, and the last was
done after 97 s; packed once, it took 26 s. So the first cell on such a layer makes an image of what
ends with it, and the others begin when that is packed; those that will be busy for longer than that
begin before.

Layers of some cells alone are left to the engine: where others were built beside the packer, Docker
20.10 ran such a layer again for the packer's own image.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from imagegen.planner.chain import Chain, SharedLayer

LARGE = 500_000_000
"""Bytes from which on packing a layer takes longer than asking the engine once more."""

PACKED_A_SECOND = 100_000_000
"""Bytes; half of what was measured, because what runs beside it takes its share of the cores."""


class SharedExport:
    """The large new layer of each OS in a run, and the cell that packs it."""

    def __init__(self, layers: Iterable[SharedLayer] = ()) -> None:
        """`layers` are those that all cells of an OS stand on and no image has, the lower ones
        first. Of an OS, the highest that is large is packed by itself, and with it those below."""
        large = [layer for layer in layers if layer.size_bytes >= LARGE]
        self._of = {cell: layer for layer in large for cell, _ in layer.above}
        self._packer: dict[SharedLayer, str] = {}
        self._made: set[SharedLayer] = set()
        self._lock = threading.Lock()

    @property
    def layers(self) -> frozenset[tuple[str, Chain]]:
        """The layers that are packed by themselves, each with its OS."""
        with self._lock:
            return frozenset((layer.os_id, layer.chain) for layer in self._of.values())

    def waits_for(self, cell_id: str) -> str:
        """What this cell has to wait for: another is about to pack the layer that it stands on, and
        will not have done so by the time that this one's own steps are done. Else empty."""
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
        """The cell packs what it stands on, unless another is about to."""
        with self._lock:
            layer = self._of.get(cell_id)
            if layer is not None:
                self._packer.setdefault(layer, cell_id)

    def own(self, cell_id: str) -> SharedLayer | None:
        """What the cell has to pack before its own image."""
        with self._lock:
            layer = self._of.get(cell_id)
            return layer if layer and self._packer.get(layer) == cell_id else None

    def made(self, layer: SharedLayer) -> None:
        """The layer is there; it is packed from here on."""
        with self._lock:
            self._made.add(layer)

    def end(self, cell_id: str) -> None:
        """The cell has packed its layer, or failed to: nobody waits for it any more. A layer that
        cannot be made is not tried by one cell after the other."""
        layer = self.own(cell_id)
        with self._lock:
            self._of = {cell: one for cell, one in self._of.items() if one != layer}
