"""Find the addresses where an engine may listen.

It is the one place that the user named; otherwise the sockets of this system. The SDK is loaded
only to read a docker context or TLS files, because loading it takes 100 ms.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.engine import sdk
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docker.tls import TLSConfig

SYSTEM_SOCKET = "/var/run/docker.sock"
BY_SYSTEM = "the system socket"

_DEFAULT_CONTEXT = "default"


@dataclass(frozen=True)
class Endpoint:
    """Hold an address where an engine may answer, and what named it."""

    url: str
    named_by: str
    tls: TLSConfig | bool = False

    @property
    def is_plain(self) -> bool:
        """Return whether a socket can connect to it, without TLS or SSH."""
        return not self.tls and self.url.startswith(("unix://", "tcp://"))


BY_VARIABLE = "DOCKER_HOST"
HINT_VARIABLE = "correct DOCKER_HOST, or unset it to use the engine of this machine"


def endpoints(environ: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """List the addresses to try, in order; only one if the user named it.

    Raises EngineError for a docker context or TLS files that cannot be read.
    """
    host = environ.get("DOCKER_HOST")
    if host:
        return (Endpoint(host, BY_VARIABLE, _tls(environ)),)
    context = _context_name(environ)
    if context != _DEFAULT_CONTEXT:
        return (_of_context(context),)
    runtime_dir = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    rootless = Path(runtime_dir, "docker.sock")
    found = [Endpoint(f"unix://{SYSTEM_SOCKET}", BY_SYSTEM)]
    if rootless.exists():
        found.append(Endpoint(f"unix://{rootless}", "the rootless socket"))
    return tuple(found)


def _tls(environ: Mapping[str, str]) -> TLSConfig | bool:
    """Read the TLS files that belong to DOCKER_HOST; False where the environment asks for none."""
    if not environ.get("DOCKER_TLS_VERIFY") and not environ.get("DOCKER_CERT_PATH"):
        return False
    try:
        return sdk.utils.kwargs_from_env(dict(environ)).get("tls") or False
    except sdk.errors.DockerException as error:
        text = "the TLS files of DOCKER_HOST cannot be read"
        hint = "set DOCKER_CERT_PATH to the folder of cert.pem, key.pem and ca.pem"
        raise EngineError.of(text, evidence=[str(error)], hint=hint) from error


def _context_name(environ: Mapping[str, str]) -> str:
    """Return the name of the docker context in use.

    It is the default one where the settings cannot be read, as in the SDK.
    """
    if environ.get("DOCKER_CONTEXT"):
        return environ["DOCKER_CONTEXT"]
    folder = Path(environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    try:
        settings = json.loads((folder / "config.json").read_bytes())
        return str(settings.get("currentContext") or _DEFAULT_CONTEXT)
    except (OSError, ValueError, AttributeError):
        return _DEFAULT_CONTEXT


def _of_context(name: str) -> Endpoint:
    try:
        context = sdk.context.ContextAPI.get_context(name)
    except (sdk.errors.DockerException, OSError, ValueError) as error:
        text = "the current docker context cannot be read"
        raise EngineError.of(text, evidence=[str(error)], hint="docker context ls") from error
    if context is None or context.Host is None:
        text = f"there is no docker context `{name}`"
        raise EngineError.of(text, hint="docker context ls")
    return Endpoint(context.Host, f"context {context.name}", context.TLSConfig or False)
