"""Test what an answer rests on, and that a proof outranks a fact."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.model.catalog import Catalog
from imagegen.model.image import exact_pins
from imagegen.model.validation import Proof
from imagegen.request.alternatives import nearest_first
from imagegen.request.answer import answer_to
from imagegen.request.arguments import parse
from imagegen.request.proven import ground_of, proven_answer_to
from imagegen.resolver.refusal import Alternative, Refusal

if TYPE_CHECKING:
    from imagegen.model.image import ImageSpec
    from imagegen.workflow.project import Project

HOROVOD = ("horovod=0.28.1", "torch=2.0.1", "os=ubuntu22.04")
MADE_FOR = "horovod 0.28.1 is for torch"


def with_proofs(project: Project, *proofs: Proof) -> Catalog:
    one = project.catalog
    return Catalog(one.os, one.components, one.virtual, one.rules, (), proofs)


def answer(catalog: Catalog, *arguments: str) -> ImageSpec:
    found = proven_answer_to(parse(arguments, catalog), catalog)
    assert not isinstance(found, Refusal)
    return found


def proof(spec: ImageSpec, **changes: object) -> Proof:
    suites = tuple(pin.component for pin in spec.pins)
    made = Proof(
        matrix="mine",
        cell="one",
        at="2026-11-22T12:00:00Z",
        tier="full",
        passed=True,
        image="sha256:0123456789abcdef",
        recipe="sha256:2",
        tool="0.1.0",
        pins=exact_pins(spec),
        suites=suites,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_an_answer_rests_on_facts_or_on_a_proof(project: Project) -> None:
    plain = with_proofs(project)
    spec = answer(plain, "torch=1.13.1", "os=debian12")
    assert ground_of(spec, plain).level == "known"
    proven = ground_of(spec, with_proofs(project, proof(spec)))
    assert proven.level == "proven"
    assert proven.text == (
        "rests on: proven, mine/one passed on 2026-11-22 (full, image 0123456789ab)"
    )


def test_facts_that_are_not_certain_make_it_likely(project: Project) -> None:
    plain = with_proofs(project)
    spec = answer(plain, "torch=1.13.1", "os=debian12")
    pin = spec.pins[0]
    doubtful = replace(pin, release=replace(pin.release, confidence="medium"))
    found = ground_of(replace(spec, pins=(doubtful, *spec.pins[1:])), plain)
    assert (found.level, pin.component in found.because) == ("likely", True)


def test_other_pins_prove_nothing(project: Project) -> None:
    spec = answer(with_proofs(project), "torch=1.13.1", "os=debian12")
    other = proof(spec, pins={**exact_pins(spec), "ssh": "9.9"})
    assert ground_of(spec, with_proofs(project, other)).level == "known"


def test_a_failure_counts_against_a_proof_until_it_passes_again(project: Project) -> None:
    spec = answer(with_proofs(project), "torch=1.13.1", "os=debian12")
    passed = proof(spec)
    failed = proof(spec, passed=False, at="2026-11-23T00:00:00Z", failed=("torch.import",))
    found = ground_of(spec, with_proofs(project, passed, failed))
    assert found.level == "known"
    assert found.warning.endswith("failed on 2026-11-23: torch.import")
    again = replace(passed, at="2026-11-24T00:00:00Z")
    found = ground_of(spec, with_proofs(project, again, failed))
    assert (found.level, found.warning) == ("proven", "")


def test_a_static_failure_does_not_undo_a_whole_run_and_the_other_way_round(
    project: Project,
) -> None:
    spec = answer(with_proofs(project), "torch=1.13.1", "os=debian12")
    static = proof(spec, tier="static")
    whole = proof(spec, passed=False, at="2026-11-23T00:00:00Z", failed=("mpi.run",))
    assert ground_of(spec, with_proofs(project, static, whole)).level == "known"


def test_a_proof_outranks_a_fact(project: Project) -> None:
    plain = with_proofs(project)
    spec = answer(plain, *HOROVOD)
    assert [text for text in spec.warnings if text.startswith(MADE_FOR)]
    proven = with_proofs(project, proof(spec))
    assert not [text for text in answer(proven, *HOROVOD).warnings if text.startswith(MADE_FOR)]


def test_only_a_whole_run_of_both_suites_measures_that_they_work_together(
    project: Project,
) -> None:
    spec = answer(with_proofs(project), *HOROVOD)
    for change in ({"tier": "static"}, {"suites": ("torch",)}, {"passed": False}):
        catalog = with_proofs(project, proof(spec, **change))
        texts = answer(catalog, *HOROVOD).warnings
        assert [text for text in texts if text.startswith(MADE_FOR)], change


def test_a_later_failure_gives_the_warning_back(project: Project) -> None:
    spec = answer(with_proofs(project), *HOROVOD)
    later = proof(spec, passed=False, at="2026-12-01T00:00:00Z")
    catalog = with_proofs(project, proof(spec), later)
    assert [text for text in answer(catalog, *HOROVOD).warnings if text.startswith(MADE_FOR)]


def test_among_equals_the_proven_answer_comes_first(project: Project) -> None:
    plain = with_proofs(project)
    newest = answer(plain, "torch=2.0.1", "os=ubuntu22.04")
    wanted = {"torch": "2.0.1", "os": "ubuntu22.04", "openmpi": "4.0.5 source"}
    older = answer_to(wanted, plain)
    assert not isinstance(older, Refusal)
    assert exact_pins(older) != exact_pins(newest)
    catalog = with_proofs(project, proof(older))
    found = answer(catalog, "torch=2.0.1", "os=ubuntu22.04")
    assert exact_pins(found) == exact_pins(older)
    assert found.tag == newest.tag
    asked = answer(catalog, "torch=2.0.1", "os=ubuntu22.04", "openmpi=4.1.2")
    assert exact_pins(asked)["openmpi"].startswith("4.1.2")


def test_an_alternative_has_the_pins_of_its_own_proven_answer(project: Project) -> None:
    plain = with_proofs(project)
    asked = ("torch=2.0.1", "os=ubuntu22.04", "python=3.6")
    refused = proven_answer_to(parse(asked, plain), plain)
    assert isinstance(refused, Refusal)
    first = next(one for one in refused.alternatives if one.constraints["torch"] == "2.0.1")
    older = answer_to({**first.constraints, "openmpi": "4.0.5 source"}, plain)
    assert not isinstance(older, Refusal)
    catalog = with_proofs(project, proof(older))
    again = proven_answer_to(parse(asked, catalog), catalog)
    assert isinstance(again, Refusal)
    found = next(one for one in again.alternatives if one.constraints == first.constraints)
    assert (first.pins["openmpi"], found.pins["openmpi"]) == ("4.1.2", "4.0.5")


def test_an_alternative_that_is_known_to_fail_comes_after_the_others(project: Project) -> None:
    request = parse(("nccl=2.17.1", "cuda=12.1", "os=debian10", "gpu=H100"), project.catalog)
    refused = answer_to(request, project.catalog)
    assert isinstance(refused, Refusal)
    sizes = [(len(one.changes), one.known_bad) for one in refused.alternatives]
    assert any(bad for _, bad in sizes)
    same = Alternative((("os", "a", "b"),), {}, (0,), {}, refused.alternatives[0].spec)
    good = Alternative((("os", "a", "c"),), {}, (9,), {})
    bad = next(one for one in refused.alternatives if one.known_bad)
    near = replace(same, spec=bad.spec)
    assert sorted([near, good], key=nearest_first) == [good, near]
