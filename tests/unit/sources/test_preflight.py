"""Test what cells are made of, and how the answers of archives are judged, without an archive."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from imagegen.config.network import BuildEnv
from imagegen.config.payload import Payload
from imagegen.engine.host import archives
from imagegen.engine.host.archives import (
    Listing,
    for_suite,
    versions_of,
    with_areas,
)
from imagegen.engine.host.probe import Probe
from imagegen.errors import EngineError
from imagegen.model.recipe import ContextFile
from imagegen.sources.artifacts import Artifacts, read_artifacts
from imagegen.sources.preflight import (
    Means,
    Source,
    areas_of,
    judge_package,
    judge_suite,
    only_index,
    pip_environ,
    probe_sources,
    sources_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.image import ImageSpec, Pin
    from imagegen.workflow.project import Project

COMPILED = {"horovod", "validate"}
MADISON = (
    "openmpi-bin | 4.1.4-3+b1 | http://archive.example/debian bookworm/main amd64 Packages",
    "g++ | 4:12.2.0-3 | http://archive.example/debian bookworm/main amd64 Packages",
    "g++ | 4:12.2.0-3 | http://archive.example/debian bookworm-updates/main amd64 Packages",
    "g++ |    4:11.1 | http://archive.example/debian bookworm/main amd64 Packages",
    "openmpi | 4.1.4-3 | http://archive.example/debian bookworm/main Sources",
)
LISTING = Listing(versions_of(MADISON), asked="the archive")


@pytest.fixture
def specs(project: Project) -> tuple[ImageSpec, ...]:
    return project.family("cpu").specs


def uses(project: Project, specs: tuple[ImageSpec, ...]) -> dict[str, tuple[str, ...]]:
    found = sources_of(specs, project.catalog, COMPILED)
    return {str(source): cells for source, cells in found.items()}


def test_every_source_knows_its_cells(project: Project, specs: tuple[ImageSpec, ...]) -> None:
    found = uses(project, specs)
    both = ("debian12-rdma-core", "debian12-none")
    assert found["base debian:bookworm-slim (debian12)"] == both
    assert found["apt rdma-core=44.0-* (debian12)"] == both[:1]
    assert found["pip horovod==0.28.1 (debian12, python 3.11.2)"] == both
    assert found["pip pytest==8.3.5 (debian13, python 3.13.5)"] == (
        "debian13-rdma-core",
        "debian13-none",
    )


def test_what_is_compiled_against_counts_where_something_is_compiled(
    project: Project, specs: tuple[ImageSpec, ...]
) -> None:
    found = uses(project, specs)
    assert "apt cmake=3.25.* (debian12)" in found
    assert "apt libopenmpi-dev=4.1.4-* (debian12)" in found
    assert "apt libtorch-dev=1.13.1+dfsg-* (debian12)" in found
    # debian13 goes without Horovod
    assert "apt openmpi-bin=5.0.7-* (debian13)" in found
    assert not any("libopenmpi-dev" in source and "debian13" in source for source in found)


def test_a_cell_needs_what_its_dockerfile_mentions(
    project: Project, specs: tuple[ImageSpec, ...]
) -> None:
    dockerfile = "RUN apt-get install 'rdma-core=44.0-*' && pip install 'pytest==8.3.5'"
    only = {specs[0].cell.id: dockerfile}
    found = sources_of(specs[:1], project.catalog, COMPILED, only)
    assert [str(source).partition(" (")[0] for source in found] == [
        "base debian:bookworm-slim",
        "apt rdma-core=44.0-*",
        "pip pytest==8.3.5",
    ]


def test_packages_in_other_areas_or_archives_say_so(
    project: Project, specs: tuple[ImageSpec, ...]
) -> None:
    repo = "https://vendor.example/apt"
    facts = {"areas": ["contrib"], "apt_repo": repo, "apt_key": f"{repo}/key.asc"}
    changed = with_horovod(specs, facts=facts, apt={"x": "1"})
    assert areas_of(changed) == ("contrib",)
    found = sources_of(changed, project.catalog, COMPILED)
    (own,) = (source for source in found if source.name == "x")
    assert (own.areas, own.repository) == (("contrib",), repo)
    assert f"url {repo}/key.asc" in {str(source) for source in found}
    assert judge_package(own, LISTING).state == "unknown"


def test_wheels_for_a_python_of_their_own_are_asked_for_it(
    project: Project, specs: tuple[ImageSpec, ...]
) -> None:
    changed = with_horovod(specs, facts={"python": "3.12"})
    assert "pip horovod==0.28.1 (debian12, python 3.12)" in uses(project, changed)


def package(name: str, version: str, project: Project) -> Source:
    return Source("apt", name, version, project.catalog.os["debian12"])


@pytest.mark.parametrize(
    ("name", "pattern", "state", "evidence"),
    [
        ("openmpi-bin", "4.1.4-*", "ok", "4.1.4-3+b1: the archive"),
        ("openmpi-bin", "4.1.4-3+b1", "ok", "4.1.4-3+b1: the archive"),
        ("openmpi-bin", "4.1.4-3", "missing", "has 4.1.4-3+b1: the archive"),
        ("g++", "4:12.2.*", "ok", "4:12.2.0-3: the archive"),
        ("g++", "12.2.*", "ok", "4:12.2.0-3: the archive"),
        ("g++", "4:11.1", "ok", "4:11.1: the archive"),
        ("g++", "4:13.*", "missing", "has 4:12.2.0-3, 4:11.1: the archive"),
        ("openmpi", "4.1.4-3", "missing", "has no such package: the archive"),
    ],
)
def test_a_package_is_judged_as_apt_would_take_it(
    project: Project, name: str, pattern: str, state: str, evidence: str
) -> None:
    assert judge_package(package(name, pattern, project), LISTING) == Probe(
        "ok" if state == "ok" else "missing", evidence
    )


def test_what_an_incomplete_listing_lacks_is_unknown(project: Project) -> None:
    partial = Listing(LISTING.versions, "E: Failed to fetch", asked="the archive")
    assert judge_package(package("openmpi-bin", "4.1.4-*", project), partial).state == "ok"
    lost = judge_package(package("openmpi-bin", "9", project), partial)
    assert lost == Probe("unknown", "E: Failed to fetch")


def test_a_suite_that_is_not_there_cannot_be_bootstrapped() -> None:
    assert judge_suite(LISTING) == Probe("ok", "to be bootstrapped: the archive")
    assert judge_suite(Listing(problem="E: no Release file", suite_missing=True)).state == "missing"
    assert judge_suite(Listing(problem="E: Could not resolve")).state == "unknown"


def test_sources_of_this_host_become_those_of_another_suite() -> None:
    text = (
        "Suites: bookworm bookworm-updates\nSuites: bookworm-security\n"
        "URIs: http://mirror.example/bookworm.old/x-bookworm\n"
        "deb http://mirror.example/debian bookworm main # bookworm/updates\n"
    )
    assert for_suite(text, "bookworm", "trixie") == (
        "Suites: trixie trixie-updates\nSuites: trixie-security\n"
        "URIs: http://mirror.example/bookworm.old/x-bookworm\n"
        "deb http://mirror.example/debian trixie main # trixie/updates\n"
    )
    assert for_suite(text, "", "trixie") == text


def test_areas_are_read_beside_main_but_not_of_the_security_archive() -> None:
    text = (
        "deb http://mirror.example/debian trixie main\n"
        "deb http://mirror.example/debian trixie-security main\n"
        "deb http://mirror.example/debian trixie main contrib\n"
        "Components: main\n"
    )
    assert with_areas(text, ["contrib", "non-free"]) == (
        "deb http://mirror.example/debian trixie main contrib non-free\n"
        "deb http://mirror.example/debian trixie-security main\n"
        "deb http://mirror.example/debian trixie main contrib\n"
        "Components: main contrib non-free\n"
    )
    assert with_areas(text, []) == text


def test_pip_is_asked_with_what_the_build_steps_have(tmp_path: Path) -> None:
    conf = (
        b"[global]\nindex-url = https://index.lan/simple\nextra-index-url = https://a/ https://b/\n"
    )
    env = BuildEnv(
        (ContextFile("build-env/ca.crt", b"PEM"), ContextFile("build-env/pip.conf", conf))
    )
    assert pip_environ(env, tmp_path, {"PIP_FIND_LINKS": "/opt/wheels", "HOME": "/root"}) == {
        "PIP_FIND_LINKS": "",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_CERT": str(tmp_path / "ca.crt"),
        "PIP_INDEX_URL": "https://index.lan/simple",
        "PIP_EXTRA_INDEX_URL": "https://a/ https://b/",
    }
    assert (tmp_path / "ca.crt").read_bytes() == b"PEM"


def means(state: Path, artifacts: Artifacts | None = None) -> Means:
    return Means(None, BuildEnv(), artifacts or Artifacts(), {}, state)


def test_an_archive_that_cannot_be_asked_leaves_its_own_sources_unknown(
    project: Project, specs: tuple[ImageSpec, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_pip(*_: object) -> list[str]:
        raise EngineError.of("this host has no pip to ask")

    monkeypatch.setattr(archives, "pip_says", no_pip)
    monkeypatch.setattr(archives, "apt_on_host", lambda *_: LISTING)
    wanted = sources_of(specs[:1], project.catalog, COMPILED)
    found = probe_sources(wanted, means(tmp_path))
    assert [finding.source for finding in found] == [*wanted]
    by_kind = {finding.source.kind: finding.probe for finding in found}
    assert by_kind["wheel"] == Probe("unknown", "this host has no pip to ask")
    assert by_kind["base"].state == "ok"


def with_horovod(specs: tuple[ImageSpec, ...], **changes: Any) -> tuple[ImageSpec, ...]:
    """Return the cells with other origins in their row of Horovod."""

    def changed(pin: Pin) -> Pin:
        other = replace(pin, release=replace(pin.release, **changes))
        return other if pin.component == "horovod" else pin

    return tuple(replace(spec, pins=tuple(map(changed, spec.pins))) for spec in specs)


def test_a_vendor_part_has_to_be_listed_and_to_be_there(
    project: Project, specs: tuple[ImageSpec, ...], tmp_path: Path
) -> None:
    wanted = sources_of(with_horovod(specs, artifact="light"), project.catalog, COMPILED)
    (part,) = (source for source in wanted if source.kind == "artefact")
    assert wanted[part] == ("debian12-rdma-core", "debian12-none")
    (finding,) = probe_sources({part: wanted[part]}, means(tmp_path))
    assert finding.probe.state == "missing"
    told = "the vendor part `light` 0.28.1 for debian12 is not listed; list it there"
    assert told in finding.probe.evidence

    (tmp_path / "artifacts.yaml").write_text(
        "artifacts:\n- {name: light, version: 0.28.1, file: h.whl, path: h.whl,"
        f" sha256: {hashlib.sha256(b'h').hexdigest()}, licence: ask the vendor}}\n"
    )
    parts = read_artifacts(Payload((tmp_path,), ()))
    (finding,) = probe_sources({part: wanted[part]}, means(tmp_path, parts))
    assert finding.probe.state == "missing"
    assert "licence: ask the vendor" in finding.probe.evidence
    assert "put h.whl with sha256" in finding.probe.evidence

    (tmp_path / "h.whl").write_bytes(b"h")
    (finding,) = probe_sources({part: wanted[part]}, means(tmp_path, parts))
    assert finding.probe == Probe("ok", str(tmp_path / "h.whl"))


def test_a_tarball_is_asked_for_at_its_mirror(
    project: Project, specs: tuple[ImageSpec, ...], tmp_path: Path
) -> None:
    tarball = {"url": "https://vendor.example/h-1.tgz", "sha256": "0" * 64}
    wanted = sources_of(with_horovod(specs, tarball=tarball), project.catalog, COMPILED)
    (source,) = (source for source in wanted if source.kind == "url")
    mirrored = replace(means(tmp_path), mirrors={"https://vendor.example": tmp_path.as_uri()})
    where = f"{tmp_path.as_uri()}/h-1.tgz (mirror of https://vendor.example/h-1.tgz)"
    (finding,) = probe_sources({source: wanted[source]}, mirrored)
    assert finding.probe == Probe("missing", f"{where}: no such file")
    (tmp_path / "h-1.tgz").touch()
    (finding,) = probe_sources({source: wanted[source]}, mirrored)
    assert finding.probe == Probe("ok", f"{where}: is there")


def test_a_wheel_of_one_index_is_asked_for_there_alone(
    project: Project,
    specs: tuple[ImageSpec, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, str, str]] = []

    def pip(name: str, environ: dict[str, str]) -> list[str]:
        asked.append((name, environ["PIP_INDEX_URL"], environ["PIP_EXTRA_INDEX_URL"]))
        return [f"Found link https://i.example/{name}-0.28.1.tar.gz, version: 0.28.1"]

    monkeypatch.setattr(archives, "pip_says", pip)
    rows = with_horovod(specs, index="https://vendor.example/simple")
    wanted = sources_of(rows, project.catalog, COMPILED)
    wheels = {s: cells for s, cells in wanted.items() if s.name == "horovod"}
    assert [finding.probe.state for finding in probe_sources(wheels, means(tmp_path))] == ["ok"]
    assert asked == [("horovod", "https://vendor.example/simple", "")]
    assert only_index("https://vendor.example/links.html") == {
        "PIP_FIND_LINKS": "https://vendor.example/links.html",
        "PIP_NO_INDEX": "1",
    }
