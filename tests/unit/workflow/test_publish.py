"""Test the page of `imagegen publish`: what was sent is shown and written down."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

from imagegen.engine import client
from imagegen.errors import PublishError
from imagegen.journal.journal import open_journal
from imagegen.model.publication import Publication
from imagegen.publisher.publish import PublishCandidate
from imagegen.workflow import publish as page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from imagegen.engine.client import Engine
    from unit.conftest import Ended

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "connect", lambda: cast("Engine", object()))
    monkeypatch.setattr(
        page, "candidate_of", lambda _, tag, __: PublishCandidate(tag, f"id {tag}", None)
    )


def test_what_went_out_is_written_down(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish(
        _: Engine, candidates: Sequence[PublishCandidate], to: str, __: object
    ) -> list[object]:
        return [
            Publication(one.image_id, f"{to}/{one.tag.rpartition('/')[2]}", "sha256:d", "sha256:p")
            for one in candidates
        ]

    monkeypatch.setattr(page, "push_and_move", publish)
    ended = run("publish", "-m", "small", "--to", "r/team", "debian12-none", "--format", "json")
    reference = "r/team/small:debian12-1.13.1-none"
    assert json.loads(ended.out) == [
        {
            "image": reference,
            "digest": "sha256:d",
            "previous": "sha256:p",
            "id": "id imagegen/small:debian12-1.13.1-none",
        }
    ]
    journal = open_journal()
    last = journal.last_publication(reference)
    assert last
    assert last.digest == "sha256:d"
    assert [(run.verb, run.exit_code) for run in journal.history(1)] == [("publish", 0)]


def test_a_refusal_ends_the_run_with_its_code(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PublishError.of("one may not go out")

    monkeypatch.setattr(page, "push_and_move", refuse)
    ended = run("publish", "-m", "small", "--to", "r/team")
    assert (ended.code, ended.err) == (8, "error: one may not go out\n")
    assert [run.exit_code for run in open_journal().history(1)] == [8]
