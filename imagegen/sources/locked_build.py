"""Write a lock from images that were built, and build exactly what a lock lists."""

from __future__ import annotations

import os
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.config.network import FOLDER, pip_conf_of
from imagegen.engine.builds import buildkit
from imagegen.engine.builds.context import pack_context
from imagegen.engine.host import archives
from imagegen.engine.images.bases import identity
from imagegen.engine.images.contents import installed
from imagegen.errors import BuildError, Problem
from imagegen.model.image import base_alias, base_of
from imagegen.model.recipe import ContextFile
from imagegen.sources.lock_file import (
    LINKS,
    NOTHING,
    Drift,
    Lock,
    SystemLock,
    drift_of_packages,
    drifted,
    exact,
    lock_entry,
    owners_of,
    preferences,
)
from imagegen.sources.pip_index import (
    IndexFile,
    file_of,
    links_page,
    listed_files,
    project_of,
)
from imagegen.sources.preflight import areas_of, only_index, pip_environ
from imagegen.sources.supply import supply
from imagegen.sources.wheels import WheelTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from imagegen.config.network import BuildEnv
    from imagegen.engine.client import Engine
    from imagegen.engine.images.contents import ImageContents, Package
    from imagegen.model.image import ImageSpec
    from imagegen.model.recipe import Recipe
    from imagegen.model.release import OsRelease
    from imagegen.sources.supply import Store

MOST_AT_ONCE = 4

_PREFERENCES = b'Dir::Etc::Preferences "/mnt/preferences";\n'


@dataclass(frozen=True)
class Built:
    """A recipe and the image that was built from it."""

    recipe: Recipe
    image_id: str


def lock_of(
    engine: Engine,
    cells: Sequence[Built],
    env: BuildEnv,
    store: Store,
    on_line: Callable[[str], None],
) -> Lock:
    """Make the lock of cells of one matrix from their images and their build stages.

    The stages come from the engine's cache, or are built again where the cache has lost them.
    Raises BuildError where an index has no file for a distribution that is in an image.
    """
    by_os: dict[str, list[Built]] = {}
    for cell in cells:
        by_os.setdefault(base_of(cell.recipe.spec).id, []).append(cell)
    systems = {
        name: _system(engine, group, env, store, on_line) for name, group in sorted(by_os.items())
    }
    matrix = cells[0].recipe.spec.cell.matrix
    locked = {cell.recipe.spec.cell.name: lock_entry(cell.recipe) for cell in cells}
    return Lock("", matrix, systems, locked)


def _system(
    engine: Engine,
    cells: Sequence[Built],
    env: BuildEnv,
    store: Store,
    on_line: Callable[[str], None],
) -> SystemLock:
    found: list[ImageContents] = []
    for cell in cells:
        on_line(f"looking into {cell.recipe.spec.tag} and its build stages")
        ids = [cell.image_id, *_stage_images(engine, cell.recipe, env, store)]
        found += [installed(engine, image_id) for image_id in ids]
    recipes = [cell.recipe for cell in cells]
    # The image and a stage may have the same distribution, in different folders.
    dists = {replace(dist, path="") for one in found for dist in one.of_kind("pypi")}
    on_line(f"asking for the files of {len(dists)} Python distributions")
    base = identity(engine, base_alias(base_of(recipes[0].spec)))
    return SystemLock(base, packages_of(found), _wheels(dists, recipes, env))


def packages_of(found: Iterable[ImageContents]) -> dict[str, tuple[str, ...]]:
    """Map each package to its versions in all images and stages."""
    versions: dict[str, set[str]] = {}
    for one in found:
        for package, version in one.debs.items():
            versions.setdefault(package, set()).add(version)
    return {package: tuple(sorted(all_)) for package, all_ in sorted(versions.items())}


def _stage_images(engine: Engine, recipe: Recipe, env: BuildEnv, store: Store) -> list[str]:
    parts = supply(recipe.parts, store)
    context = pack_context(
        recipe.dockerfile, [*recipe.files, *env.files], [parts[part] for part in recipe.parts]
    )
    base = {"BASE": base_alias(base_of(recipe.spec)), **dict(env.buildargs)}
    ids = []
    for stage in sorted({origin.stage for origin in recipe.origins if _is_build(origin.stage)}):
        request = buildkit.BuildRequest(context, uuid.uuid4().hex, {}, base, target=stage)
        try:
            ids.append(buildkit.build(engine, request, lambda _: None))
        except buildkit.StepError as error:
            text = f"stage `{stage}` of `{recipe.spec.tag}` was not built again"
            raise BuildError.of(text, evidence=[str(error), *error.last(5)]) from error
    return ids


def _is_build(stage: str) -> bool:
    return stage.endswith("-build")


def _wheels(dists: Iterable[Package], recipes: Sequence[Recipe], env: BuildEnv) -> dict[str, str]:
    """Map the file of each distribution to its sha256, as the indexes of the builds give it."""
    specs = [recipe.spec for recipe in recipes]
    vendors = {project_of(Path(part.name).name) for recipe in recipes for part in recipe.parts}
    wanted = [dist for dist in dists if project_of(f"{dist.name}-0") not in vendors]
    listed = _listed({project_of(f"{dist.name}-0") for dist in wanted}, specs, env)
    wheels, problems = {}, []
    for dist in sorted(wanted, key=lambda dist: (dist.name, dist.version)):
        file = file_of(dist, listed[project_of(f"{dist.name}-0")], _target(specs))
        if file is None or not file.sha256:
            text = f"no index of this host has {dist.name} {dist.version} with its sha256"
            problems.append(Problem(text, evidence=("it is in an image that was built here",)))
        else:
            wheels[file.name] = file.sha256
    if problems:
        raise BuildError(*problems)
    return dict(sorted(wheels.items()))


def _target(specs: Sequence[ImageSpec]) -> WheelTarget:
    python = next((spec.python for spec in specs if spec.python), "3")
    return WheelTarget(python, specs[0].os.glibc, compiled=True)


def _listed(
    projects: Iterable[str], specs: Sequence[ImageSpec], env: BuildEnv
) -> dict[str, list[IndexFile]]:
    """List the files of each project on the host's indexes, then on those of the rows."""
    rows = {pin.release.index for spec in specs for pin in spec.pins if pin.release.index}
    names = sorted(projects)
    with tempfile.TemporaryDirectory(prefix="imagegen-lock-") as folder:
        environ = pip_environ(env, Path(folder), os.environ)

        def ask(name: str) -> list[IndexFile]:
            environs = [{**environ, **only_index(index)} for index in ("", *sorted(rows))]
            lines = [line for one in environs for line in archives.pip_says(name, one)]
            return listed_files(name, lines)

        with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
            return dict(zip(names, pool.map(ask, names), strict=True))


@dataclass(frozen=True)
class LockedBuild:
    """Makes builds follow a lock.

    The Dockerfile gets exact versions; the build environment gets apt's preferences, and a page of
    links with sha256.
    """

    lock: Lock

    def digest(self, os_id: str) -> str:
        """Return the lock's digest for an OS, which becomes a label of its images."""
        return self.lock.systems[os_id].digest

    def recipe(self, recipe: Recipe) -> Recipe:
        """Return the recipe to build. Its digest does not change: it is the same cell."""
        system = self.lock.systems[base_of(recipe.spec).id]
        return replace(recipe, dockerfile=exact(recipe.dockerfile, system.apt))

    def environment(self, engine: Engine, recipes: Sequence[Recipe], env: BuildEnv) -> BuildEnv:
        """Make the build environment of the cells of one OS whose base is on the engine.

        Raises BuildError with everything that drifted.
        """
        release, specs = base_of(recipes[0].spec), [recipe.spec for recipe in recipes]
        locked = self.lock.systems[release.id]
        owners = owners_of(specs)
        base = identity(engine, base_alias(release))
        found = [] if base == locked.base else [Drift("os", "base", locked.base, base)]
        found += _package_drift(engine, release, locked, env, specs)
        files, lost = _locked_files(locked, specs, env, owners)
        if found or lost:
            raise drifted(self.lock, [*found, *lost])
        return locked_env(env, locked, files)


def _package_drift(
    engine: Engine,
    release: OsRelease,
    locked: SystemLock,
    env: BuildEnv,
    specs: Sequence[ImageSpec],
) -> list[Drift]:
    areas, owners = areas_of(specs), owners_of(specs)
    ref, proxies = base_alias(release), dict(env.buildargs)
    listing = archives.apt_in_base(engine, ref, sorted(locked.apt), env.files, proxies, areas)
    there = installed(engine, ref).debs
    return drift_of_packages(locked, listing.versions, there, owners)


def _locked_files(
    locked: SystemLock, specs: Sequence[ImageSpec], env: BuildEnv, owners: Mapping[str, str]
) -> tuple[list[IndexFile], list[Drift]]:
    """Find the locked files on the indexes; report those missing or with another sha256."""
    listed = _listed({project_of(name) for name in locked.wheels}, specs, env)
    files, lost = [], []
    for name, sha256 in locked.wheels.items():
        there = [file for file in listed[project_of(name)] if file.name == name]
        same = [file for file in there if file.sha256 == sha256]
        if same:
            files.append(same[0])
        else:
            owner = owners.get(project_of(name), "dependency")
            lost.append(Drift(owner, name, sha256, there[0].sha256 if there else NOTHING))
    return files, lost


def locked_env(env: BuildEnv, locked: SystemLock, files: Sequence[IndexFile]) -> BuildEnv:
    """Make the build environment in which apt and pip follow the lock.

    BuildKit since 0.11 uses SOURCE_DATE_EPOCH for the image's own time stamps; older ones ignore
    it.
    """
    # uv.toml is left out, so pip installs everything, and only what is on its page of links.
    replaced = {f"{FOLDER}/{name}" for name in ("apt.conf", "pip.conf", "uv.toml")}
    kept = {file.path: file.data for file in env.files}
    apt_conf = kept.get(f"{FOLDER}/apt.conf", b"") + _PREFERENCES
    pip_conf = pip_conf_of({"no-index": "true", "find-links": LINKS})
    added = {
        "apt.conf": apt_conf,
        "pip.conf": pip_conf.encode(),
        "preferences": preferences(locked.apt).encode(),
        "links.html": links_page(files).encode(),
    }
    return replace(
        env,
        buildargs=(*env.buildargs, ("SOURCE_DATE_EPOCH", "0")),
        files=(
            *(file for file in env.files if file.path not in replaced),
            *(ContextFile(f"{FOLDER}/{name}", data) for name, data in added.items()),
        ),
    )
