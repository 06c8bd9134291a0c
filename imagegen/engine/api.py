"""Make clients of the SDK that say it when an engine is slow, and refuse answers of a wrong shape.

A client is needed only for what `without_sdk` cannot do, because loading the SDK takes 100 ms.
"""

from __future__ import annotations

import re
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from imagegen.engine import sdk
from imagegen.engine.answers import misfit
from imagegen.events.waiting import waiting_for

if TYPE_CHECKING:
    import docker
    import requests

    from imagegen.engine.endpoint import Endpoint

_VERSION = re.compile(r"^/v[0-9.]+(?=/)")
_BUILD = ("POST", "/build")
"""A build answers when its context is sent; what it does then is shown as it goes."""


def make_client(endpoint: Endpoint, timeout: float, version: str) -> docker.APIClient:
    """Make a client for an address; it fails after `timeout` seconds in which no byte comes."""
    made: docker.APIClient = _client_class()(
        base_url=endpoint.url,
        version=version,
        timeout=timeout,
        tls=endpoint.tls,
        use_ssh_client=endpoint.url.startswith("ssh://"),
    )
    return made


@cache
def _client_class() -> Any:
    """Define the class when it is first needed: the SDK is loaded then."""

    class Client(sdk.docker.APIClient):
        def send(self, request: requests.PreparedRequest, **how: Any) -> requests.Response:
            method, path = _called(request)
            silent = (method, path) == _BUILD
            limit = _seconds(how.get("timeout"))
            with (
                nullcontext()
                if silent
                else waiting_for(f"the engine to answer {method} {path}", limit)
            ):
                return super().send(request, **how)

        def _result(
            self, response: requests.Response, json: bool = False, binary: bool = False
        ) -> Any:
            answer = super()._result(response, json, binary)  # type: ignore[misc]
            return checked(response, answer) if json else answer

    return Client


def checked(response: requests.Response, answer: object) -> object:
    """Return an answer of the shape that its path has.

    Raises DockerException for another one.
    """
    method, path = _called(response.request)
    if why := misfit(method, path, answer):
        text = f"it answers {method} {path} as no container engine does: {why}"
        raise sdk.errors.DockerException(text)
    return answer


def _called(request: requests.PreparedRequest) -> tuple[str, str]:
    """Return the method and the path of a request, without the version of the API."""
    return request.method or "", _VERSION.sub("", urlsplit(request.url or "").path)


def _seconds(timeout: object) -> float | None:
    last = timeout[-1] if isinstance(timeout, tuple) else timeout
    return float(last) if isinstance(last, (int, float)) else None
