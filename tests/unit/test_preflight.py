"""What cells are made of, and how the answers of archives are judged. No archive is asked here."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from imagegen import preflight
from imagegen.artifacts import Artifacts, read_artifacts
from imagegen.buildenv import BuildEnv
from imagegen.cli import main
from imagegen.engine import archives
from imagegen.engine.archives import Listing, for_suite, versions_of
from imagegen.engine.probe import Probe
from imagegen.errors import EngineError
from imagegen.model import ContextFile
from imagegen.payload import Payload
from imagegen.preflight import (
    Means,
    Source,
    check,
    judge_package,
    judge_suite,
    pip_environ,
    sources_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.family import House
    from imagegen.model import ImageSpec

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
def specs(house: House) -> tuple[ImageSpec, ...]:
    return house.family("cpu").specs


def uses(house: House, specs: tuple[ImageSpec, ...]) -> dict[str, tuple[str, ...]]:
    found = sources_of(specs, house.catalog, COMPILED, Artifacts())
    return {str(source): cells for source, cells in found.items()}


def test_every_source_knows_its_cells(house: House, specs: tuple[ImageSpec, ...]) -> None:
    found = uses(house, specs)
    both = ("debian12-rdma-core", "debian12-none")
    assert found["base debian:bookworm-slim (debian12)"] == both
    assert found["apt rdma-core=44.0-* (debian12)"] == both[:1]
    assert found["pip horovod==0.28.1 (debian12, python 3.11.2)"] == both
    assert found["pip pytest==8.3.5 (debian13, python 3.13.5)"] == (
        "debian13-rdma-core",
        "debian13-none",
    )


def test_what_is_compiled_against_counts_where_something_is_compiled(
    house: House, specs: tuple[ImageSpec, ...]
) -> None:
    found = uses(house, specs)
    assert "apt cmake=3.25.* (debian12)" in found
    assert "apt libopenmpi-dev=4.1.4-* (debian12)" in found
    assert "apt libtorch-dev=1.13.1+dfsg-* (debian12)" in found
    # debian13 goes without Horovod
    assert "apt openmpi-bin=5.0.7-* (debian13)" in found
    assert not any("libopenmpi-dev" in source and "debian13" in source for source in found)


def package(name: str, version: str, house: House) -> Source:
    return Source("apt", name, version, house.catalog.os["debian12"])


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
    house: House, name: str, pattern: str, state: str, evidence: str
) -> None:
    assert judge_package(package(name, pattern, house), LISTING) == Probe(
        "ok" if state == "ok" else "missing", evidence
    )


def test_what_an_incomplete_listing_lacks_is_unknown(house: House) -> None:
    partial = Listing(LISTING.versions, "E: Failed to fetch", asked="the archive")
    assert judge_package(package("openmpi-bin", "4.1.4-*", house), partial).state == "ok"
    lost = judge_package(package("openmpi-bin", "9", house), partial)
    assert lost == Probe("unknown", "E: Failed to fetch")


def test_a_suite_that_is_not_there_cannot_be_bootstrapped() -> None:
    assert judge_suite(LISTING) == Probe("ok", "to be bootstrapped: the archive")
    assert judge_suite(Listing(problem="E: no Release file", gone=True)).state == "missing"
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
    house: House, specs: tuple[ImageSpec, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_pip(*_: object) -> list[str]:
        raise EngineError.of("this host has no pip to ask")

    monkeypatch.setattr(archives, "pip_says", no_pip)
    monkeypatch.setattr(archives, "apt_on_host", lambda *_: LISTING)
    wanted = sources_of(specs[:1], house.catalog, COMPILED, Artifacts())
    found = check(wanted, means(tmp_path))
    assert [finding.source for finding in found] == [*wanted]
    by_kind = {finding.source.kind: finding.probe for finding in found}
    assert by_kind["wheel"] == Probe("unknown", "this host has no pip to ask")
    assert by_kind["base"].state == "ok"


def test_vendor_parts_are_sources_of_the_cells_that_pin_them(
    house: House, specs: tuple[ImageSpec, ...], tmp_path: Path
) -> None:
    (tmp_path / "artifacts.yaml").write_text(
        f"artifacts:\n- {{name: horovod, version: 0.28.1, file: h.whl, path: h.whl,"
        f" sha256: {'0' * 64}, licence: ask the vendor}}\n"
    )
    parts = read_artifacts(Payload((tmp_path,), ()))
    wanted = sources_of(specs, house.catalog, COMPILED, parts)
    (part,) = (source for source in wanted if source.kind == "artefact")
    assert wanted[part] == ("debian12-rdma-core", "debian12-none")
    (finding,) = check({part: wanted[part]}, means(tmp_path, parts))
    assert finding.probe.state == "missing"
    assert "licence: ask the vendor" in finding.probe.evidence
    assert f"put h.whl with sha256 {'0' * 64} at" in finding.probe.evidence


@pytest.mark.parametrize(("version", "code"), [("1.0", 0), ("2.0", 6)])
def test_the_verb_ends_with_6_where_something_is_missing(
    version: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(wanted: dict[Source, tuple[str, ...]], _: Means) -> list[preflight.Finding]:
        bad = Probe("missing", f"has {version}")
        good = Probe("ok", "is there")
        return [
            preflight.Finding(s, cells, bad if code and s.name == "pytest" else good)
            for s, cells in wanted.items()
        ]

    monkeypatch.setattr(preflight, "check", answer)
    monkeypatch.setattr("imagegen.engine.client.connect", _no_engine)
    with pytest.raises(SystemExit) as ended:
        main(["check-sources", "-m", "cpu", "debian12-none", "--format", "json"])
    assert ended.value.code == code
    first, *errors = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    states = {row["source"]: row["state"] for row in first}
    wheel = "pip pytest==8.3.5 (debian12, python 3.11.2)"
    assert states[wheel] == ("missing" if code else "ok")
    if code:
        (problem,) = errors[0]["errors"]
        assert problem["text"] == f"{wheel} cannot be had"
        assert problem["evidence"] == ["has 2.0", "needed by: debian12-none"]


def _no_engine() -> None:
    raise EngineError.of("no container engine answers")
