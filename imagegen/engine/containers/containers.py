"""Run a container, work inside it, and remove it in every case."""

from __future__ import annotations

import io
import sys
import tarfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from imagegen.engine import sdk
from imagegen.engine.client import Engine, engine_errors, reason
from imagegen.engine.containers import owner
from imagegen.engine.containers.exec import ExecResult, run_exec
from imagegen.engine.containers.refusals import relax
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import docker

__all__ = ["Container", "ExecResult", "LaunchSpec", "image_has", "network", "running"]

LATE_SECONDS = 1.0
"""The seconds in which an engine makes a container, mostly."""


@dataclass(frozen=True)
class LaunchSpec:
    """Say how to start a container; an empty value leaves the engine's default.

    `ulimits` are soft and hard limits alike, -1 is unlimited. `mounts` are (host path, path, `ro`
    or `rw`). `network` is a name, `host` or `none`. Where `command` or `entrypoint` is None, the
    image's own is used. `files` is a tar file of this host that is unpacked at / before the start.
    """

    image: str
    command: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    caps: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    shm_bytes: int = 0
    ulimits: Mapping[str, int] = field(default_factory=dict)
    network: str = ""
    mounts: tuple[tuple[str, str, str], ...] = ()
    hostname: str = ""
    gpus: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] | None = None
    files: str = ""


@dataclass(frozen=True)
class Container:
    """Hold a running container; `notes` name the limits and devices that the engine refused."""

    engine: Engine = field(repr=False)
    id: str
    name: str
    notes: tuple[str, ...] = ()

    def exec(
        self,
        argv: tuple[str, ...] | list[str],
        timeout: float,
        env: Mapping[str, str] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> ExecResult:
        """Run a command; `timeout` is in seconds, `on_output` gets each line of stdout and stderr.

        When the time is up, the command and all that it started are killed, and the result is
        `timed_out`. Raises EngineError when the container does not run or the connection is lost.
        """
        return run_exec(self.engine, self.id, list(argv), timeout, dict(env or {}), on_output)

    def read_file(self, path: str) -> bytes:
        """Read a file; the engine follows links. Raises FileNotFoundError."""
        with engine_errors(f"read `{path}` in {self.name}"):
            try:
                chunks, _ = self.engine.api.get_archive(self.id, path)
            except sdk.errors.NotFound as error:
                raise FileNotFoundError(path) from error
            packed = io.BytesIO(b"".join(chunks))
        with tarfile.open(fileobj=packed) as tar:
            member = tar.next()
            content = tar.extractfile(member) if member and member.isreg() else None
            if content is None:
                raise FileNotFoundError(path)
            return content.read()

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file, owned by root, into a folder that exists."""
        target = PurePosixPath(path)
        info = tarfile.TarInfo(target.name)
        info.size, info.mode = len(data), mode
        self._put(str(target.parent), info, data)

    def make_folder(self, path: str) -> None:
        """Make a folder in which everybody may write, and its parents; `path` is absolute."""
        info = tarfile.TarInfo(path.lstrip("/"))
        info.type, info.mode = tarfile.DIRTYPE, 0o1777
        self._put("/", info)

    def _put(self, folder: str, info: tarfile.TarInfo, data: bytes = b"") -> None:
        packed = io.BytesIO()
        info.mtime = int(time.time())
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            tar.addfile(info, io.BytesIO(data))
        with engine_errors(f"write `{info.name}` into {folder} of {self.name}"):
            self.engine.api.put_archive(self.id, folder, packed.getvalue())

    def alive(self) -> bool:
        """Return whether its main process still runs; False where the container does not exist."""
        with engine_errors(f"inspect {self.name}"):
            try:
                return bool(self.engine.api.inspect_container(self.id)["State"]["Running"])
            except sdk.errors.NotFound:
                return False

    def logs(self, tail: int = 30) -> str:
        """Return the last lines that its main process printed."""
        with engine_errors(f"read the log of {self.name}"):
            text: bytes = self.engine.api.logs(self.id, tail=tail)
        return text.decode(errors="replace")


@contextmanager
def running(engine: Engine, spec: LaunchSpec) -> Iterator[Container]:
    """Start a container, yield it, and remove it in the end, also on Ctrl-C.

    Raises EngineError when it cannot start. It may end by itself at any time: see `alive`.
    """
    _remove_left_once(engine)
    # The name is chosen before the engine makes the container, so an interrupt in between leaves no
    # container behind.
    name = owner.new_name()
    try:
        container = _start(engine, spec, name)
    except BaseException:
        _remove_late(engine, name)
        raise
    try:
        yield container
    finally:
        _remove(engine, name)


def image_has(engine: Engine, image: str, path: str) -> bool:
    """Return whether an image has a file; no container of it is started."""
    name = owner.new_name()
    try:
        with engine_errors(f"look for `{path}` in {image}"):
            container_id = _create(engine, LaunchSpec(image, ("true",)), name)
            try:
                engine.api.get_archive(container_id, path)
            except sdk.errors.NotFound:
                return False
            return True
    finally:
        _remove(engine, name)


_swept: set[str] = set()


def _remove_left_once(engine: Engine) -> None:
    """Remove what killed runs left, before the first container of this run."""
    if engine.endpoint.url not in _swept:
        _swept.add(engine.endpoint.url)
        owner.remove_left(engine)


def _remove_late(engine: Engine, name: str) -> None:
    """Remove a container that the engine may still be making: the request was interrupted."""
    _remove(engine, name)
    if isinstance(sys.exc_info()[1], KeyboardInterrupt):
        time.sleep(LATE_SECONDS)
        _remove(engine, name)


@contextmanager
def network(engine: Engine, name: str) -> Iterator[str]:
    """Make a private network, in which containers find one another by host name; yield its name."""
    with engine_errors(f"create network `{name}`"):
        created = engine.api.create_network(name, driver="bridge", check_duplicate=True)
    try:
        yield name
    finally:
        with suppress(sdk.errors.NotFound), engine_errors(f"remove network `{name}`"):
            engine.api.remove_network(created["Id"])


def _start(engine: Engine, spec: LaunchSpec, name: str) -> Container:
    """Start a container; if the engine refuses a limit or a device, start it without that."""
    notes: list[str] = []
    while True:
        try:
            container_id = _create(engine, spec, name)
            if spec.files:
                engine.api.put_archive(container_id, "/", Path(spec.files).read_bytes())
            engine.api.start(container_id)
            return Container(engine, container_id, name, tuple(notes))
        except sdk.errors.APIError as error:
            relaxed = relax(reason(error), spec.ulimits, spec.devices)
            if relaxed is None:
                raise _refused(spec, reason(error)) from error
            _remove(engine, name)
            spec = replace(spec, ulimits=relaxed.ulimits, devices=relaxed.devices)
            notes.append(relaxed.note)
        except sdk.errors.DockerException as error:
            raise _refused(spec, reason(error)) from error


def _refused(spec: LaunchSpec, why: str) -> Exception:
    hint = "imagegen doctor"
    if "could not select device driver" in why:
        hint = "install the NVIDIA container toolkit, or launch without GPUs"
    return EngineError.of(f"`{spec.image}` does not start", evidence=[why], hint=hint)


def _create(engine: Engine, spec: LaunchSpec, name: str) -> str:
    api = engine.api
    with_aliases = spec.network not in ("", "host", "none", "bridge") and spec.hostname
    joined = None
    if with_aliases:
        endpoint = api.create_endpoint_config(aliases=[spec.hostname])
        # The SDK accepts a map here; its type stubs know a single endpoint only.
        joined = api.create_networking_config({spec.network: endpoint})  # type: ignore[arg-type]
    created: dict[str, str] = api.create_container(
        spec.image,
        command=list(spec.command) if spec.command is not None else None,
        entrypoint=list(spec.entrypoint) if spec.entrypoint is not None else None,
        hostname=spec.hostname or None,
        environment=dict(spec.env),
        labels={**spec.labels, **owner.own_mark()},
        name=name,
        networking_config=joined,
        host_config=_host_config(api, spec),
    )
    return created["Id"]


def _host_config(api: docker.APIClient, spec: LaunchSpec) -> docker.types.HostConfig:
    all_gpus = sdk.types.DeviceRequest(count=-1, capabilities=[["gpu"]])
    return api.create_host_config(
        binds=[":".join(mount) for mount in spec.mounts],
        cap_add=list(spec.caps),
        devices=list(spec.devices),
        device_requests=[all_gpus] if spec.gpus else None,
        network_mode=spec.network or None,
        shm_size=spec.shm_bytes or None,
        ulimits=[sdk.types.Ulimit(name=k, soft=v, hard=v) for k, v in spec.ulimits.items()],
    )


def _remove(engine: Engine, name: str) -> None:
    with engine_errors(f"remove container {name}"), suppress(sdk.errors.NotFound):
        engine.api.remove_container(name, force=True, v=True)
