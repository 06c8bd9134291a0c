"""Write what an image was made from into its label, and find what of that has changed since.

It is one flat map: the name of an input to its value or a short hash of it. Two maps of one cell
differ in exactly the inputs that make its image stale.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from imagegen import __version__
from imagegen.model.labels import LABEL_INPUTS
from imagegen.model.recipe import EXPECTATION_PATH
from imagegen.renderer.dockerfile import OWN_FOLDER, instructions, steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.model.image import Pin
    from imagegen.model.recipe import Recipe
    from imagegen.model.release import Release

DERIVED = ("components", "contract", "env", "image", "os", "suites", "tool")
"""The keys of image.json that repeat other inputs: reported only if no other input has changed."""

_ROW = ("apt", "build_apt", "wheels", "facts", "origin", "source", "index", "tarball", "artifact")
_HASH_LETTERS = 12


def inputs_of(recipe: Recipe) -> dict[str, str]:
    """Map every input of a recipe to its value or a hash of it, sorted by name."""
    found = {"tool": __version__, "os": _hash(_os_facts(recipe))}
    found["order"] = " ".join(dict.fromkeys(origin.component for origin in recipe.origins))
    found |= {f"release {pin.component}": _row(pin) for pin in recipe.spec.pins}
    found |= _templates(recipe)
    found |= _steps(recipe)
    found |= {f"part {part}": part.sha256[:_HASH_LETTERS] for part in recipe.parts}
    for file in recipe.files:
        if file.path == f"{OWN_FOLDER}{EXPECTATION_PATH}":
            found |= {
                f"promise {key}": _hash(value) for key, value in json.loads(file.data).items()
            }
        elif not file.path.startswith(f"{OWN_FOLDER}/"):
            found[f"file {file.path}"] = _digest(file.data + f" {file.mode:o}".encode())
    return dict(sorted(found.items()))


def labelled(dockerfile: str, recipe: Recipe) -> str:
    """Add the inputs of a recipe to a Dockerfile, as its last label.

    A label makes no layer. As a field of the request it would make the URL longer than proxies
    accept.
    """
    text = json.dumps(inputs_of(recipe), separators=(",", ":")).replace("'", "\\u0027")
    return f"{dockerfile}LABEL {LABEL_INPUTS}='{text}'\n"


def _hash(value: object) -> str:
    return _digest(json.dumps(value, sort_keys=True, default=str).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_HASH_LETTERS]


def _os_facts(recipe: Recipe) -> dict[str, object]:
    return {k: v for k, v in asdict(recipe.spec.os).items() if k not in ("file", "source", "notes")}


def _row(pin: Pin) -> str:
    row = {name: getattr(pin.release, name) for name in _ROW}
    return f"{_release_name(pin.release)} {_hash(row)}"


def _release_name(release: Release) -> str:
    return release.version + (f" ({release.variant})" if release.variant else "")


def _templates(recipe: Recipe) -> dict[str, str]:
    """Take the sources of the templates of this image's components, and of the common ones."""
    pinned = {pin.component for pin in recipe.spec.pins}
    return {
        f"template {name}": source
        for name, source in recipe.templates.items()
        if not name.startswith("components/") or name.split("/")[1] in pinned
    }


def _steps(recipe: Recipe) -> dict[str, str]:
    """Hash each step, the settings of each stage that are no steps, and the text around stages."""
    texts = steps(recipe.dockerfile)
    found = {
        f"step {origin.stage}/{origin.index}": _hash(texts.get((origin.stage, origin.index), ""))
        for origin in recipe.origins
    }
    stages = {origin.stage for origin in recipe.origins}
    loose: dict[str, list[str]] = {}
    for one in instructions(recipe.dockerfile):
        if one.stage not in stages:
            loose.setdefault("frame", []).append(one.text.replace(__version__, ""))
        elif not one.counted:
            loose.setdefault(f"env {one.stage}", []).append(one.text)
    return found | {name: _hash(text) for name, text in loose.items()}


def changes(before: Mapping[str, str], recipe: Recipe) -> list[str]:
    """Describe each input that differs from what an image was made from, causes before effects."""
    after = inputs_of(recipe)
    differing = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    texts = _tool(before, after)
    if "os" in differing:
        texts.append(f"OS file {recipe.spec.os.file or recipe.spec.os.id} changed")
    texts += _releases(differing, before, after, recipe)
    texts += _parts(differing, before, after)
    texts += _template_lines(differing, recipe)
    texts += _files(differing, before, after)
    texts += _order(differing, before, after)
    texts += _environment(differing, recipe)
    return texts or _promises(differing, recipe)


def _tool(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    old, new = before.get("tool", "?"), after["tool"]
    return [] if old == new else [f"imagegen {old} -> {new}"]


def _names(differing: list[str], kind: str) -> list[str]:
    return [name.removeprefix(f"{kind} ") for name in differing if name.startswith(f"{kind} ")]


def _releases(
    differing: list[str], before: Mapping[str, str], after: Mapping[str, str], recipe: Recipe
) -> list[str]:
    texts = []
    for name in _names(differing, "release"):
        old = before.get(f"release {name}", "").rpartition(" ")[0]
        new = after.get(f"release {name}", "").rpartition(" ")[0]
        pin = recipe.spec.pin(name)
        where = f" ({pin.release.file}:{pin.release.line})" if pin and pin.release.file else ""
        if old and new:
            texts.append(
                f"release row {name} {new} changed{where}"
                if old == new
                else f"{name} {old} -> {new}{where}"
            )
        else:
            texts.append(f"{name} {new} is new{where}" if new else f"{name} {old} is gone")
    return texts


def _parts(differing: list[str], before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [
        f"part {name} {_fate(f'part {name}', before, after)}" for name in _names(differing, "part")
    ]


def _fate(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    if name not in before:
        return "is new"
    return "changed" if name in after else "is gone"


def _template_lines(differing: list[str], recipe: Recipe) -> list[str]:
    """Name the template line of each step that changed because its template was edited.

    A step that changed although its template did not is the effect of a row or of a macro. An
    edited template without a changed step (only a comment changed) is no cause.
    """
    edited = {f"dockerfiles/{name}" for name in _names(differing, "template")}
    steps_now = set(_names(differing, "step"))
    changed = [one for one in recipe.origins if f"{one.stage}/{one.index}" in steps_now]
    where = [f"{one.template}:{one.line}" for one in changed if one.template in edited]
    where += _unstepped(edited, set(_names(differing, "env")), recipe)
    if any(one.template not in edited for one in changed):
        where += sorted(name for name in edited if name.startswith("dockerfiles/macros/"))
    if "frame" in differing:
        where += sorted(edited & {"dockerfiles/Dockerfile.j2"})
    return [f"{one} changed" for one in dict.fromkeys(where)]


def _unstepped(edited: set[str], stages: set[str], recipe: Recipe) -> list[str]:
    """List the edited templates whose ENV, which is no step, has changed."""
    found = {one.template for one in recipe.origins if one.stage in stages}
    return sorted(edited & found)


def _files(differing: list[str], before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [
        f"context file {name} {_fate(f'file {name}', before, after)}"
        for name in _names(differing, "file")
    ]


def _order(differing: list[str], before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Report a new order of those components that were there before and still are."""
    old, new = before.get("order", "").split(), after["order"].split()
    both = [name for name in new if name in old]
    if "order" not in differing or both == [name for name in old if name in new]:
        return []
    return [f"the order of layers: {' > '.join(new)}"]


def _environment(differing: list[str], recipe: Recipe) -> list[str]:
    """Report changed ENV lines that come from component.yaml.

    ENV lines also change with those of the components below; such an effect is not reported.
    """
    changed = set(_names(differing, "env"))
    same = {one.component for one in recipe.origins if one.stage in changed}
    edited = {name.split("/")[1] for name in _names(differing, "template") if "/" in name}
    released = set(_names(differing, "release"))
    first = next((one.component for one in recipe.origins if one.stage in changed), "")
    if "order" in differing or not same or same & edited or released:
        return []
    return [f"the environment of {first} in its component.yaml changed"]


def _promises(differing: list[str], recipe: Recipe) -> list[str]:
    """Report what only image.json shows: settings of the matrix, a component's contract."""
    names = _names(differing, "promise")
    own = [name for name in names if name not in DERIVED] or names
    text = f"what matrix {recipe.spec.cell.matrix} or component.yaml says of the cell changed"
    return [f"{text}: {', '.join(own)}"] if own else []
