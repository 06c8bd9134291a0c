"""Make a proof of a validation: what exactly the image has that passed, or failed."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from imagegen.engine.containers.containers import LaunchSpec, running
from imagegen.engine.images import local_images
from imagegen.errors import ValidationError
from imagegen.model.labels import LABEL_RECIPE
from imagegen.model.recipe import EXPECTATION_PATH
from imagegen.model.validation import Proof

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from imagegen.engine.client import Engine
    from imagegen.model.validation import Check, ValidationRecord

TIERS = ("full", "static")
"""The runs that prove something: those of all checks, or of all static ones."""

HARDWARE = ("no-gpu-hw", "gpu-not-passed", "no-rdma-hw", "rdma-not-passed", "needs-peer")
"""Reasons to skip a check because of the machine, so that the suite proves less there."""

FLAVOUR = "flavour"
SECONDS = 60


def proof_of(engine: Engine, record: ValidationRecord) -> Proof:
    """Make the proof of a validation; the pins are those that the image itself promises.

    Raises ValidationError for an image that says nothing of itself, and EngineError.
    """
    promise = _promise(engine, record.image_id)
    if not promise:
        text = f"`{record.tag}` has no image.json, so that nobody knows what was proved"
        raise ValidationError.of(text, hint="prove images that imagegen built")
    labels = local_images.inspect(engine, record.image_id).get("Config", {}).get("Labels") or {}
    checks = record.report.get("checks", [])
    return Proof(
        matrix=str(promise["matrix"]),
        cell=str(promise["cell"]),
        at=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        tier=record.tier,
        passed=record.passed,
        image=record.image_id,
        recipe=str(labels.get(LABEL_RECIPE, "")),
        tool=str(promise["tool"]),
        pins=pins_of(promise),
        suites=tuple(proved_suites(checks)),
        failed=tuple(one["id"] for one in checks if one["outcome"] in ("failed", "error")),
    )


def _promise(engine: Engine, image_id: str) -> dict[str, Any]:
    """Read image.json of an image; empty where it has none."""
    idle = ("sleep", "600")
    spec = LaunchSpec(image_id, idle[1:], network="none", entrypoint=idle[:1])
    with running(engine, spec) as container:
        said = container.exec(["cat", EXPECTATION_PATH], SECONDS)
    return dict(json.loads(said.out)) if said.code == 0 else {}


def pins_of(promise: Mapping[str, Any]) -> dict[str, str]:
    """Return the pins of an image.json in the form of a proof."""
    pins = {"os": str(promise["os"]["id"])}
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
