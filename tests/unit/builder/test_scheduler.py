"""Test which cells are built and with what result, with the engine's calls replaced."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import threading
from concurrent.futures import wait
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

from imagegen.builder import cell as cell_build
from imagegen.builder import prepare as preparing
from imagegen.builder import scheduler as building
from imagegen.builder.cell_request import UNTIL_STAGE
from imagegen.builder.plan import BuildPlan, BuildResult
from imagegen.builder.scheduler import build_family
from imagegen.builder.shared_export import LARGE
from imagegen.builder.up_to_date import (
    Staleness,
    find_stale,
    in_turns,
    staleness,
)
from imagegen.config.network import BuildEnv
from imagegen.engine import client
from imagegen.engine.builds import buildkit
from imagegen.engine.builds.buildkit import StepError
from imagegen.engine.builds.context import Context
from imagegen.engine.builds.vertex_events import VertexStarted
from imagegen.engine.images import local_images as images
from imagegen.engine.images.bases import BaseImage
from imagegen.engine.images.local_image import LocalImage
from imagegen.errors import ConfigError, EngineError, Interrupted, Problem, ValidationError
from imagegen.events.events import CellEnded, CellsQueued, CellWaits, Event, Sink
from imagegen.events.sinks import fan_out
from imagegen.journal.locks import cell_lock_path, holding_lock
from imagegen.journal.log_files import LogFiles
from imagegen.model.build import BuildOptions, BuildRecord
from imagegen.model.cell import SizeBudget
from imagegen.model.image import base_alias
from imagegen.model.labels import (
    LABEL_BASE,
    LABEL_CELL,
    LABEL_INPUTS,
    LABEL_LOCK,
    LABEL_MATRIX,
    LABEL_PARTS,
    LABEL_RECIPE,
    LABEL_UNTIL,
    LABEL_UNVERIFIED,
    LABEL_VALIDATED,
)
from imagegen.model.recipe import ContextFile, Part
from imagegen.model.validation import ValidationRecord
from imagegen.planner.chain import SharedLayer, chain_of_recipe
from imagegen.renderer.provenance import inputs_of
from imagegen.sources.artifacts import Artifacts
from imagegen.sources.supply import Store
from imagegen.validation.gate import Gate
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from imagegen.engine.builds.buildkit import BuildRequest
    from imagegen.engine.client import Engine
    from imagegen.model.recipe import Recipe
    from imagegen.model.release import OsRelease
    from unit.conftest import Overlay

ENGINE = cast("Engine", SimpleNamespace(endpoint=SimpleNamespace(url="unix:///test.sock")))
BASE_ID = "sha256:base"
WITHOUT_GATE = BuildOptions(gate=False)


class Machine:
    """Stand in for the engine: bases, builds, tags."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.images: list[LocalImage] = []
        self.requests: list[BuildRequest] = []
        self.tags: dict[str, str] = {}
        self.cancelled: list[str] = []
        self.failures: dict[str, list[BaseException]] = {}
        self.bases_fail: EngineError | None = None
        self.alive = True
        self.no_buildkit: EngineError | None = None
        monkeypatch.setattr(client, "require_buildkit", self.require_buildkit)
        monkeypatch.setattr(images, "list_labelled", lambda *_: tuple(self.images))
        monkeypatch.setattr(images, "find", self.find)
        monkeypatch.setattr(images, "tag", self.tag)
        monkeypatch.setattr(buildkit, "build", self.build)
        monkeypatch.setattr(buildkit, "cancel", lambda _, build_id: self.cancelled.append(build_id))
        monkeypatch.setattr(preparing, "ensure_base", self.ensure_base)
        monkeypatch.setattr(cell_build, "wait_exponential", lambda **_: lambda _: 0.0)
        monkeypatch.setattr(images, "history", lambda *_: ())
        monkeypatch.setattr(client, "is_alive", lambda _: self.alive)

    def find(self, _: object, ref: str) -> LocalImage | None:
        return LocalImage(BASE_ID if "base" in ref else ref, (), {}, 1000)

    def require_buildkit(self, _: object) -> None:
        if self.no_buildkit:
            raise self.no_buildkit

    def tag(self, _: object, image_id: str, tag: str) -> None:
        self.tags[tag] = image_id

    def ensure_base(self, *_: object) -> BaseImage:
        if self.bases_fail:
            raise self.bases_fail
        return BaseImage("imagegen/base:x", BASE_ID, "bootstrap")

    def build(self, _: object, request: BuildRequest, on_event: Callable[[Any], None]) -> str:
        del on_event
        self.requests.append(request)
        cell = request.labels[LABEL_CELL]
        for failure in self.failures.get(cell, [])[:1]:
            self.failures[cell].remove(failure)
            raise failure
        return f"sha256:{cell}"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.fixture
def recipes(small: Overlay) -> list[Recipe]:
    small.write("dockerfiles/build-env/env.sh", "true\n")
    project = Project()
    return project.recipes(project.family("small"))


def build_all(
    recipes: list[Recipe],
    tmp_path: Path,
    options: BuildOptions = WITHOUT_GATE,
    sink: Sink = lambda _: None,
    **changed: Any,
) -> BuildResult:
    """Return the whole result of a build; `changed` replaces parts of its plan."""
    store = Store(Artifacts(), {}, tmp_path / "parts")
    lock = changed.get("lock")
    found = find_stale(ENGINE, recipes, force=options.force, lock=lock)
    logs, locks = tmp_path / "logs", tmp_path / "locks"
    plan = BuildPlan(tuple(found), 2, store, BuildEnv(), logs, locks)
    with LogFiles(logs) as log_files:
        return build_family(replace(plan, **changed), ENGINE, options, fan_out(log_files, sink))


def build(
    recipes: list[Recipe],
    tmp_path: Path,
    options: BuildOptions = WITHOUT_GATE,
    sink: Sink = lambda _: None,
    **changed: Any,
) -> dict[str, BuildRecord]:
    """Return the records of a build that comes to its end, by the names of their cells."""
    result = build_all(recipes, tmp_path, options, sink, **changed)
    assert result.broken is None
    return {record.cell_id.partition("/")[2]: record for record in result.records}


class Records(list[BuildRecord]):
    """Keep the records of cells as they end."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, CellEnded):
            self.append(event.record)


def image_of(recipe: Recipe, **labels: str) -> LocalImage:
    known = {LABEL_RECIPE: recipe.digest, LABEL_BASE: BASE_ID, **labels}
    return LocalImage(f"sha256:{recipe.spec.cell.name}", (recipe.spec.tag,), known, 5)


def test_an_image_of_the_same_recipe_on_the_same_base_is_up_to_date(recipes: list[Recipe]) -> None:
    assert staleness(recipes[0], [image_of(recipes[0])], BASE_ID).why == ""


def test_what_makes_a_cell_stale_is_said(recipes: list[Recipe]) -> None:
    recipe = recipes[0]
    other = image_of(recipe, **{LABEL_RECIPE: "sha256:other"})
    assert staleness(recipe, [image_of(recipes[1])], "").why == (
        "no image is tagged `imagegen/small:debian12-1.13.1-core`"
    )
    assert staleness(recipe, [other], BASE_ID).why == "its recipe changed"
    made_from = {**inputs_of(recipe), "tool": "0.0.1", "file a": "1"}
    said = image_of(recipe, **{LABEL_RECIPE: "sha256:other", LABEL_INPUTS: json.dumps(made_from)})
    found = staleness(recipe, [said], BASE_ID)
    assert found.why == "its recipe changed: imagegen 0.0.1 -> 0.1.0, and 1 more"
    assert found.changes == ("imagegen 0.0.1 -> 0.1.0", "context file a is gone")
    assert staleness(recipe, [image_of(recipe)], "sha256:new").why == (
        "its base image debian12 changed"
    )


def test_nothing_is_built_where_all_is_up_to_date(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    machine.images = [image_of(recipe) for recipe in recipes]
    records = build(recipes, tmp_path)
    assert {record.outcome for record in records.values()} == {"up-to-date"}
    assert machine.requests == []


def test_force_builds_what_is_up_to_date_without_the_cache(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    machine.images = [image_of(recipe) for recipe in recipes]
    build(recipes, tmp_path, replace(WITHOUT_GATE, force=True))
    assert [request.no_cache for request in machine.requests] == [True] * 4


def test_only_what_is_stale_is_built_and_tagged(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    machine.images = [image_of(recipe) for recipe in recipes[1:]]
    records = build(recipes, tmp_path)
    assert [record.outcome for record in records.values()] == ["built", *["up-to-date"] * 3]
    assert machine.tags == {recipes[0].spec.tag: "sha256:debian12-core"}


def test_labels_say_what_an_image_is(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    build(recipes[:1], tmp_path)
    (request,) = machine.requests
    assert request.labels[LABEL_RECIPE] == recipes[0].digest
    assert request.labels[LABEL_MATRIX] == "small"
    assert request.labels[LABEL_BASE] == BASE_ID
    assert request.labels[LABEL_VALIDATED] == "not validated: --no-validate"
    assert request.tag == ""
    assert request.buildargs == {"BASE": base_alias(recipes[0].spec.os)}


def test_the_settings_of_the_host_join_the_context_and_no_label(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    file = ContextFile("build-env/ca.crt", b"BEGIN CERTIFICATE secret")
    env = BuildEnv((file,), (("HTTPS_PROXY", "http://user:secret@proxy"),))
    build(recipes[:1], tmp_path, network=env)
    (request,) = machine.requests
    assert b"BEGIN CERTIFICATE secret" in gzip.decompress(b"".join(request.context))
    assert request.buildargs["HTTPS_PROXY"] == "http://user:secret@proxy"
    assert "secret" not in str(request.labels)


class Held:
    """Do what a lock does to a build, without asking an archive."""

    def digest(self, os_id: str) -> str:
        return f"sha256:lock of {os_id}"

    def recipe(self, recipe: Recipe) -> Recipe:
        return replace(recipe, dockerfile="FROM exactly\n")

    def environment(self, _: Engine, recipes: list[Recipe], env: BuildEnv) -> BuildEnv:
        data = " ".join(recipe.spec.cell.name for recipe in recipes).encode()
        return replace(env, files=(ContextFile("build-env/preferences", data),))


def test_a_locked_build_is_held_to_the_lock_of_its_system_and_the_label_says_so(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    machine.images = [image_of(recipe) for recipe in recipes[:1]]
    locked = {LABEL_LOCK: "sha256:lock of debian13"}
    machine.images += [image_of(recipe, **locked) for recipe in recipes[1:]]
    build(recipes, tmp_path, lock=Held(), jobs=1)
    assert {request.labels[LABEL_LOCK] for request in machine.requests} == {
        "sha256:lock of debian12"
    }
    first = next(r for r in machine.requests if r.labels[LABEL_CELL] == "debian12-core")
    assert first.labels[LABEL_RECIPE] == recipes[0].digest
    with tarfile.open(fileobj=io.BytesIO(b"".join(first.context))) as tar:
        preferences, dockerfile = (
            tar.extractfile(name) for name in ("build-env/preferences", "Dockerfile")
        )
        assert preferences is not None
        assert dockerfile is not None
        assert preferences.read() == b"debian12-core debian12-none"
        assert dockerfile.read().startswith(b"FROM exactly\n")


def with_tarball(recipe: Recipe, tmp_path: Path, sha256: str) -> Recipe:
    (tmp_path / "nccl.tgz").write_bytes(b"tarball")
    part = Part("nccl", "2.9", sha256, (tmp_path / "nccl.tgz").as_uri(), "nccl 2.9 (x.yaml:3)")
    return replace(recipe, parts=(part,))


def test_parts_join_the_context_and_the_label(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    sha256 = hashlib.sha256(b"tarball").hexdigest()
    build([with_tarball(recipes[0], tmp_path, sha256)], tmp_path)
    (request,) = machine.requests
    with tarfile.open(fileobj=io.BytesIO(b"".join(request.context))) as tar:
        packed = tar.extractfile("artifacts/nccl/2.9/nccl.tgz")
        assert packed is not None
        assert packed.read() == b"tarball"
    assert json.loads(request.labels[LABEL_PARTS]) == {"nccl 2.9": sha256}
    assert LABEL_UNVERIFIED not in request.labels


def test_what_nothing_vouches_for_is_built_only_on_demand_and_the_label_says_so(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    recipe = with_tarball(recipes[0], tmp_path, "unverified")
    with pytest.raises(ConfigError, match=r"nothing vouches for the tarball of nccl 2\.9"):
        build([recipe, *recipes[1:]], tmp_path)
    assert machine.requests == []
    store = Store(Artifacts(), {}, tmp_path / "parts", allow_unverified=True)
    build([recipe], tmp_path, store=store)
    (request,) = machine.requests
    assert request.labels[LABEL_UNVERIFIED] == "nccl 2.9"
    found = hashlib.sha256(b"tarball").hexdigest()
    assert json.loads(request.labels[LABEL_PARTS]) == {"nccl 2.9": found}


def test_a_failed_cell_stops_no_other(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    machine.failures["debian12-core"] = [
        StepError("[beta 1/1] RUN x", "exit code: 1", 1, ("no space left on device",))
    ]
    records = build(recipes, tmp_path)
    broken = records.pop("debian12-core")
    assert (broken.outcome, broken.cause) == ("failed", "disk full")
    assert "dockerfiles/components/beta/install.j2:1" in broken.detail
    assert {record.outcome for record in records.values()} == {"built"}
    assert recipes[0].spec.tag not in machine.tags


def test_a_network_failure_is_tried_again_and_no_other_is(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    network = StepError("[beta 1/1] RUN x", "exit code: 100", 100, ("Connection timed out",))
    compile_error = StepError("[beta 1/1] RUN x", "exit code: 1", 1, ("error: no type named x",))
    assert network.cause == "network"
    machine.failures = {
        "debian12-core": [network, network],
        "debian12-none": [compile_error, compile_error],
    }
    records = build(recipes[:2], tmp_path)
    assert records["debian12-core"].outcome == "built"
    assert records["debian12-none"].outcome == "failed"
    assert len(machine.requests) == 3 + 1
    tried = (tmp_path / "logs" / "small-debian12-core.log").read_text()
    assert [line for line in tried.splitlines() if line.startswith("network failure")] == [
        "network failure, attempt 2 of 4",
        "network failure, attempt 3 of 4",
    ]


def test_a_network_that_stays_away_fails_in_the_end(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    network = StepError("[beta 1/1] RUN x", "exit code: 100", 100, ("Connection timed out",))
    machine.failures = {"debian12-core": [network] * 9}
    assert build(recipes[:1], tmp_path)["debian12-core"].cause == "network"
    assert len(machine.requests) == cell_build.ATTEMPTS


def test_an_image_that_the_gate_refuses_gets_no_tag(
    recipes: list[Recipe], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(_: object, image_id: str, __: object) -> ValidationRecord:
        if image_id == "sha256:debian12-core":
            raise ValidationError.of("it is not what was asked for", evidence=["torch.version"])
        return ValidationRecord(image_id, image_id, "static", True, {}, 1.0)

    monkeypatch.setattr(Gate, "judge", judge)
    monkeypatch.setattr(cell_build, "_look_inside", lambda *_: None)
    records = build(recipes, tmp_path, BuildOptions())
    refused = records["debian12-core"]
    assert (refused.outcome, refused.cause) == ("failed", "validation")
    assert refused.image_id == "sha256:debian12-core"
    assert "torch.version" in refused.detail
    assert sorted(machine.tags.values()) == [
        "sha256:debian12-none",
        "sha256:debian13-core",
        "sha256:debian13-none",
    ]
    assert machine.requests[0].labels[LABEL_VALIDATED] == "the tag waits for validate --static"


def test_without_buildkit_nothing_is_begun(
    machine: Machine, recipes: list[Recipe], tmp_path: Path
) -> None:
    machine.no_buildkit = EngineError(Problem("no BuildKit"))
    machine.bases_fail = EngineError(Problem("a base was asked for"))
    with pytest.raises(EngineError, match="no BuildKit"):
        build(recipes, tmp_path)
    machine.images = [image_of(recipe) for recipe in recipes]
    assert {record.outcome for record in build(recipes, tmp_path).values()} == {"up-to-date"}


def test_an_image_over_its_size_budget_warns_or_gets_no_tag(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    cell_id = "small/debian12-core"
    last = BuildRecord(cell_id, "t", "r", "built", "sha256:0123456789abc", size_bytes=800)
    last_good = {cell_id: last}
    (recipe,) = (one for one in recipes if one.spec.cell.name == "debian12-core")
    records = build(recipes, tmp_path, last_good=last_good)
    warned = records["debian12-core"]
    assert warned.outcome == "built"
    assert warned.detail == (
        "1.0 kB is over the size budget of 960 B: 1.2 x the last good image, 800 B",
        "  imagegen diff 0123456789ab debian12-cor",
    )
    assert not any(record.detail for record in records.values() if record is not warned)
    machine.tags.clear()
    cell = replace(recipe.spec.cell, size_budget=SizeBudget(fails=True))
    strict = replace(recipe, spec=replace(recipe.spec, cell=cell))
    refused = build([strict], tmp_path, last_good=last_good)["debian12-core"]
    assert (refused.outcome, refused.cause) == ("failed", "size budget")
    assert refused.detail == warned.detail
    assert machine.tags == {}


def test_a_base_that_cannot_be_had_fails_its_cells(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    machine.bases_fail = EngineError(Problem("no base", hint="imagegen doctor --fix"))
    records = build(recipes, tmp_path)
    assert {(record.outcome, record.cause) for record in records.values()} == {("failed", "base")}
    assert machine.requests == []


def test_an_engine_that_dies_ends_the_whole_build(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    machine.alive = False
    machine.failures["debian12-none"] = [EngineError.of("the engine went away")]
    records = Records()
    result = build_all(recipes, tmp_path, sink=records, jobs=1)
    assert isinstance(result.broken, EngineError)
    assert "the engine went away" in str(result.broken)
    told = [(record.cell_id, record.outcome, record.cause) for record in records]
    assert told[:3] == [
        ("small/debian12-core", "built", ""),
        ("small/debian13-core", "built", ""),
        ("small/debian12-none", "failed", "engine died"),
    ]
    assert told[3:] == [("small/debian13-none", "cancelled", "cancelled")]


def test_an_engine_that_refuses_one_build_and_lives_stops_no_other(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    machine.failures["debian12-core"] = [EngineError.of("the engine refused the build")]
    records = build(recipes, tmp_path)
    broken = records.pop("debian12-core")
    assert (broken.outcome, broken.cause) == ("failed", "engine refused")
    assert {record.outcome for record in records.values()} == {"built"}


def test_another_process_that_builds_the_cell_is_waited_for_and_its_image_taken(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    path = cell_lock_path(tmp_path / "locks", recipes[0].spec.tag)
    told: list[str] = []

    def follow(event: Event) -> None:
        if isinstance(event, CellWaits):
            told.append(event.text)
            machine.images = [image_of(recipes[0])]
            threading.Timer(0.05, theirs.close).start()

    with ExitStack() as theirs:
        theirs.enter_context(holding_lock(path, told.append))
        (record,) = build(recipes[:1], tmp_path, sink=follow).values()
    assert told[0] == f"waits: process {os.getpid()} builds this cell"
    assert (record.outcome, machine.requests) == ("up-to-date", [])


def test_ctrl_c_cancels_on_the_engine_and_tags_nothing(
    recipes: list[Recipe], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> Any:
        while not machine.requests:
            pass
        monkeypatch.setattr(building, "wait", wait)
        raise KeyboardInterrupt

    def endless(_: object, request: BuildRequest, __: object) -> str:
        machine.requests.append(request)
        while request.build_id not in machine.cancelled:
            pass
        raise StepError("", "context canceled")

    monkeypatch.setattr(buildkit, "build", endless)
    monkeypatch.setattr(building, "wait", interrupted)
    records = Records()
    result = build_all(recipes, tmp_path, sink=records, jobs=1)
    assert isinstance(result.broken, Interrupted)
    assert "none of their tags moved" in str(result.broken)
    assert machine.cancelled == [machine.requests[0].build_id]
    assert sorted((one.cell_id, one.outcome) for one in records) == [
        ("small/debian12-core", "cancelled"),
        ("small/debian12-none", "cancelled"),
        ("small/debian13-core", "cancelled"),
        ("small/debian13-none", "cancelled"),
    ]
    begun = machine.requests[0].labels[LABEL_CELL]
    rest = [one.detail for one in records if one.cell_id != f"small/{begun}"]
    assert rest == [("the run ended before this build began",)] * 3
    assert machine.tags == {}


def test_an_image_that_is_packed_lets_the_next_build_begin(
    recipes: list[Recipe], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one build at a time, the first one stays in packing until the second one packs too."""
    packing = threading.Barrier(2)

    def packed(_: object, request: BuildRequest, on_event: Callable[[Any], None]) -> str:
        machine.requests.append(request)
        on_event(VertexStarted("sha256:export", "exporting to image"))
        packing.wait(10)
        return f"sha256:{request.labels[LABEL_CELL]}"

    monkeypatch.setattr(buildkit, "build", packed)
    built = build(recipes[:2], tmp_path, jobs=1)
    assert {one.outcome for one in built.values()} == {"built"}


def shared_by(recipes: list[Recipe]) -> tuple[SharedLayer, ...]:
    """Return their lowest layer as large and new, with nothing known of the layers above it."""
    layer = chain_of_recipe(recipes[0])[:1]
    above = tuple((recipe.spec.cell.id, 0.0) for recipe in recipes)
    return (SharedLayer(recipes[0].spec.os.id, layer, LARGE, above),)


def test_a_large_layer_that_cells_share_is_packed_by_one_of_them_before_the_others_begin(
    recipes: list[Recipe], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []
    monkeypatch.setattr(images, "remove", lambda _, ref: removed.append(ref))
    four = [one for one in recipes if one.spec.os.id == recipes[0].spec.os.id]
    shared = shared_by(four)
    component = chain_of_recipe(four[0])[0][0]
    built = build(four, tmp_path, jobs=4, shared=shared)
    assert {one.outcome for one in built.values()} == {"built"}
    first, second = machine.requests[:2]
    assert first.target == UNTIL_STAGE
    assert isinstance(first.context, Context)
    assert first.context.dockerfile.endswith(
        f'FROM {component} AS {UNTIL_STAGE}\nLABEL {LABEL_UNTIL}="{first.labels[LABEL_UNTIL]}"\n'
    )
    assert first.labels[LABEL_UNTIL].endswith(f" {component}")
    assert LABEL_RECIPE not in first.labels
    assert second.labels[LABEL_CELL] == first.labels[LABEL_CELL]
    assert [one.target for one in machine.requests[1:]] == [""] * len(four)
    assert removed == [f"sha256:{first.labels[LABEL_CELL]}"]


def test_a_layer_that_cannot_be_made_is_not_tried_by_one_cell_after_the_other(
    recipes: list[Recipe], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "remove", lambda *_: None)
    two = [one for one in recipes if one.spec.os.id == recipes[0].spec.os.id][:2]
    shared = shared_by(two)
    first = in_turns([Staleness(one, "x", None) for one in two])[0].recipe.spec.cell.name
    failed = StepError("[beta 1/1] RUN x", "exit code: 1", 1, ("error: no",))
    machine.failures[first] = [failed]
    built = build(two, tmp_path, jobs=2, shared=shared)
    assert sorted(one.outcome for one in built.values()) == ["built", "failed"]
    assert [bool(one.target) for one in machine.requests] == [True, False]


def test_cells_that_wait_say_what_for_once_for_all_of_them(
    recipes: list[Recipe], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "remove", lambda *_: None)
    queued: list[CellsQueued] = []
    asked = threading.Event()

    def follow(event: Event) -> None:
        if isinstance(event, CellsQueued):
            queued.append(event)
            asked.set()

    def slow(_: object, request: BuildRequest, __: object) -> str:
        machine.requests.append(request)
        asked.wait(10)
        return f"sha256:{request.labels[LABEL_CELL]}"

    monkeypatch.setattr(buildkit, "build", slow)
    four = [one for one in recipes if one.spec.os.id == recipes[0].spec.os.id]
    first, *others = [
        one.recipe.spec.cell.id for one in in_turns([Staleness(r, "x", None) for r in four])
    ]
    build(four, tmp_path, jobs=1, sink=follow, shared=shared_by(four))
    component = chain_of_recipe(four[0])[0][0]
    assert queued[0] == CellsQueued(tuple(others), f"{first} to export {component} for 2 images")
    queued.clear()
    build(recipes, tmp_path, jobs=1, sink=follow)
    turns = [
        one.recipe.spec.cell.id for one in in_turns([Staleness(r, "x", None) for r in recipes])
    ]
    assert queued[0] == CellsQueued(tuple(turns[1:]), "a free build slot")


def test_cells_wait_for_a_base_that_is_brought(
    recipes: list[Recipe], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bring(
        _: object, base: OsRelease, __: object, on_line: Callable[[str], None], ___: object
    ) -> BaseImage:
        for line in ("one", "two") if base.id == "debian12" else ():
            on_line(line)
        return machine.ensure_base()

    monkeypatch.setattr(preparing, "ensure_base", bring)
    told: list[Event] = []
    build(recipes, tmp_path, sink=told.append)
    cells = [recipe.spec.cell.id for recipe in recipes]
    assert [one for one in told if isinstance(one, (CellsQueued, CellWaits))][:3] == [
        CellsQueued(tuple(cells[1:]), "the base image debian12"),
        CellWaits(cells[0], "base: one"),
        CellWaits(cells[0], "base: two"),
    ]


def test_force_runs_every_step_and_packs_no_layer_by_itself(
    recipes: list[Recipe], machine: Machine, tmp_path: Path
) -> None:
    shared = shared_by(recipes[:2])
    build(recipes[:2], tmp_path, replace(WITHOUT_GATE, force=True), shared=shared)
    assert [one.target for one in machine.requests] == ["", ""]


def test_ctrl_c_before_the_first_build_leaves_a_record_of_every_cell(
    recipes: list[Recipe], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    machine.images = [image_of(recipes[0])]
    monkeypatch.setattr(preparing, "ensure_base", interrupted)
    result = build_all(recipes, tmp_path)
    assert isinstance(result.broken, Interrupted)
    assert "imagegen build --resume" in str(result.broken)
    assert [one.outcome for one in result.records] == ["up-to-date", *["cancelled"] * 3]
    assert machine.requests == []


def test_one_cell_of_each_os_comes_first(recipes: list[Recipe]) -> None:
    turned = in_turns([Staleness(recipe, "why", None) for recipe in recipes])
    assert [item.recipe.spec.cell.name for item in turned] == [
        "debian12-core",
        "debian13-core",
        "debian12-none",
        "debian13-none",
    ]


def test_a_recipe_is_found_by_its_own_tag(recipes: list[Recipe]) -> None:
    renamed = replace(image_of(recipes[0]), tags=("other:tag",))
    assert staleness(recipes[0], [renamed], BASE_ID).image is None
