"""Set up unit tests: no engine, no network, and a small catalog in real files."""

from __future__ import annotations

import gc
import itertools
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NoReturn

import docker
import pytest

from imagegen.catalog.reader import read_catalog
from imagegen.cli.main import main
from imagegen.config import payload as payloads
from imagegen.config.payload import Payload
from imagegen.matrix.reader import read_matrix
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Callable

    from imagegen.matrix.reader import Matrix
    from imagegen.model.catalog import Catalog

REPOSITORY = Path(__file__).parents[2]
HARMLESS = (sys.executable, "sh", "bash", "git")
"""Programs that a unit test may start."""

_COUNT = itertools.count()


def pytest_collection_finish() -> None:
    """Take the objects loaded so far out of garbage collection, which saves time in every test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def inside(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Keep every unit test from the engine, the network, the machine and this user's journal.

    The tests of the room `engine` use servers of their own on loopback.
    """
    state = tmp_path_factory.getbasetemp() / f"state-{next(_COUNT)}"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("IMAGEGEN_STATE", raising=False)
    monkeypatch.delenv("IMAGEGEN_DEBUG", raising=False)
    start = subprocess.Popen.__init__

    def only_harmless(self: subprocess.Popen[str], args: list[str], *rest: Any, **kw: Any) -> None:
        exists = shutil.which(args[0]) is not None
        assert args[0] in HARMLESS or not exists, f"a unit test started {args}"
        start(self, args, *rest, **kw)

    monkeypatch.setattr(subprocess.Popen, "__init__", only_harmless)
    if request.path.parent.name != "engine":
        monkeypatch.setattr(docker.APIClient, "__init__", _refuse)
        monkeypatch.setattr(socket.socket, "connect", _refuse)


def _refuse(*args: object, **_: object) -> NoReturn:
    raise AssertionError(f"a unit test reached outside: {args[1:]}")


class Overlay:
    """Hold a folder in the layout of the payload, with a small catalog: two OSes, five components.

    `beta` has two releases, one for each OS; `gamma` is compiled against `beta`; `delta` has
    variants; `validate` is the shipped tool's own.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._read: dict[str, bytes] = {}
        for name, version in (("debian12", "12"), ("debian13", "13")):
            self.os(name, version)
        self.component("alpha", _ALPHA)
        self.component("beta", _BETA)
        self.component("gamma", _GAMMA)
        self.component("delta", _DELTA)
        for name in ("alpha", "beta", "gamma", "delta"):
            self.template(name, f"RUN install {name} '{{{{ release.version }}}}'\n")
        self.write("dockerfiles/Dockerfile.j2", _DOCKERFILE)

    def write(self, relative: str, text: str | bytes) -> Path:
        path = self.root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
        return path

    def os(self, name: str, version: str, extra: str = "") -> Path:
        return self.write(f"dockerfiles/os/{name}.yaml", _OS.format(name, version) + extra)

    def component(self, name: str, text: str) -> Path:
        """Write a component, and an empty file for each suite that it names."""
        for listed in re.findall(r"(?m)^ *suites: \[(.*)\]", text):
            for suite in filter(None, listed.split(", ")):
                self.write(f"validate/suites/test_{suite}.py", "")
        return self.write(f"dockerfiles/components/{name}/component.yaml", text)

    def template(self, name: str, text: str, kind: str = "install") -> Path:
        return self.write(f"dockerfiles/components/{name}/{kind}.j2", text)

    def matrix(self, text: str, name: str = "small") -> Path:
        return self.write(f"matrices/{name}.yaml", text)

    @property
    def payload(self) -> Payload:
        """Return the payload of this folder alone, without the files that the tool ships."""
        return Payload((self.root,), (self.root,))

    @property
    def catalog(self) -> Catalog:
        """Return the catalog, read again only after one of its files changed."""
        files = {str(path): path.read_bytes() for path in self.payload.catalog_files()}
        if files != self._read:
            self._read, self._catalog = files, read_catalog(self.payload)
        return self._catalog

    def read(self, text: str = "", name: str = "small") -> Matrix:
        """Return the matrix of that text, or of the existing file, read by the real loader."""
        if text:
            self.matrix(text, name)
        return read_matrix(self.payload, name, self.catalog)


_OS = """\
id: {0}
family: debian
release: {{ID: debian, VERSION_ID: "{1}"}}
suite: suite-{1}
image: debian:{1}-slim
glibc: "2.{1}"
lib_dir: /usr/lib/x86_64-linux-gnu
bootstrap: true
source: the test
"""

_ALPHA = """\
name: alpha
title: Alpha
seconds: 10
megabytes: "0"
suites: [alpha]
path: [/opt/alpha/bin]
env: {ALPHA: "1"}
contract: {caps: [SYS_PTRACE], ulimits: {stack: "1024"}, shm_bytes: "64"}
releases:
  - version: "3.11"
    origin: alpha's archive
    source: the test
"""

_BETA = """\
name: beta
title: Beta
needs: [alpha]
seconds: 75
suites: [beta]
contract: {caps: [IPC_LOCK], ulimits: {memlock: "-1"}, network: host, shm_bytes: "128"}
releases:
  - version: 1.13.1
    requires: {os: debian12, alpha: ">=3"}
    origin: beta's archive
    source: the test
  - version: 2.6.0
    requires: {os: debian13, alpha: ">=3"}
    origin: beta's archive
    source: the test
megabytes: "0"
"""

_GAMMA = """\
name: gamma
title: Gamma
needs: [beta]
seconds: 120
suites: [gamma]
releases:
  - version: 0.28.1
    requires: {beta: "<2.1"}
    origin: gamma's archive
    source: the test
megabytes: "0"
"""

_DELTA = """\
name: delta
title: Delta
seconds: 8
suites: [delta]
releases:
  - version: "44.0"
    variant: core
    requires: {os: debian12}
    origin: delta's archive
    source: the test
  - version: "56.1"
    variant: core
    requires: {os: debian13}
    origin: delta's archive
    source: the test
megabytes: "0"
"""

_DOCKERFILE = """\
ARG BASE={{ os.image }}

FROM ${BASE} AS base
{% for stage in stages %}

{{ stage }}
{% endfor %}

FROM {{ last }} AS image
LABEL org.opencontainers.image.title="{{ image.tag }}"
CMD ["bash"]
"""

SMALL = """\
name: small
tag: "imagegen/small:{os}-{beta}-{delta}"
axes:
  os: [debian12, debian13]
  delta: [core, none]
components:
  alpha: any
  beta: any
  gamma:
    want: 0.28.1
    omit:
      - when: {os: debian13}
        reason: gamma does not compile there
"""


CELLS = """\
name: cells
tag: "imagegen/cells:{os}-torch{torch}-{rdma}"
axes: {os: [debian12], rdma: [rdma-core, none]}
components: {python: any, openmpi: any, torch: any, horovod: 0.28.1, ssh: any, validate: any}
"""
"""A matrix of shipped components that no contributor extends."""


@pytest.fixture
def overlay(tmp_path: Path) -> Overlay:
    """Write the small catalog, without a matrix."""
    root = tmp_path / "overlay"
    root.mkdir()
    return Overlay(root)


@pytest.fixture
def small(overlay: Overlay, monkeypatch: pytest.MonkeyPatch) -> Overlay:
    """Write the small catalog and its matrix `small`, the only ones that verbs then find."""
    overlay.matrix(SMALL)
    monkeypatch.chdir(overlay.root)
    monkeypatch.setattr(payloads, "shipped_root", lambda: overlay.root)
    return overlay


@pytest.fixture(scope="session")
def shipped() -> Catalog:
    """Return the catalog of the tool, read once; no test changes it."""
    return read_catalog(Payload((REPOSITORY,), (REPOSITORY,)))


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shipped: Catalog) -> Project:
    """Return the catalog and the matrices of the tool."""
    monkeypatch.chdir(tmp_path)
    one = Project()
    one.__dict__["catalog"] = shipped  # a cached property, filled
    return one


class Ended:
    """Hold how a verb ended: its exit code and what it printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run the real command line in this process."""

    def call(*arguments: str) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, out, err)

    return call
