"""Stages composed into what the verbs do. Beside `nightly`, `family` and the verbs themselves, the
only module that knows more than one stage."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.builder.disk import check_room, uncounted
from imagegen.builder.scheduler import BuildOptions, build_family
from imagegen.builder.shared_export import Packing
from imagegen.config.network import pip_config_files, read_build_env
from imagegen.config.state import state_folder
from imagegen.engine import client
from imagegen.engine.images import local_images
from imagegen.engine.images.inventory import inventory
from imagegen.errors import ImagegenError, Problem, ValidationError
from imagegen.inspection.leftovers import leftovers
from imagegen.inspection.sbom_files import write_sboms
from imagegen.journal.locks import engine_locks
from imagegen.planner.chain import chain_of_recipe
from imagegen.planner.cost import (
    missing,
    plus,
    prefixes,
    total,
    trees_of,
    trunk,
    unsized,
)
from imagegen.planner.time_left import TimeLeft
from imagegen.publisher.publish import Candidate
from imagegen.sources.artifacts import read_artifacts
from imagegen.sources.locked_build import LockedBuild
from imagegen.sources.mirrors import read_mirrors
from imagegen.sources.supply import Store
from imagegen.validation.in_container import ValidationRequest, stop, validate_image

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from imagegen.builder.stale import Staleness
    from imagegen.config.network import BuildEnv
    from imagegen.config.payload import Payload
    from imagegen.console.console import Console
    from imagegen.console.progress import Board
    from imagegen.engine.client import Engine, Machine
    from imagegen.journal.journal import Journal
    from imagegen.model.build import BuildRecord
    from imagegen.model.cell import BaseMode
    from imagegen.model.recipe import Recipe
    from imagegen.model.validation import ValidationRecord
    from imagegen.planner.chain import Chain
    from imagegen.planner.cost import Prices
    from imagegen.sources.lock_file import Lock

MOST_JOBS = 8
BUILDS_A_CORE = 2
"""A build waits for the network, the disk and the engine about as long as it computes: on two cores
24 small images took 18 s with two builds at a time, 14 s with four, and no less with more."""
BYTES_A_BUILD = 4 << 30
"""Memory that one build may want: compilers and the unpacking of large wheels."""


@dataclass(frozen=True)
class BuildWishes:
    """The options of `imagegen build` and `imagegen nightly`."""

    jobs: int | None = None
    force: bool = False
    gate: bool = True
    ca_bundle: Path | None = None
    base: BaseMode | None = None
    allow_unverified: bool = False
    lock: Lock | None = None
    prices: Prices | None = None
    check_disk: bool = True
    again: str = ""
    on_broken: Callable[[Sequence[BuildRecord]], None] = lambda _: None


def build_env(ca_bundle: Path | None) -> BuildEnv:
    """What this host's network needs of a build. Raises ConfigError for a CA bundle."""
    return read_build_env(os.environ, ca_bundle, pip_config_files(Path.home()))


def jobs_for(machine: Machine) -> int:
    """Builds at a time where nobody says: as many as the engine's cores and memory carry."""
    in_memory = machine.memory_bytes // BYTES_A_BUILD
    return max(1, min(MOST_JOBS, machine.cores * BUILDS_A_CORE, in_memory))


def store_of(payload: Payload, wishes: BuildWishes) -> Store:
    """Where the parts of builds come from. Raises ConfigError for artifacts.yaml, mirrors.yaml."""
    return Store(
        artifacts=read_artifacts(payload),
        mirrors=read_mirrors(payload),
        cache=state_folder() / "parts",
        ca_bundle=wishes.ca_bundle,
        allow_unverified=wishes.allow_unverified,
    )


def build_recipes(
    engine: Engine,
    recipes: Sequence[Recipe],
    payload: Payload,
    wishes: BuildWishes,
    console: Console,
    book: Journal,
    run_id: int,
) -> list[BuildRecord]:
    """Build what is stale and write every record down. Failures are in the records."""
    options = build_options(engine, payload, wishes, console, book, run_id)
    cells = [recipe.spec.cell.id for recipe in recipes]
    book.plan_cells(run_id, cells)
    with console.builds(cells) as board:
        return build_family(engine, recipes, options, board)


def build_options(
    engine: Engine,
    payload: Payload,
    wishes: BuildWishes,
    console: Console,
    book: Journal,
    run_id: int,
) -> BuildOptions:
    """How the builds of one run are done."""
    env = build_env(wishes.ca_bundle)
    for note in env.notes:
        console.note(f"build steps use {note}")
    machine = client.machine(engine)
    jobs = wishes.jobs or jobs_for(machine)
    return BuildOptions(
        jobs=jobs,
        logs=state_folder() / "logs" / f"run-{run_id}",
        env=env,
        gate=_Gate(engine, book, run_id, console.note) if wishes.gate else None,
        store=store_of(payload, wishes),
        locks=engine_locks(machine.id, state_folder()),
        lock=LockedBuild(wishes.lock) if wishes.lock else None,
        force=wishes.force,
        base_mode=wishes.base,
        on_record=lambda record: book.add_build(run_id, record),
        last_good=book.last_good,
        on_broken=wishes.on_broken,
        again=wishes.again,
        before=_Forecast(wishes, machine, jobs, console),
    )


@dataclass(frozen=True)
class _Forecast:
    """Before the first build: does it fit on the disk, and how long will it take."""

    wishes: BuildWishes
    machine: Machine
    jobs: int
    console: Console

    def __call__(self, found: Sequence[Staleness], board: Board) -> Packing:
        stale = [one.recipe for one in found if one.why]
        if self.wishes.prices is None or not stale:
            return Packing()
        trees = trees_of(stale, self.wishes.prices)
        good = [one.recipe for one in found if not one.why]
        left = {os_id: missing(steps, _there(good, os_id)) for os_id, steps in trees.items()}
        whole = plus([total(steps) for steps in left.values()])
        board.expect(TimeLeft(left, self.jobs))
        said = []
        if self.wishes.check_disk and not self.wishes.force:
            steps = [step for above in left.values() for step in above]
            said = [check_room(whole.size_bytes, self.machine), uncounted(unsized(steps))]
        said.append(f"{len(stale)} of {len(found)} images to build, {self.jobs} at a time")
        for line in filter(None, said):
            self.console.note(line)
        return Packing(trunk(left))


def _there(good: Sequence[Recipe], os_id: str) -> set[Chain]:
    return prefixes([chain_of_recipe(one) for one in good if one.spec.os.id == os_id])


@dataclass(frozen=True)
class _Gate:
    """`validate --static` in the new image, which as yet has an id and no tag."""

    engine: Engine
    book: Journal
    run_id: int
    tell: Callable[[str], None]
    containers: set[str] = field(default_factory=set)

    def __call__(self, image_id: str, recipe: Recipe, log: Callable[[str], None]) -> None:
        request = ValidationRequest(static=True, look_into_layers=False)
        record = validate_image(self.engine, image_id, request, log, self.containers.add)
        self.book.add_validation(self.run_id, record)
        if not record.passed:
            raise ValidationError.of(
                f"`{recipe.spec.tag}` is not what was asked for; its tag was not moved",
                evidence=[*failed_checks(record), f"image {image_id}"],
            )
        self._look_inside(image_id, recipe, log)

    def _look_inside(self, image_id: str, recipe: Recipe, log: Callable[[str], None]) -> None:
        """Its bills of materials, and what its build left behind; neither stops a tag."""
        try:
            found = inventory(self.engine, image_id, sizes=False)
            lines = [f"sbom {path}" for path in write_sboms(found, state_folder())]
        except ImagegenError as error:
            log(f"no sbom: {error}")
            return
        for left in leftovers(found):
            self.tell(f"warning: {recipe.spec.cell.id}: {left}")
            lines.append(f"warning: {left}")
        for line in lines:
            log(line)

    def stop(self) -> None:
        for container in self.containers:
            stop(self.engine, container)


def failed_checks(record: ValidationRecord) -> list[str]:
    """The failed checks of a record, a line each, with the remedy where there is one."""
    lines = []
    checks = record.report.get("checks", [])
    for check in checks if isinstance(checks, list) else []:
        if check["outcome"] in ("failed", "error"):
            lines.append(f"{check['id']}: {check['measured']}")
            if check.get("remedy"):
                lines.append(f"  remedy: {check['remedy']}")
    return lines or [f"validate ended with exit code {record.report.get('exit_code')}"]


def validation_failures(records: Mapping[str, ValidationRecord]) -> ValidationError | None:
    """One error with a problem for each image that did not pass; or None."""
    lost = {ref: record for ref, record in records.items() if not record.passed}
    if not lost:
        return None
    return ValidationError(
        *(
            Problem(f"`{ref}` did not pass", evidence=tuple(failed_checks(record)))
            for ref, record in lost.items()
        )
    )


def newest(engine: Engine, tag: str, book: Journal) -> Candidate:
    """What a tag means on the engine now, with the record that decides about exactly that id."""
    image = local_images.find(engine, tag)
    if image is None:
        return Candidate(tag, "", None)
    return Candidate(tag, image.id, book.validation_of(image.id))
