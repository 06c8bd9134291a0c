"""Test what a build would do, with made-up images of the engine."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, cast

import pytest

from imagegen.engine import client
from imagegen.engine.host.probe import Probe
from imagegen.engine.images import bases, local_images
from imagegen.engine.images.local_image import LocalImage
from imagegen.journal.journal import open_journal
from imagegen.model.build import BuildRecord, StepRecord
from imagegen.model.labels import LABEL_BASE, LABEL_INPUTS, LABEL_RECIPE
from imagegen.planner.cost import Cost, measured_seconds, prices_of
from imagegen.planner.plan import as_data, dot
from imagegen.renderer import image_json as expectation
from imagegen.renderer import provenance as inputs
from imagegen.renderer.provenance import inputs_of
from imagegen.sources import supply
from imagegen.sources.artifacts import Artifacts
from imagegen.sources.supply import Store
from imagegen.workflow.plan import plan_cells
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from imagegen.engine.client import Engine
    from imagegen.planner.plan import Plan, PlannedCell
    from unit.conftest import Ended, Overlay

ENGINE = cast("Engine", object())
BASE = LocalImage("sha256:base", (), {}, 1)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> list[LocalImage]:
    """Return the list of the engine's images, for a test to fill."""
    found: list[LocalImage] = []
    monkeypatch.setattr(local_images, "list_labelled", lambda *_: tuple(found))
    monkeypatch.setattr(local_images, "find", lambda *_: BASE)
    return found


def store(tmp_path: Path) -> Store:
    return Store(Artifacts(), {}, tmp_path)


def plan(tmp_path: Path) -> Plan:
    project = Project()
    family = project.family("small")
    prices = prices_of(project.catalog, open_journal(tmp_path / "journal.db"))
    return plan_cells(ENGINE, project, family, family.specs, prices, store(tmp_path))


def states(tmp_path: Path) -> dict[str, PlannedCell]:
    return {cell.spec.cell.name: cell for cell in plan(tmp_path).cells}


def images_of(cells: list[str]) -> list[LocalImage]:
    project = Project()
    recipes = project.recipes(project.family("small"), cells)
    return [
        LocalImage(
            f"sha256:{recipe.spec.cell.name}",
            (recipe.spec.tag,),
            {
                LABEL_RECIPE: recipe.digest,
                LABEL_BASE: BASE.id,
                LABEL_INPUTS: json.dumps(inputs_of(recipe)),
            },
            5,
        )
        for recipe in recipes
    ]


@pytest.mark.usefixtures("there", "small")
def test_what_is_shared_and_what_it_costs(tmp_path: Path) -> None:
    planned = plan(tmp_path)
    assert planned.orders["debian12"] == ("alpha", "beta", "gamma", "delta")
    assert (planned.whole.steps, planned.each_by_itself.steps) == (7, 12)
    assert planned.whole.seconds == 10 + 75 + 120 + 8 + 10 + 75 + 8
    assert planned.left == planned.whole


def test_the_declared_order_costs_more_where_it_shares_less(
    small: Overlay, there: list[LocalImage], tmp_path: Path
) -> None:
    del there
    small.write(
        "matrices/small.yaml",
        'name: small\ntag: "imagegen/small:{delta}"\naxes: {delta: [core, none]}\n'
        "defaults: {os: debian12}\ncomponents: {os: debian12, delta: any, beta: any}\n",
    )
    planned = plan(tmp_path)
    assert planned.as_declared.seconds > planned.whole.seconds == 10 + 75 + 8


@pytest.mark.usefixtures("small")
def test_what_the_images_have_is_not_made_again(there: list[LocalImage], tmp_path: Path) -> None:
    there += images_of(["debian12-none", "debian13-core"])
    planned = plan(tmp_path)
    assert planned.left.steps == 1
    assert planned.left.seconds == 8
    (step,) = planned.to_make["debian12"]
    assert (step.component, planned.to_make["debian13"]) == ("delta", ())


def test_each_cell_has_a_state_and_what_changed(
    small: Overlay, there: list[LocalImage], tmp_path: Path
) -> None:
    there += images_of(["debian12-*"])
    small.template("delta", "RUN install delta in another way\n")
    small.write(
        "dockerfiles/components/beta/component.yaml",
        (small.root / "dockerfiles/components/beta/component.yaml")
        .read_text()
        .replace("suites: [beta]", "suites: [beta]\ninstalls: [tarball]"),
    )
    found = states(tmp_path)
    assert {cell.state for cell in found.values()} == {"blocked"}
    assert "cannot be installed yet" in found["debian12-core"].why
    small.component("beta", _without(small, "\ninstalls: [tarball]"))
    found = states(tmp_path)
    assert [(name, cell.state) for name, cell in found.items()] == [
        ("debian12-core", "stale"),
        ("debian12-none", "up to date"),
        ("debian13-core", "stale"),
        ("debian13-none", "stale"),
    ]
    assert found["debian12-core"].changes == ("dockerfiles/components/delta/install.j2:1 changed",)
    assert found["debian13-core"].why.startswith("no image is tagged")


BETA = "dockerfiles/components/beta"
EDITS = {
    "release row": (f"{BETA}/component.yaml", "beta's archive", "beta's mirror"),
    "template line": (f"{BETA}/install.j2", "RUN install beta", "RUN install all of beta"),
    "context file": (f"{BETA}/files/tool", "one", "two"),
    "OS file": ("dockerfiles/os/debian12.yaml", "2.12", "2.13"),
}
SAID = {
    "release row": f"release row beta 1.13.1 changed ({BETA}/component.yaml:8)",
    "template line": f"{BETA}/install.j2:2 changed",
    "context file": "context file beta/tool changed",
    "OS file": "OS file dockerfiles/os/debian12.yaml changed",
    "base digest": "base image debian12 moved -> base",
    "tool version": "imagegen 0.0.9 -> 0.1.0",
}


@pytest.mark.parametrize("changed", SAID)
def test_why_names_exactly_the_input_that_changed(
    small: Overlay,
    engine: list[LocalImage],
    run: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
    changed: str,
) -> None:
    small.write(f"{BETA}/files/tool", "one\n")
    small.template("beta", "COPY beta/tool /tool\nRUN install beta {{ release.version }}\n")
    with monkeypatch.context() as before:
        if changed == "tool version":
            before.setattr(inputs, "__version__", "0.0.9")
            before.setattr(expectation, "__version__", "0.0.9")
        if changed == "base digest":
            before.setattr(f"{__name__}.BASE", LocalImage("sha256:moved", (), {}, 1))
        engine += images_of(["debian12-core"])
    if changed in EDITS:
        path, old, new = EDITS[changed]
        text = (small.root / path).read_text()
        assert old in text
        small.write(path, text.replace(old, new, 1))
    ended = run("plan", "--matrix", "small", "debian12-core", "--why")
    assert ended.out.endswith(f"debian12-core:\n  {SAID[changed]}\n")


@pytest.mark.usefixtures("engine")
def test_a_cell_whose_base_nobody_has_is_blocked(
    small: Overlay, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write(
        "dockerfiles/os/debian13.yaml",
        (small.root / "dockerfiles/os/debian13.yaml")
        .read_text()
        .replace("bootstrap: true", "bootstrap: false"),
    )
    monkeypatch.setattr(local_images, "find", lambda *_: None)
    monkeypatch.setattr(bases, "why_out_of_reach", lambda *_: "no route to host")
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/mmdebstrap")
    ended = run("plan", "--matrix", "small", "--format", "json")
    cells = {cell["cell"]: cell for cell in json.loads(ended.out)["cells"]}
    assert [(name, cell["state"]) for name, cell in cells.items()] == [
        ("debian12-core", "stale"),
        ("debian12-none", "stale"),
        ("debian13-core", "blocked"),
        ("debian13-none", "blocked"),
    ]
    assert cells["debian13-core"]["why"] == (
        "its base `debian:13-slim` cannot be had: no route to host"
    )


def test_an_image_that_is_up_to_date_needs_no_base(
    small: Overlay, there: list[LocalImage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del small
    there += images_of(["debian12-*", "debian13-*"])
    monkeypatch.setattr(local_images, "find", lambda *_: None)
    assert {cell.state for cell in states(tmp_path).values()} == {"up to date"}


@pytest.mark.parametrize(
    ("state", "expected"), [("missing", "blocked"), ("unknown", "stale"), ("ok", "stale")]
)
@pytest.mark.usefixtures("there")
def test_a_cell_whose_tarball_is_gone_is_blocked(
    small: Overlay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, expected: str
) -> None:
    url, sha256 = "https://vendor.example/delta.tgz", "0" * 64
    path = "dockerfiles/components/delta/component.yaml"
    row = f"    tarball: {{url: '{url}', sha256: '{sha256}'}}\n"
    text = (
        (small.root / path).read_text().replace("    variant: core\n", f"    variant: core\n{row}")
    )
    small.write(path, text.replace("suites: [delta]", "suites: [delta]\ninstalls: [tarball]"))
    mount = "--mount=type=bind,source=artifacts/delta/44.0,target=/srv"
    small.template("delta", f"RUN {mount} install delta\n")
    asked = Probe(state, "answers with HTTP 404")  # type: ignore[arg-type]
    monkeypatch.setattr(supply, "probe", lambda *_: asked)
    found = states(tmp_path)
    assert (found["debian12-core"].state, found["debian12-none"].state) == (expected, "stale")
    if expected == "blocked":
        assert "cannot be had: answers with HTTP 404" in found["debian12-core"].why
        assert found["debian12-core"].changes == (url,)
        (tmp_path / sha256).write_text("brought in before")
        assert states(tmp_path)["debian12-core"].state == "stale"


def _without(small: Overlay, text: str) -> str:
    path = small.root / "dockerfiles/components/beta/component.yaml"
    return path.read_text().replace(text, "")


@pytest.mark.usefixtures("there", "small")
def test_for_programs_and_as_a_picture(tmp_path: Path) -> None:
    planned = plan(tmp_path)
    data = json.loads(json.dumps(as_data(planned)))
    assert data["totals"]["distinct"]["steps"] == 7
    (bottom,) = data["steps"]["debian12"]
    assert (bottom["component"], bottom["measured"], len(bottom["cells"])) == ("alpha", False, 2)
    assert data["cells"][0]["state"] == "stale"
    picture = dot(planned)
    assert picture.count("->") == 7
    assert '"debian12/alpha 3.11" -> "debian12/alpha 3.11/beta 1.13.1";' in picture


@pytest.fixture
def engine(there: list[LocalImage], monkeypatch: pytest.MonkeyPatch) -> list[LocalImage]:
    """Stand in for the engine that the verb connects to."""
    monkeypatch.setattr(client, "connect", lambda: ENGINE)
    machine = client.EngineMachine(2, 1 << 33, "/", None)
    monkeypatch.setattr(client, "engine_machine", lambda _: machine)
    return there


def test_the_verb_shows_steps_totals_and_cells(
    small: Overlay, engine: list[LocalImage], run: Callable[..., Ended]
) -> None:
    engine += images_of(["debian12-none", "debian13-*"])
    edited = 'RUN one "{{ release.version }}"\nRUN two\n'
    small.template("delta", edited)
    ended = run("plan", "--matrix", "small", "--why")
    assert ended.code == 0
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["delta", "44.0", "core", "8.0s", "?", "1", "predicted", "to", "make"] in lines
    assert ["alpha", "3.11", "10.0s", "?", "2", "predicted", "there"] in lines
    assert ["still", "to", "make", "2", "16.0s", "8.0s", "0", "B"] in lines
    assert "nobody knows the size of delta: it counts as nothing\n" in ended.out
    assert ["debian13-none", "up", "to", "date"] in lines
    assert "debian13-core:\n  dockerfiles/components/delta/install.j2:1 changed\n" in ended.out


@pytest.mark.usefixtures("small", "engine")
def test_the_verb_draws(run: Callable[..., Ended]) -> None:
    assert run("plan", "--matrix", "small", "--dot").out.startswith("digraph plan {\n")


def test_costs_come_from_the_journal_where_it_has_them(small: Overlay, tmp_path: Path) -> None:
    del small
    journal = open_journal(tmp_path / "journal.db")
    steps = (StepRecord("[beta 1/1] RUN x", "beta", 31.0, False, "beta", "1.13.1", 700),)
    record = BuildRecord("small/a", "t", "r", "built", steps=steps)
    journal.add_build(journal.start_run("build", []), record)
    project = Project()
    spec = project.family("small").specs[0]
    beta, alpha = spec.pin("beta"), spec.pin("alpha")
    assert beta
    assert alpha
    prices = prices_of(project.catalog, journal)
    assert prices.of(spec, beta) == Cost(31.0, 700, True)
    assert prices.of(spec, alpha) == Cost(10.0, 0, False)
    assert measured_seconds(journal) == {"beta": 31.0}
