"""Show the difference between two images as tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from imagegen.text import human_bytes, short_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.console.console import Console
    from imagegen.engine.images.inventory import Layer
    from imagegen.inspection.diff import Change, Difference

_WRAPPING = re.compile(
    r"^(RUN )?(/bin/\w+ (-o pipefail )?-c |\|\d+ .*?/bin/\w+ -c )|\s*# buildkit$"
)
_WIDTH = 90
_INPUTS = {
    "frame": "the Dockerfile around its stages",
    "tool": "the release of imagegen",
    "os": "the facts of the OS",
    "order": "the order of layers",
    "release": "the release of",
    "env": "the variables of stage",
    "part": "the vendor part",
    "promise": "in image.json:",
}
"""Kinds of inputs, as `renderer/provenance` names them, in words."""
_KINDS = {"deb": "dpkg", "pypi": "pip", "conda": "conda"}


def show(made: Difference, console: Console, most: int | None) -> None:
    """Show a difference, the most important first, with at most `most` rows in a section."""
    sides = (("A", made.before), ("B", made.after))
    for name, side in sides:
        console.line(f"{name}  {side.ref}  {side.id[7:19]}  {human_bytes(side.size_bytes)}")
        for one in side.missing:
            console.line(f"{name}  not read: {one}")
    console.line(f"B is {_grew(made.after.size_bytes - made.before.size_bytes)}")
    if made.same:
        read = made.before.missing or made.after.missing
        console.line("nothing differs" + (" in what could be read" if read else ""))
    _changes("component", made.components, console, most)
    if made.inputs:
        differing = _list([*map(in_words, made.inputs)], most)
        console.line(f"inputs of the recipes that differ: {differing}")
    for kind, title in _KINDS.items():
        _changes(title, [one for one in made.packages if one.kind == kind], console, most)
    _changes("shared library", made.sonames, console, most)
    _changes("variable", made.env, console, most)
    _changes("label", made.labels, console, most)
    _folders(made, console, most)
    _layers(made, console)
    for name, side in sides:
        for left in side.leftovers:
            console.line(f"{name}  {left}")


def _changes(what: str, changes: Sequence[Change], console: Console, most: int | None) -> None:
    """Show what changed, then what only A has, then what only B has."""
    if not changes:
        return
    ranked = sorted(changes, key=lambda one: (not (one.before and one.after), not one.before))
    rows = [(one.name, _cut(one.before) or "-", _cut(one.after) or "-") for one in ranked[:most]]
    console.line()
    console.table((what, "A", "B"), rows)
    removed, added = sum(not one.after for one in changes), sum(not one.before for one in changes)
    counts = {"changed": len(changes) - removed - added, "only in A": removed, "only in B": added}
    summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    more = len(ranked) - len(rows)
    console.line(summary + (f"; {more} not shown (`--all`)" if more else ""))


def in_words(name: str) -> str:
    """Write the name of an input of a recipe, such as `promise cell`, for people."""
    kind, _, what = name.partition(" ")
    return f"{_INPUTS.get(kind, kind)} {what}".strip()


def _list(names: Sequence[str], most: int | None) -> str:
    return ", ".join(names[:most]) + (", …" if most and len(names) > most else "")


def _folders(made: Difference, console: Console, most: int | None) -> None:
    rows = [
        (
            one.path,
            human_bytes(one.before) if one.before else "-",
            human_bytes(one.after) if one.after else "-",
            _grew(one.grew),
        )
        for one in made.folders[:most]
    ]
    if rows:
        console.line()
        console.table(("where the bytes are", "A", "B", "B is"), rows)


def _layers(made: Difference, console: Console) -> None:
    rows = [
        (name, _size(layer), _made_by(layer.made_by))
        for name, side in (("A", made.before), ("B", made.after))
        for layer in sorted(side.layers, key=lambda layer: -layer.size_bytes)
    ]
    console.line()
    if rows:
        console.table(("layer", "size", "made by"), rows)
    shared = sum(max(layer.size_bytes, 0) for layer in made.shared)
    count = f"{len(made.shared)} layers are" if len(made.shared) > 1 else "a layer is"
    once = f"{count} shared: {human_bytes(shared)} that are on the disk once"
    console.line(once if made.shared else "no layer is shared")


def _size(layer: Layer) -> str:
    return human_bytes(layer.size_bytes) if layer.size_bytes >= 0 else "?"


def _made_by(instruction: str) -> str:
    return _cut(short_step(_WRAPPING.sub("", instruction)) or "an import")


def _grew(count: int) -> str:
    if not count:
        return "as large"
    return f"{human_bytes(abs(count))} {'larger' if count > 0 else 'smaller'}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
