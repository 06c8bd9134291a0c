"""Make a proof of a validation: what exactly the image has that passed, or failed."""

from __future__ import annotations

import json
from collections.abc import Mapping  # noqa: TC003 - TypedDict reads it
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TypedDict, cast

from imagegen import __version__
from imagegen.engine.containers.containers import LaunchSpec, running
from imagegen.engine.images import local_images
from imagegen.errors import ValidationError
from imagegen.model.image import FLAVOUR, exact_pins
from imagegen.model.labels import LABEL_RECIPE
from imagegen.model.recipe import EXPECTATION_PATH
from imagegen.model.validation import Proof
from imagegen.validation.reuse import LASTING_RESTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from imagegen.engine.client import Engine
    from imagegen.model.recipe import Recipe
    from imagegen.model.validation import Check, ValidationRecord

TIERS = ("full", "static")
"""The runs that prove something: those of all checks, or of all static ones."""

_OF_THE_IMAGE = {"not-in-recipe", "not-in-profile", "not-installed", "not-applicable"}
HARDWARE = LASTING_RESTS - _OF_THE_IMAGE - {"needs-root"}
"""Reasons to skip a check because of the machines, so that the suite proves less there."""

SECONDS = 60


class PromisedComponent(TypedDict):
    """A component in image.json, as far as a proof needs it."""

    version: str
    variant: str
    facts: Mapping[str, object]


class Promise(TypedDict):
    """The keys of image.json that a proof needs."""

    matrix: str
    cell: str
    tool: str
    os: Mapping[str, str]
    components: Mapping[str, PromisedComponent]


def proof_of_image(engine: Engine, record: ValidationRecord) -> Proof:
    """Make the proof of a validation; the pins are those that the image itself promises.

    Raises ValidationError for an image that says nothing of itself, and EngineError.
    """
    promise = _promise(engine, record.image_id)
    if promise is None:
        text = f"`{record.tag}` has no image.json, so that nobody knows what was proved"
        raise ValidationError.of(text, hint="prove images that imagegen built")
    labels = local_images.inspect(engine, record.image_id).get("Config", {}).get("Labels") or {}
    cell, recipe = f"{promise['matrix']}/{promise['cell']}", str(labels.get(LABEL_RECIPE, ""))
    return _proof(record, cell, pins_of(promise), recipe, promise["tool"])


def proof_of_recipe(record: ValidationRecord, recipe: Recipe) -> Proof:
    """Make the proof of a validation of the image that was built from a recipe."""
    return _proof(record, recipe.spec.cell.id, exact_pins(recipe.spec), recipe.digest, __version__)


def _proof(
    record: ValidationRecord, cell_id: str, pins: Mapping[str, str], recipe: str, tool: str
) -> Proof:
    checks = record.report.get("checks", [])
    matrix, _, cell = cell_id.partition("/")
    return Proof(
        matrix=matrix,
        cell=cell,
        at=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        tier=record.tier,
        passed=record.passed,
        image=record.image_id,
        recipe=recipe,
        tool=tool,
        pins=pins,
        suites=tuple(proved_suites(checks)),
        failed=tuple(one["id"] for one in checks if one["outcome"] in ("failed", "error")),
    )


def _promise(engine: Engine, image_id: str) -> Promise | None:
    """Read image.json of an image; None where it has none."""
    idle = ("sleep", "600")
    spec = LaunchSpec(image_id, idle[1:], network="none", entrypoint=idle[:1])
    with running(engine, spec) as container:
        said = container.exec(["cat", EXPECTATION_PATH], SECONDS)
    return cast("Promise", json.loads(said.out)) if said.code == 0 else None


def pins_of(promise: Promise) -> dict[str, str]:
    """Return the pins of an image.json in the form of a proof."""
    pins = {"os": promise["os"]["id"]}
    for name, one in promise["components"].items():
        pins[name] = " ".join(filter(None, [one["version"], one["variant"]]))
        if FLAVOUR in one["facts"]:
            pins[FLAVOUR] = str(one["facts"][FLAVOUR])
    return pins


def proved_suites(checks: Iterable[Check]) -> list[str]:
    """List the suites of which something passed, nothing failed, and no hardware was missing."""
    passed, spoilt = set(), set()
    for one in checks:
        if one["outcome"] == "passed":
            passed.add(one["suite"])
        elif one["outcome"] in ("failed", "error") or one.get("reason") in HARDWARE:
            spoilt.add(one["suite"])
    return sorted(passed - spoilt)
