"""Connect to the container engine, ask for its facts, and explain its errors."""

from __future__ import annotations

import json
import os
import re
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

from imagegen.engine import plain_http, sdk
from imagegen.engine.api import make_client
from imagegen.engine.endpoint import BY_VARIABLE, HINT_VARIABLE, Endpoint, endpoints
from imagegen.errors import EngineError, ImagegenError, Problem
from imagegen.events.waiting import PATIENCE_SECONDS, waiting_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import docker

    from imagegen.engine.answers import InfoAnswer, VersionAnswer

MINIMUM_API = "1.40"
"""Docker 19.03: the first engine whose `/build` runs BuildKit without an experimental flag."""

_API_VERSION = re.compile(r"[0-9]+\.[0-9]+")

PROBE_SECONDS = 10
CALL_SECONDS = 180
HINT_FIX = "imagegen doctor --fix"
HINT_STORE = "set `containerd-snapshotter` to false in its daemon.json, or upgrade it to Docker 28"
HINT_BUILDKIT = "name Docker Engine 19.03 or later with DOCKER_HOST or a docker context"


@dataclass(frozen=True)
class Engine:
    """Hold the connection to an engine that answered.

    `api` is for short calls; a long call uses a client of its own, see `fresh`.
    """

    endpoint: Endpoint
    api_version: str
    api: docker.APIClient = field(repr=False, compare=False)

    def fresh(self, timeout: int = CALL_SECONDS) -> docker.APIClient:
        """Make a client with its own connections; the caller closes it.

        It fails after `timeout` seconds in which no byte comes.
        """
        return make_client(self.endpoint, timeout, self.api_version)

    def url(self, path: str) -> str:
        """Return the full URL of an Engine API path, for calls that the SDK has no method for."""
        return f"{self.api.base_url}/v{self.api_version}{path}"


@dataclass(frozen=True)
class EngineFacts:
    """Hold what the engine reports about itself.

    `lack` is the reason why it cannot build, found by trying it. `product` is `Docker Engine`, or
    the name that another engine reports.
    """

    version: str
    api_version: str
    storage_driver: str
    root_dir: str
    runtimes: tuple[str, ...]
    arch: str
    lack: Problem | None = None
    product: str = "Docker Engine"


@dataclass(frozen=True)
class EngineMachine:
    """Describe the machine on which an engine runs.

    `free_bytes` are those of the disk with its root folder; None where that disk is not visible
    from this process. `id` is the engine's own id, the same at all its addresses.
    """

    cores: int
    memory_bytes: int
    root_dir: str
    free_bytes: int | None
    id: str = ""


def connect(environ: Mapping[str, str] | None = None) -> Engine:
    """Connect to the engine that `docker` itself would use.

    Where the user named no engine, it tries the system socket, then the rootless one. Raises
    EngineError when no engine answers, or when the one that answers is too old.
    """
    failures: list[str] = []
    denied = named = False
    for endpoint in endpoints(os.environ if environ is None else environ):
        try:
            with waiting_for(f"an engine at {endpoint.url}", PATIENCE_SECONDS):
                return _open(endpoint)
        except sdk.transport_errors(OSError, ValueError) as error:
            denied = denied or "Permission denied" in str(error)
            named = endpoint.named_by == BY_VARIABLE
            failures.append(f"{endpoint.url} ({endpoint.named_by}): {reason(error)}")
    text = "no container engine answers"
    hint = HINT_VARIABLE if named else HINT_FIX
    hint = "sudo usermod -aG docker $USER, then log in again" if denied else hint
    raise EngineError.of(text, evidence=failures, hint=hint)


def _open(endpoint: Endpoint) -> Engine:
    try:
        version = _spoken(endpoint)
    except sdk.errors.InvalidVersion as error:
        raise _too_old(str(error)) from error
    if sdk.utils.version_lt(version, MINIMUM_API):
        msg = f"{endpoint.url} speaks API {version}"
        raise _too_old(msg)
    return Engine(endpoint, version, make_client(endpoint, CALL_SECONDS, version))


def _spoken(endpoint: Endpoint) -> str:
    """Ask an engine for the newest version of the API that it speaks, within PATIENCE_SECONDS.

    Raises OSError where none answers in time, and ValueError for what is no address or no engine.
    """
    if endpoint.is_plain:
        status, _, body = plain_http.get(endpoint.url, "/version", PATIENCE_SECONDS)
        if status != HTTPStatus.OK:
            raise ValueError(f"it answers with status {status}: {error_of(body)[:200]}")
        answer = json.loads(body)
        version = str(answer.get("ApiVersion", "")) if isinstance(answer, dict) else ""
    else:
        with make_client(endpoint, PATIENCE_SECONDS, "auto") as probe:
            version = str(probe.api_version)
    if not _API_VERSION.fullmatch(version):
        raise ValueError(f"it answers, but not as a container engine: API version `{version[:40]}`")
    return version


def _too_old(evidence: str) -> ImagegenError:
    text = f"engine too old: API {MINIMUM_API} (Docker 19.03) or later is needed"
    return EngineError.of(text, evidence=[evidence], hint="upgrade the engine")


def facts(engine: Engine) -> EngineFacts:
    """Ask the engine for its facts; raises EngineError when it does not answer."""
    with engine_errors("ask the engine for its facts"):
        version, info = _version(engine), _info(engine)
        return EngineFacts(
            version=str(version.get("Version", "")),
            api_version=engine.api_version,
            storage_driver=str(info.get("Driver", "")),
            root_dir=str(info.get("DockerRootDir", "")),
            runtimes=tuple(sorted(info.get("Runtimes") or {})),
            arch=str(version.get("Arch", "")),
            lack=_lack(engine, version),
            product=_product(version),
        )


def require_buildkit(engine: Engine) -> None:
    """Raise EngineError where the engine cannot build; to be called before a build begins."""
    with engine_errors("say what it builds with"):
        lack = _lack(engine, _version(engine))
    if lack:
        asked = f"asked at {engine.endpoint.url} ({engine.endpoint.named_by})"
        raise EngineError(replace(lack, evidence=(asked,)))


def _version(engine: Engine) -> VersionAnswer:
    return cast("VersionAnswer", engine.api.version())


def _info(engine: Engine) -> InfoAnswer:
    return cast("InfoAnswer", engine.api.info())


def _product(version: VersionAnswer) -> str:
    """Return the name of the engine: that of the first of `Components` in `/version`.

    Podman answers `Podman Engine`, Docker answers `Engine`.
    """
    named = [str(one.get("Name", "")) for one in version.get("Components") or ()]
    return named[0] if named and named[0] != "Engine" else "Docker Engine"


def engine_machine(engine: Engine) -> EngineMachine:
    """Ask the engine how large its machine is."""
    with engine_errors("ask the engine for its size"):
        info = _info(engine)
    root, free = str(info.get("DockerRootDir", "")), None
    # A remote engine's folder may exist here too, on another disk.
    if engine.endpoint.url.startswith("unix://"):
        with suppress(OSError):
            disk = os.statvfs(root)
            free = disk.f_bavail * disk.f_frsize
    cores, memory = int(info.get("NCPU") or 1), int(info.get("MemTotal") or 0)
    return EngineMachine(cores, memory, root, free, str(info.get("ID") or engine.endpoint.url))


def is_alive(engine: Engine) -> bool:
    """Return whether the engine answers."""
    try:
        return engine.api.get(engine.url("/_ping"), timeout=PROBE_SECONDS).ok
    except sdk.transport_errors():
        return False


def _lack(engine: Engine, version: VersionAnswer) -> Problem | None:
    """Find the reason why `/build?version=2` cannot build, or None; it sends an empty context.

    An engine that can build refuses the empty context with an error of BuildKit. The
    `Builder-Version` header of `/_ping` is no help: it names the default builder only, and 20.10
    says `1` there although both work. With the containerd image store, BuildKit does not see a
    context that is posted, before Docker 28: github.com/moby/moby/issues/47717.
    """
    answer = engine.api.post(
        engine.url("/build"),
        params={"version": "2"},
        data=_gzipped(bytes(1024)),
        headers={"Content-Type": "application/x-tar"},
        timeout=PROBE_SECONDS,
    )
    name = f"{_product(version)} {version.get('Version', '')}"
    if b"moby.buildkit.trace" not in answer.content:
        text = f"{name} has no BuildKit, and images are built by BuildKit alone"
        return Problem(text, hint=HINT_BUILDKIT)
    if b"failed to read downloaded context" in answer.content:
        text = f"{name} takes no build context through its API with the containerd image store"
        return Problem(text, hint=HINT_STORE)
    return None


def _gzipped(data: bytes) -> bytes:
    """Compress data as gzip does; that module alone would load three others at each start."""
    compressor = zlib.compressobj(wbits=31)
    return compressor.compress(data) + compressor.flush()


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Turn errors of the SDK or of the connection into an EngineError that says what failed."""
    try:
        yield
    except sdk.transport_errors(UnicodeError) as error:
        text = f"the engine could not {doing}"
        raise EngineError.of(text, evidence=[reason(error)], hint="imagegen doctor") from error


def reason(error: BaseException) -> str:
    """Return the most specific message of an error: the engine's own, or the system's."""
    explanation = getattr(error, "explanation", None)
    if explanation:
        return str(explanation).strip()
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) and cause not in causes:
        causes.append(cause)
    system = next((c.strerror for c in causes if isinstance(c, OSError) and c.strerror), "")
    return system or str(error)


def error_of(body: bytes) -> str:
    """Read the message in an error answer of the Engine API."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace").strip()
