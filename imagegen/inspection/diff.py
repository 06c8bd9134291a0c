"""Compare two images, from what was read of each of them."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from imagegen.inspection.leftovers import Leftover, leftovers
from imagegen.model.labels import LABEL_INPUTS, LABEL_RECIPE, labelled_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.engine.images.contents import ImageContents
    from imagegen.engine.images.inventory import Inventory, Layer

LEAST_SHARE = 0.05
"""A folder is listed if its difference is at least this share of the largest one."""

EXPLAINED = 0.75
"""The folders in a folder are listed instead of it where they make up this share of its difference.
"""

_OWN_LABELS = "io.imagegen."
_SAID_ELSEWHERE = (LABEL_INPUTS, LABEL_RECIPE)


@dataclass(frozen=True)
class Change:
    """Describe one thing that differs; where one side does not have it, its text is empty."""

    name: str
    before: str
    after: str
    kind: str = ""


@dataclass(frozen=True)
class Weight:
    """Hold a folder, or a large file, with its bytes on both sides."""

    path: str
    before: int
    after: int

    @property
    def grew(self) -> int:
        """Return the bytes that were added; negative where it became smaller."""
        return self.after - self.before


@dataclass(frozen=True)
class Side:
    """Describe one of the two images.

    `missing` says what could not be read of it, `leftovers` what its build left behind. `layers`
    are those that the other image does not have.
    """

    ref: str
    id: str
    size_bytes: int
    missing: tuple[str, ...]
    leftovers: tuple[Leftover, ...]
    layers: tuple[Layer, ...]


@dataclass(frozen=True)
class Difference:
    """Hold all that differs between two images.

    `inputs` names the inputs in which the recipes differ, as the labels have them. `shared` are the
    layers that both have, which are on the engine's disk once.
    """

    before: Side
    after: Side
    components: tuple[Change, ...]
    packages: tuple[Change, ...]
    sonames: tuple[Change, ...]
    env: tuple[Change, ...]
    labels: tuple[Change, ...]
    inputs: tuple[str, ...]
    shared: tuple[Layer, ...]
    folders: tuple[Weight, ...]

    @property
    def same(self) -> bool:
        """Return whether nothing differs.

        Labels may differ all the same, and layers whose files were only written again.
        """
        named = (self.components, self.packages, self.sonames, self.env, self.labels, self.inputs)
        lone = self.before.layers or self.after.layers
        return self.before.id == self.after.id or not (any(named) or self.folders or lone)


def difference(before: Inventory, after: Inventory) -> Difference:
    """Compare one image with another.

    What could not be read on one side is not compared, so it is not reported as added or removed;
    `missing` of that side says why.
    """
    a, b = before.contents, after.contents
    there = {layer.digest for layer in before.layers} & {layer.digest for layer in after.layers}
    inputs = [labelled_inputs(one.labels) for one in (before, after)]
    return Difference(
        _side(before, there),
        _side(after, there),
        _changes(component_versions(before), component_versions(after)),
        _package_changes(a, b),
        _changes(a.sonames, b.sonames) if a.sonames and b.sonames else (),
        _changes(before.env, after.env),
        _changes(_labels(before), _labels(after)),
        tuple(change.name for change in _changes(inputs[0], inputs[1])) if all(inputs) else (),
        tuple(layer for layer in after.layers if layer.digest in there),
        tuple(weights(a.folders, b.folders)) if a.folders and b.folders else (),
    )


def _side(found: Inventory, shared: set[str]) -> Side:
    own = tuple(layer for layer in found.layers if layer.digest not in shared)
    return Side(found.ref, found.id, found.size_bytes, found.missing, leftovers(found), own)


def _changes(
    before: Mapping[str, str], after: Mapping[str, str], kind: str = ""
) -> tuple[Change, ...]:
    return tuple(
        Change(name, before.get(name, ""), after.get(name, ""), kind)
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )


def component_versions(found: Inventory) -> dict[str, str]:
    """Map each component to its version and variant, from image.json, else from the labels.

    The OS is a component too. In an image of another tool it is the only one.
    """
    promised = found.contents.promise.get("components", {})
    versions = {
        name: " ".join(filter(None, [one.get("version", ""), one.get("variant", "")]))
        for name, one in promised.items()
    } or {
        name.removeprefix("release "): row.rpartition(" ")[0]
        for name, row in labelled_inputs(found.labels).items()
        if name.startswith("release ")
    }
    os = found.contents.os
    named = " ".join(filter(None, [os.get("ID", ""), os.get("VERSION_ID", "")]))
    return {"os": named, **versions} if named else versions


def _package_changes(before: ImageContents, after: ImageContents) -> tuple[Change, ...]:
    """Compare the packages, by kind.

    A kind that only one side has is compared too, except the system's own packages (`deb`): every
    image has those, so they could not be read.
    """
    found: list[Change] = []
    for kind in ("deb", "pypi", "conda"):
        a, b = _versions(before, kind), _versions(after, kind)
        if kind != "deb" or (a and b):
            found += _changes(a, b, kind)
    return tuple(found)


def _versions(contents: ImageContents, kind: str) -> dict[str, str]:
    """Map each package to its version; to all versions if it is installed more than once."""
    versions: defaultdict[str, set[str]] = defaultdict(set)
    for package in contents.of_kind(kind):
        versions[package.name].add(package.version)
    return {name: ", ".join(sorted(several)) for name, several in versions.items()}


def _labels(found: Inventory) -> dict[str, str]:
    """Map the tool's own labels to their values.

    A label whose value is a map, such as the contract, becomes one row for each key.
    """
    rows: dict[str, str] = {}
    for name, value in found.labels.items():
        if name.startswith(_OWN_LABELS) and name not in _SAID_ELSEWHERE:
            inner = _map_of(value)
            rows |= {f"{name} {key}": json.dumps(one) for key, one in inner.items()} or {
                name: value
            }
    return rows


def _map_of(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def weights(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[Weight]:
    """Find the folders that explain the difference in bytes, the largest difference first.

    They are the deepest ones that still explain it: not `/usr`, if only `/usr/lib/llvm` grew.
    """
    every = {
        path: Weight(path, before.get(path, 0), after.get(path, 0)) for path in {*before, *after}
    }
    below: defaultdict[str, list[Weight]] = defaultdict(list)
    for path, weight in every.items():
        if path != "/":
            below[str(PurePosixPath(path).parent)].append(weight)
    largest = max((abs(weight.grew) for weight in every.values()), default=0)
    least = max(1, LEAST_SHARE * largest)

    def explained(weight: Weight) -> Iterator[Weight]:
        inner = [one for one in below[weight.path] if abs(one.grew) >= least]
        if inner and sum(abs(one.grew) for one in inner) >= EXPLAINED * abs(weight.grew):
            for one in inner:
                yield from explained(one)
        elif abs(weight.grew) >= least:
            yield weight

    if "/" in every:
        yield from sorted(explained(every["/"]), key=lambda one: (-abs(one.grew), one.path))
