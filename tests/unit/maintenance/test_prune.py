"""Test what may be removed from an engine."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, cast

import pytest

from imagegen.engine.containers import owner
from imagegen.engine.images import local_images
from imagegen.engine.images.engine_contents import (
    EngineContents,
    KeptImage,
    is_derived,
    old_cache_bytes,
    own_bytes,
)
from imagegen.errors import EngineError
from imagegen.maintenance.prune import superfluous, without_image
from imagegen.model.labels import (
    LABEL_CELL,
    LABEL_INPUTS,
    LABEL_MATRIX,
    LABEL_PROCESS,
    LABEL_TITLE,
    LABEL_UNTIL,
)
from imagegen.renderer.dockerfile import COUNTED

if TYPE_CHECKING:
    from imagegen.engine.answers import CacheEntry, ContainerRow
    from imagegen.engine.client import Engine

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)


def image(name: str, cell: str = "a", matrix: str = "cpu", *tags: str, **more: str) -> KeptImage:
    labels = {LABEL_MATRIX: matrix, LABEL_CELL: cell, LABEL_TITLE: f"imagegen/{matrix}:{cell}"}
    return KeptImage(name, tags, labels | more, 5)


def contents(*images: KeptImage, used: frozenset[str] = frozenset()) -> EngineContents:
    return EngineContents(images, used, ())


def test_what_has_a_tag_was_published_or_runs_stays() -> None:
    found = contents(
        image("tagged", "a", "cpu", "imagegen/cpu:a"),
        image("published"),
        image("running"),
        used=frozenset({"running"}),
    )
    assert superfluous(found, {"published"}) == []


def test_what_goes_says_why() -> None:
    found = contents(
        image("new", "a", "cpu", "imagegen/cpu:a"),
        image("old"),
        image("failed", "b"),
        image("middle", "a", "cpu", **{LABEL_UNTIL: "cpu/a torch"}),
    )
    assert [(one.id, one.cell, one.why.partition(":")[0]) for one in superfluous(found, set())] == [
        ("old", "cpu/a", "superseded"),
        ("failed", "cpu/b", "left over"),
        ("middle", "cpu/a", "ends in the middle"),
    ]


def test_a_matrix_is_pruned_alone() -> None:
    found = contents(image("one"), image("two", matrix="other"))
    assert [one.id for one in superfluous(found, set(), ["other"])] == ["two"]


def test_what_is_being_built_stays() -> None:
    found = contents(image("one", "a"), image("two", "b"))
    goes = superfluous(found, set(), being_built=lambda tag: tag == "imagegen/cpu:a")
    assert [one.id for one in goes] == ["two"]


def test_a_bill_of_materials_goes_with_its_image() -> None:
    billed = ["there", "goes", "went before", "published", "published and gone"]
    there, published = {"there", "goes", "published"}, {"published", "published and gone"}
    assert without_image(billed, {"goes"}, there, published) == ["goes", "went before"]
    assert without_image(billed, {"goes"}, set(billed), published) == ["goes"]


def test_old_cache_is_what_no_build_has_used_for_long() -> None:
    def entry(days: int, *, used: bool = False, shared: bool = False) -> CacheEntry:
        last = (NOW - timedelta(days=days)).isoformat().replace("+00:00", ".123456789Z")
        return {"Size": 10**days, "LastUsedAt": last, "InUse": used, "Shared": shared}

    cache = (entry(1), entry(2), entry(3, used=True), entry(4, shared=True))
    assert old_cache_bytes(cache, 1, NOW + timedelta(hours=1)) == 110
    assert old_cache_bytes(cache, 9, NOW) == 0
    assert old_cache_bytes(({"Size": 7, "LastUsedAt": None, "CreatedAt": "?"},), 0, NOW) == 0


def test_own_bytes_are_of_the_layers_above_those_that_others_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chains = {"old": "abcd", "new": "abx", "far": "z", "gone": None}
    history = [("", 100), ("ENV A=1", 0), ("RUN b", 20), ("RUN c", 3), ("ENV B=2", 0), ("RUN d", 0)]

    def config(_: object, image: str) -> dict[str, dict[str, list[str]]]:
        if chains[image] is None:
            raise EngineError.of("no such image")
        return {"RootFS": {"Layers": list(chains[image] or "")}}

    monkeypatch.setattr(local_images, "inspect", config)
    monkeypatch.setattr(local_images, "history", lambda *_: tuple(history))
    engine = cast("Engine", None)
    assert own_bytes(engine, list(chains), ["old", "gone"], COUNTED) == {"old": 3, "gone": 0}
    assert own_bytes(engine, ["old", "far"], ["old"], COUNTED) == {"old": 123}
    assert own_bytes(engine, ["old", "old2"], [], COUNTED) == {}


CLOSING = f"LABEL {LABEL_INPUTS}={{}}"


@pytest.mark.parametrize(
    ("history", "derived"),
    [
        (("RUN a", "CMD [bash]", CLOSING), False),
        (("RUN a", f'LABEL {LABEL_UNTIL}="cpu/a torch"'), False),
        (("/bin/sh -c #(nop)  " + CLOSING,), False),
        ((CLOSING, "RUN pip install mine"), True),
        ((CLOSING, "LABEL a=b"), True),
        ((CLOSING, ""), True),
        ((CLOSING, "RUN a", CLOSING), True),
        (("RUN a", "CMD [bash]"), True),
        (("RUN echo x", f"RUN echo {LABEL_INPUTS}"), True),
        ((), True),
    ],
)
def test_an_image_that_others_made_of_ours_is_told_by_its_history(
    history: tuple[str, ...], derived: bool
) -> None:
    assert is_derived([(text, 0) for text in history]) is derived


def row(name: str, state: str, mark: str = "") -> ContainerRow:
    labels = {LABEL_PROCESS: mark} if mark else None
    return {"Names": [f"/{name}"], "ImageID": "i", "State": state, "Labels": labels}


OURS = "imagegen-0123456789ab"


def test_containers_of_killed_runs_are_told_from_those_of_others() -> None:
    (mark,) = owner.own_mark().values()
    space, pid, started = mark.split()
    dead, other = f"{space} {pid} {int(started) + 1}", f"elsewhere {pid} 1"
    assert owner.is_ours(row(OURS, "running"))
    assert not owner.is_ours(row("imagegen-mine", "running"))
    for state in ("created", "running", "exited"):
        assert not owner.is_left(row(OURS, state, mark))
        assert owner.is_left(row(OURS, state, dead))
        assert owner.is_left(row(OURS, state, f"{space} 999999999 1"))
        # Another host has the same engine, or an older imagegen made it: nobody knows.
        for unknown in (other, "", "?"):
            assert owner.is_left(row(OURS, state, unknown)) == (state != "running")
