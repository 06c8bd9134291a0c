"""`python docs/drawing` makes the pictures of the documentation; `make pictures` calls it."""

from __future__ import annotations

import sys
from pathlib import Path

from pictures import PICTURES, draw

FOLDER = Path(__file__).parents[1] / "pictures"

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in PICTURES:
        (FOLDER / name).write_text(draw(name), encoding="utf-8")
        sys.stdout.write(f"docs/pictures/{name}\n")
