"""List what cells need from outside, and ask whether each part is available, before a build."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from imagegen.engine.host import archives
from imagegen.engine.host.probe import Probe, probe, without_secrets
from imagegen.errors import ImagegenError
from imagegen.model.image import base_of
from imagegen.sources.artifacts import Artifacts, artifact_for
from imagegen.sources.mirrors import rewrite, rewrite_image
from imagegen.sources.supply import problem_of
from imagegen.sources.wheels import WheelTarget, judge_wheel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from imagegen.config.network import BuildEnv
    from imagegen.engine.client import Engine
    from imagegen.engine.host.archives import Listing
    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec, Pin
    from imagegen.model.release import OsRelease

MOST_AT_ONCE = 8
SourceKind = Literal["base", "apt", "wheel", "url", "artefact"]


@dataclass(frozen=True)
class Source:
    """One thing that a build downloads, for one OS.

    `version` is a pattern for apt, and the base mode for a base; `python` is the Python that a
    wheel is for, `index` the only place that may have it; `compiled` accepts a source archive too.
    A package is in `areas` of the archive beside `main`, or in a `repository` of its step.
    """

    kind: SourceKind
    name: str
    version: str
    os: OsRelease
    python: str = ""
    index: str = ""
    compiled: bool = False
    areas: tuple[str, ...] = ()
    repository: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "base":
                return f"base {self.name} ({self.os.id})"
            case "apt":
                return f"apt {self.name}={self.version} ({self.os.id})"
            case "wheel":
                return f"pip {self.name}=={self.version} ({self.os.id}, python {self.python})"
            case "url":
                return f"url {without_secrets(self.name)}"
            case _:
                return f"artefact {self.name} {self.version}"


@dataclass(frozen=True)
class SourceFinding:
    """What was found about one source, and the names of the cells that need it."""

    source: Source
    cells: tuple[str, ...]
    probe: Probe


@dataclass(frozen=True)
class Means:
    """What is needed to ask the sources; `state` is a folder for package lists."""

    engine: Engine | None
    env: BuildEnv
    artifacts: Artifacts
    mirrors: Mapping[str, str]
    state: Path
    ca_bundle: Path | None = None


def sources_of(
    specs: Sequence[ImageSpec],
    catalog: Catalog,
    compiled: Collection[str],
    rendered: Mapping[str, str] | None = None,
) -> dict[Source, tuple[str, ...]]:
    """List every source of the cells, with the cells that need it.

    `compiled` components have a stage of their own, which takes their `build_apt` and that of what
    they need. `rendered` has Dockerfiles by cell id; a cell needs only what its Dockerfile
    mentions: no compiler where the flavour is `runtime`.
    """
    uses: dict[Source, list[str]] = {}
    for spec in specs:
        dockerfile = (rendered or {}).get(spec.cell.id)
        for source in _sources(spec, catalog, compiled):
            if dockerfile is None or _mentioned(source, dockerfile):
                uses.setdefault(source, []).append(spec.cell.name)
    return {source: tuple(dict.fromkeys(cells)) for source, cells in uses.items()}


def _sources(spec: ImageSpec, catalog: Catalog, compiled: Collection[str]) -> Iterator[Source]:
    base, areas = base_of(spec), areas_of([spec])
    yield Source("base", base.image, spec.cell.base, base)
    for pin in spec.pins:
        release = pin.release
        packages = [*release.apt.items()]
        packages += release.build_apt.items() if _builds(spec, pin, catalog, compiled) else ()
        own_archive = str(release.facts.get("apt_repo", ""))
        for name, version in packages:
            yield Source("apt", name, version, base, areas=areas, repository=own_archive)
        if "apt_key" in release.facts:
            yield Source("url", str(release.facts["apt_key"]), "", spec.os)
        own = pin.component in compiled
        for name, version in release.wheels.items():
            # The checks may have a Python of their own.
            running = str(release.facts.get(spec.interpreter, spec.python))
            yield Source("wheel", name, version, spec.os, running, release.index, own)
        if release.tarball:
            yield Source("url", release.tarball["url"], "", spec.os)
        if release.artifact:
            yield Source("artefact", release.artifact, pin.version, spec.os)


def areas_of(specs: Iterable[ImageSpec]) -> tuple[str, ...]:
    """List the areas of Debian's archive that rows of the cells need beside `main`."""
    found = [pin.release.facts.get("areas", ()) for spec in specs for pin in spec.pins]
    return tuple(dict.fromkeys(str(a) for areas in found if isinstance(areas, list) for a in areas))


def _mentioned(source: Source, dockerfile: str) -> bool:
    match source.kind:
        case "apt":
            return f"'{source.name}={source.version}'" in dockerfile
        case "wheel":
            return f"'{source.name}=={source.version}'" in dockerfile
        case "artefact":
            return f"artifacts/{source.name}/{source.version}" in dockerfile
        case _:
            return True


def _builds(spec: ImageSpec, pin: Pin, catalog: Catalog, compiled: Collection[str]) -> bool:
    """Say whether this component, or one that needs it, is compiled in the cell."""
    built = [other.component for other in spec.pins if other.component in compiled]
    return any(pin.component in (name, *catalog.components[name].needs) for name in built)


def probe_sources(uses: Mapping[Source, tuple[str, ...]], means: Means) -> list[SourceFinding]:
    """Ask for all sources in parallel; return a finding for each, in the order of `uses`.

    A source that cannot be asked is `unknown`. Raises nothing for a source.
    """
    with tempfile.TemporaryDirectory(prefix="imagegen-check-") as folder:
        environ = pip_environ(means.env, Path(folder), os.environ)
        with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
            oses = dict.fromkeys(source.os for source in uses if source.kind in ("base", "apt"))
            systems = [pool.submit(_check_os, os, [*uses], means) for os in oses]
            names = dict.fromkeys((s.name, s.index) for s in uses if s.kind == "wheel")
            wheels = [pool.submit(_check_wheel, *name, [*uses], environ) for name in names]
            parts = [s for s in uses if s.kind in ("url", "artefact")]
            files = [pool.submit(_check_file, part, means) for part in parts]
        probes = [pair for task in (*systems, *wheels, *files) for pair in task.result()]
    found = dict(probes)
    return [SourceFinding(source, cells, found[source]) for source, cells in uses.items()]


def pip_environ(env: BuildEnv, folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Make pip's environment as in build steps: the host's indexes and CA bundle, no local wheels.

    Files of the build environment are written into `folder`.
    """
    settings = {name: "" for name in environ if name.startswith("PIP_")}
    settings["PIP_CONFIG_FILE"] = os.devnull
    for file in env.files:
        name = file.path.rpartition("/")[2]
        (folder / name).write_bytes(file.data)
        if name == "ca.crt":
            settings["PIP_CERT"] = str(folder / name)
        elif name == "pip.conf":
            for key, _, value in (ln.partition(" = ") for ln in file.data.decode().splitlines()):
                if value:
                    settings[f"PIP_{key.replace('-', '_').upper()}"] = value
    return settings


def _check_os(
    release: OsRelease, sources: Sequence[Source], means: Means
) -> list[tuple[Source, Probe]]:
    """Check the bases of one OS, and all its packages in one query."""
    packages = [s for s in sources if s.kind == "apt" and s.os == release]
    names = sorted({source.name for source in packages if not source.repository})
    areas = sorted({area for source in packages for area in source.areas})
    try:
        local = archives.local_base(means.engine, release)
        if local and means.engine:
            proxies = dict(means.env.buildargs)
            listing = archives.apt_in_base(
                means.engine, local, names, means.env.files, proxies, areas
            )
        else:
            folder = means.state / "apt" / release.id
            listing = archives.apt_on_host(release, names, folder, areas)
        found = [(source, judge_package(source, listing)) for source in packages]
        for source in sources:
            if source.kind == "base" and source.os == release:
                wanted = replace(release, image=rewrite_image(release.image, means.mirrors))
                answer = archives.probe_base(means.engine, wanted, source.version)
                found.append((source, answer or judge_suite(listing)))
        return found
    except (ImagegenError, OSError) as error:
        lost = [s for s in sources if s.kind in ("base", "apt") and s.os == release]
        return [(source, Probe("unknown", _words(error))) for source in lost]


def judge_package(source: Source, listing: Listing) -> Probe:
    """Say whether `apt-get install name=pattern` would take one of the listed versions."""
    if source.repository:
        return Probe("unknown", f"in an archive that its step adds: {source.repository}")
    versions = listing.versions.get(source.name, ())
    fitting = [version for version in versions if _apt_takes(source.version, version)]
    if fitting:
        return Probe("ok", f"{fitting[0]}: {listing.asked}")
    if listing.problem:
        return Probe("unknown", listing.problem)
    has = f"has {', '.join(versions)}" if versions else "has no such package"
    return Probe("missing", f"{has}: {listing.asked}")


def _apt_takes(pattern: str, version: str) -> bool:
    """Match as apt does for `name=pattern`: globs; an epoch may be left out. Source: apt-get(8)."""
    return any(fnmatchcase(v, pattern) for v in (version, version.partition(":")[2] or version))


def judge_suite(listing: Listing) -> Probe:
    """Say whether a base can be bootstrapped from the archive that was asked for the suite."""
    if listing.problem:
        return Probe("missing" if listing.suite_missing else "unknown", listing.problem)
    return Probe("ok", f"to be bootstrapped: {listing.asked}")


def _check_wheel(
    name: str, index: str, sources: Sequence[Source], environ: Mapping[str, str]
) -> list[tuple[Source, Probe]]:
    wanted = [s for s in sources if (s.kind, s.name, s.index) == ("wheel", name, index)]
    try:
        lines = archives.pip_says(name, {**environ, **only_index(index)})
    except (ImagegenError, OSError) as error:
        return [(source, Probe("unknown", _words(error))) for source in wanted]
    return [(source, judge_wheel(source.version, _target(source), lines)) for source in wanted]


def only_index(index: str) -> dict[str, str]:
    """Make pip's settings for a project that may come from one index or one page of links only."""
    if not index:
        return {}
    if index.endswith(".html"):
        return {"PIP_FIND_LINKS": index, "PIP_NO_INDEX": "1"}
    return {"PIP_INDEX_URL": index, "PIP_EXTRA_INDEX_URL": ""}


def _target(source: Source) -> WheelTarget:
    return WheelTarget(source.python, source.os.glibc, source.compiled)


def _check_file(source: Source, means: Means) -> list[tuple[Source, Probe]]:
    if source.kind == "url":
        return [(source, _probe_url(source.name, means))]
    try:
        part = artifact_for(means.artifacts, source.name, source.version, source.os.id)
    except ImagegenError as error:
        return [(source, Probe("missing", f"{_words(error)}; {error.problems[0].hint}"))]
    problem = problem_of(part)
    if problem:
        words = (problem.evidence[0], problem.hint, problem.evidence[1])
        return [(source, Probe("missing", "; ".join(words)))]
    return [(source, Probe("ok", f"{part.path}") if part.path else _probe_url(part.url, means))]


def _probe_url(upstream: str, means: Means) -> Probe:
    url = rewrite(upstream, means.mirrors)
    answer = probe(url, means.ca_bundle)
    mirrored = f" (mirror of {without_secrets(upstream)})" if url != upstream else ""
    return Probe(answer.state, f"{without_secrets(url)}{mirrored}: {answer.evidence}")


def _words(error: Exception) -> str:
    if isinstance(error, ImagegenError):
        return "; ".join([error.problems[0].text, *error.problems[0].evidence])
    return str(error)
