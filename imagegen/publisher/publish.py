"""Push images by digest, then move their tags; if one cannot be moved, move all of them back.

Only an image whose exact id has a passed validation record is published, and only if it holds no
secret. So "validated" and "published" mean the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.engine.images import local_images
from imagegen.engine.registry import remote_images
from imagegen.errors import ConfigError, Problem, PublishError
from imagegen.model.image import name_problem
from imagegen.model.publication import Publication
from imagegen.validation.image_secrets import secrets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from imagegen.engine.client import Engine
    from imagegen.journal.journal import Journal
    from imagegen.model.validation import ValidationRecord


@dataclass(frozen=True)
class PublishCandidate:
    """Describe an image to publish: its local tag and id, and the record that decides on it."""

    tag: str
    image_id: str
    validation: ValidationRecord | None


def published_reference(tag: str, to: str) -> str:
    """Make the reference to publish: from `imagegen/cpu:x` to `registry/team/cpu:x`.

    `to` is `registry/team`.
    """
    return f"{to.rstrip('/')}/{tag.rpartition('/')[2]}"


def check_target(tags: Iterable[str], to: str) -> None:
    """Raise ConfigError where an image cannot have its name in this registry."""
    for tag in tags:
        if why := name_problem(published_reference(tag, to)):
            text = f"`--to {to!a}` is not REGISTRY/NAMESPACE: {why}"
            raise ConfigError.of(text, hint="such as `registry.example.org:5000/team`")


def candidate_of(engine: Engine, tag: str, journal: Journal) -> PublishCandidate:
    """Find the image that has a tag on the engine now, and the record that decides about its id."""
    image = local_images.find(engine, tag)
    if image is None:
        return PublishCandidate(tag, "", None)
    return PublishCandidate(tag, image.id, journal.validation_of(image.id))


def refusals(candidates: Sequence[PublishCandidate]) -> list[Problem]:
    """List the reasons why any of these may not be published; empty if all may."""
    problems = []
    for candidate in candidates:
        record = candidate.validation
        if not candidate.image_id:
            text, hint = "the engine has no such image", "imagegen build"
        elif record is None or record.image_id != candidate.image_id:
            text, hint = "it has no validation record for these bytes", "imagegen validate"
        elif not record.passed:
            text, hint = "its last validation did not pass", "imagegen validate"
        else:
            continue
        evidence = (f"image {candidate.image_id}",) if candidate.image_id else ()
        problems.append(
            Problem(
                f"`{candidate.tag}` is not published: {text}",
                evidence=evidence,
                hint=f"{hint} {candidate.tag}" if hint.endswith("validate") else hint,
            )
        )
    return problems


def publish(
    engine: Engine, candidates: Sequence[PublishCandidate], to: str, on_line: Callable[[str], None]
) -> list[Publication]:
    """Push all images, read every digest back, then move all tags.

    Raises PublishError before it pushes anything, if one of them may not be published. Also raises
    it if a tag cannot be moved, after it has moved the other tags back.
    """
    problems = refusals(candidates) or _keys(engine, candidates)
    if problems:
        raise PublishError(*problems)
    planned = []
    for candidate in candidates:
        reference = published_reference(candidate.tag, to)
        on_line(f"push {reference}")
        digest = remote_images.push(engine, candidate.image_id, reference, on_line)
        previous = remote_images.digest_of(reference, engine) or ""
        planned.append(Publication(candidate.image_id, reference, digest, previous))
    _move(engine, planned, on_line)
    return planned


def _keys(engine: Engine, candidates: Sequence[PublishCandidate]) -> list[Problem]:
    """Find secrets in the images whose record is not a passed full one.

    A full validation has looked for them already.
    """
    problems = []
    for candidate in candidates:
        record = candidate.validation
        if record is not None and record.tier == "full" and record.passed:
            continue
        for secret in secrets_of(engine, candidate.image_id):
            problems.append(
                Problem(
                    f"`{candidate.tag}` is not published: {secret}",
                    hint="make keys when the container starts, mount secrets, and build again",
                )
            )
    return problems


def _move(engine: Engine, planned: Sequence[Publication], on_line: Callable[[str], None]) -> None:
    moved: list[Publication] = []
    try:
        for one in planned:
            repository, tag = local_images.split_reference(one.reference)
            if one.previous != one.digest:
                remote_images.move_tag(repository, one.digest, tag, engine)
                moved.append(one)
            on_line(f"{one.reference} is {one.digest}")
    except PublishError as error:
        stuck = _put_back(engine, moved, on_line)
        raise PublishError(*error.problems, *stuck) from None


def _put_back(
    engine: Engine, moved: Sequence[Publication], on_line: Callable[[str], None]
) -> list[Problem]:
    """Move every moved tag back to its previous digest; return a problem for each that fails."""
    stuck = []
    for one in moved:
        repository, tag = local_images.split_reference(one.reference)
        if not one.previous:
            on_line(f"{one.reference} stays: there was none before")
            continue
        try:
            remote_images.move_tag(repository, one.previous, tag, engine)
            on_line(f"{one.reference} is back at {one.previous}")
        except PublishError as error:
            text = f"`{one.reference}` could not be put back to {one.previous}"
            evidence = (f"it is {one.digest}", *(p.text for p in error.problems))
            stuck.append(Problem(text, evidence=evidence, hint="publish again"))
    return stuck
