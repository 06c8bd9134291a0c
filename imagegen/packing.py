"""Which cell has the engine pack a large new layer that several cells stand on.

When the steps of an image are done, the engine packs the layers that no image had before: it reads
and hashes all of their bytes. It does so once for each image that ends meanwhile, whatever they
share (moby, builder/builder-next/adapters/snapshot/layer.go, EnsureLayer: "TODO: add
flightcontrol"): eight images on one layer of 4.5 GB packed it eight times, side by side, in 97 s
where one takes 22 s. So the first cell on such a layer makes an image of what ends with it, and
the others begin when that is packed; those that will be busy for longer than that begin before.

That is done for a layer that all cells of an OS stand on, so that nothing else runs on it
meanwhile: where another build runs the step below at the same time, BuildKit of Docker 20.10 does
not find what was made on top of it again, and the second request runs it anew.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from imagegen.chain import SharedLayer

LARGE = 500_000_000
"""Bytes from which on packing a layer takes longer than asking the engine once more."""

PACKED_A_SECOND = 100_000_000
"""Bytes; half of what was measured, because what runs beside it takes its share of the cores."""


class Packing:
    """The large new layers of a run, the cells that pack them, and which are packed."""

    def __init__(self, layers: Iterable[SharedLayer] = ()) -> None:
        """`layers` are those that all cells of an OS stand on and no image has, the lower ones
        first. Of an OS, the highest that is large is packed by itself, and with it those below."""
        self._of: dict[str, dict[SharedLayer, float]] = {}
        self._packer: dict[SharedLayer, str] = {}
        self._made: set[SharedLayer] = set()
        self._lock = threading.Lock()
        for layer in layers:
            if layer.size_bytes >= LARGE:
                self._of |= {cell: {layer: above} for cell, above in layer.above}

    def waits(self, cell_id: str) -> bool:
        """Whether another cell is about to pack a layer that this one stands on, and will not have
        done so by the time that this one's own steps are done."""
        with self._lock:
            return any(
                layer not in self._made or above < layer.size_bytes / PACKED_A_SECOND
                for layer, above in self._of.get(cell_id, {}).items()
                if self._packer.get(layer, cell_id) != cell_id
            )

    def begin(self, cell_id: str) -> None:
        """The cell packs what it stands on and nobody else is about to pack."""
        with self._lock:
            for layer in self._of.get(cell_id, ()):
                self._packer.setdefault(layer, cell_id)

    def unpacked(self, cell_id: str) -> tuple[SharedLayer, ...]:
        """What the cell has to pack before its own image, the lowest first."""
        with self._lock:
            own = self._of.get(cell_id, ())
            return tuple(layer for layer in own if self._packer.get(layer) == cell_id)

    def made(self, layer: SharedLayer) -> None:
        """The layer is there; it is packed from here on."""
        with self._lock:
            self._made.add(layer)

    def packed(self, layer: SharedLayer) -> None:
        """An image has the layer: who stands on it need not think of it any more."""
        with self._lock:
            self._packer.pop(layer, None)
            for layers in self._of.values():
                layers.pop(layer, None)

    def end(self, cell_id: str) -> None:
        """The cell is done; what it did not come to pack is for another."""
        with self._lock:
            for layer in [one for one, cell in self._packer.items() if cell == cell_id]:
                del self._packer[layer]
                self._made.discard(layer)
