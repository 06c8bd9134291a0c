"""Load the Docker SDK and its HTTP libraries when one of them is first used.

Loading takes 100 ms, longer than most commands run, and many commands need no engine. So the
modules of this room write `sdk.errors.NotFound` or `sdk.requests.get`, and do not import these
libraries.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import docker.utils.json_stream
    import requests
    import urllib3
    from docker import auth, context, errors, types, utils

__all__ = [
    "auth",
    "context",
    "docker",
    "errors",
    "requests",
    "transport_errors",
    "types",
    "urllib3",
    "utils",
]

_OUTSIDE = ("docker", "requests", "urllib3")


def transport_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """List the errors of a connection to an engine, a registry or a server, and `others`."""
    return (
        *others,
        _loaded("requests").RequestException,
        _loaded("urllib3").exceptions.HTTPError,
        _loaded("errors").DockerException,
        ConnectionError,
        TimeoutError,
    )


def _loaded(name: str) -> Any:
    return importlib.import_module(name if name in _OUTSIDE else f"docker.{name}")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(name)
        return _loaded(name)
