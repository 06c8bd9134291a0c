"""Say what an answer rests on, and prefer what was built and validated among equal answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from imagegen.model.image import exact_pins
from imagegen.request.answer import answer_to, pinned
from imagegen.resolver.candidates import OS
from imagegen.resolver.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec
    from imagegen.model.validation import Proof
    from imagegen.resolver.refusal import Alternative

PROVEN, KNOWN, LIKELY = "proven", "known", "likely"
UNKNOWN_FACTS = "(rule unknown-facts)"


@dataclass(frozen=True)
class Ground:
    """What an answer rests on: a proof, facts with sources, or facts that are not certain.

    `because` says which proof, or which facts; `failed` is the last validation of the same pins if
    it failed.
    """

    level: str
    because: str
    proof: Proof | None = None
    failed: Proof | None = None

    @property
    def text(self) -> str:
        """Write it for people."""
        return f"rests on: {self.level}, {self.because}"

    @property
    def warning(self) -> str:
        """Warn about a validation that failed; empty where none did."""
        if self.failed is None:
            return ""
        checks = ", ".join(self.failed.failed) or "no check named"
        return f"a validation of exactly these pins failed on {self.failed.at[:10]}: {checks}"


def ground_of(spec: ImageSpec, catalog: Catalog) -> Ground:
    """Find out what an answer rests on."""
    own = exact_pins(spec)
    same = sorted((one for one in catalog.proofs if one.pins == own), key=lambda one: one.at)
    failed = same[-1] if same and not same[-1].passed else None
    good = [one for one in same if one.passed and not _failed_since(one, same)]
    if good:
        # A run of all checks says more than one of the static ones.
        proof = max(good, key=lambda one: (one.tier == "full", one.at))
        where = f"{proof.matrix}/{proof.cell} passed on {proof.at[:10]}"
        text = f"{where} ({proof.tier}, image {proof.image.removeprefix('sha256:')[:12]})"
        return Ground(PROVEN, text, proof, failed)
    doubtful = [pin.release.name for pin in spec.pins if pin.release.confidence != "high"]
    if doubtful:
        return Ground(LIKELY, f"not certain: {', '.join(doubtful)}", failed=failed)
    if any(text.endswith(UNKNOWN_FACTS) for text in spec.warnings):
        return Ground(LIKELY, "some of its facts are unknown", failed=failed)
    return Ground(KNOWN, "facts with sources: `--why`", failed=failed)


def _failed_since(proof: Proof, others: list[Proof]) -> bool:
    """Say whether the same pins failed later, in a run that measured as much or more."""
    return any(
        one.at > proof.at and not one.passed and one.tier in (proof.tier, "full") for one in others
    )


def proven_answer_to(
    constraints: Mapping[str, str], catalog: Catalog, *, allow_unknown: bool = False
) -> ImageSpec | Refusal:
    """Answer a request; among equal answers, and equal alternatives, the proven one comes first."""
    found = answer_to(constraints, catalog, allow_unknown=allow_unknown)
    if isinstance(found, Refusal):
        instead = (_proven(one, catalog, allow_unknown) for one in found.alternatives)
        return replace(found, alternatives=tuple(instead))
    return proven_instead(found, constraints, catalog, allow_unknown=allow_unknown)


def _proven(one: Alternative, catalog: Catalog, allow_unknown: bool) -> Alternative:
    """Give an alternative the pins that its request is answered with."""
    if one.spec is None:
        return one
    spec = proven_instead(one.spec, one.constraints, catalog, allow_unknown=allow_unknown)
    return one if spec is one.spec else replace(one, pins=pinned(spec), spec=spec)


def proven_instead(
    spec: ImageSpec,
    constraints: Mapping[str, str],
    catalog: Catalog,
    *,
    allow_unknown: bool = False,
) -> ImageSpec:
    """Return a proven answer to the same request that is equal to this one; else this one.

    It is equal if it has the same components, the same versions of all that was asked for, the
    same OS, and no more warnings.
    """
    if ground_of(spec, catalog).level == PROVEN:
        return spec
    own = exact_pins(spec)
    asked = {OS, *(catalog.request_keys.get(name, (name,))[0] for name in constraints)}
    for proof in sorted(catalog.proofs, key=lambda one: one.at, reverse=True):
        equal = proof.passed and proof.pins.keys() == own.keys() and proof.pins != own
        if equal and all(proof.pins[name] == own[name] for name in asked & own.keys()):
            other = answer_to({**constraints, **proof.pins}, catalog, allow_unknown=allow_unknown)
            if not isinstance(other, Refusal) and _is_as_good(other, spec, catalog):
                return replace(other, tag=spec.tag)
    return spec


def _is_as_good(other: ImageSpec, spec: ImageSpec, catalog: Catalog) -> bool:
    proven = ground_of(other, catalog).level == PROVEN
    return proven and len(other.warnings) <= len(spec.warnings)
