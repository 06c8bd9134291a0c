"""Define 24 images that build in a moment: the same three layers for imagegen and its peers.

They measure scheduling, not work. Every round has a token of its own in its steps, so that nothing
comes from the cache of an earlier round.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from overlay import Overlay
from own_dockerd import BASE
from peers import Peer

if TYPE_CHECKING:
    from pathlib import Path

AXES = {"toolkit": ("1", "2"), "library": ("1", "2", "3"), "settings": ("1", "2", "3", "4")}
SECONDS = {"toolkit": "60", "library": "20", "settings": "1"}
"""The planner's seconds for each component, as its file states them: the first costs most."""

CELLS = 24


@dataclass(frozen=True)
class TinyCells:
    """Hold one round; a step of `settings` sleeps `sleep` seconds, if it has to cost time."""

    folder: Path
    token: str
    sleep: str = "0"

    @property
    def overlay(self) -> Overlay:
        """Return the overlay that imagegen builds from."""
        return Overlay(self.folder / "overlay", "tiny", f"bench-{self.token}/ours")

    def write(self, edit: str = "") -> None:
        """Write the overlay; `edit` is a change in the steps of `settings`."""
        for name, versions in AXES.items():
            step = self._step(name, "{{ release.version }}", edit)
            self.overlay.component(
                name, step, [{"version": one} for one in versions], seconds=SECONDS[name]
            )
        self.overlay.write_matrix({k: list(v) for k, v in AXES.items()}, {})

    def peers(self, edit: str = "") -> list[Peer]:
        """Return Dockerfiles with the same steps, in the order of the axes."""
        return [
            Peer(f"bench-{self.token}/peer:{'-'.join(values)}", self._dockerfile(values, edit))
            for values in product(*AXES.values())
        ]

    def _dockerfile(self, values: tuple[str, ...], edit: str) -> str:
        steps = [self._step(name, one, edit) for name, one in zip(AXES, values, strict=True)]
        return "\n".join([f"FROM {BASE}", *steps, 'CMD ["bash"]', ""])

    def _step(self, name: str, version: str, edit: str) -> str:
        last = name == "settings"
        work = f"sleep {self.sleep} && " if last else ""
        return f"RUN {work}echo {version} {self.token}{edit * last} > /etc/tiny-{name}"
