"""Read and write manifests in a registry, by tag or digest, with the OCI distribution protocol."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from imagegen.engine import sdk
from imagegen.engine.client import Engine, engine_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    import requests

    from imagegen.engine.answers import InfoAnswer

TIMEOUT_SECONDS = (10, 60)

MANIFEST_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)


class Refused(Exception):
    """Report that the registry answered with an error."""


@dataclass(frozen=True)
class RemoteReference:
    """Hold the parts of a reference, and how its registry is reached."""

    host: str
    repository: str
    reference: str
    plain_http: bool

    @property
    def base(self) -> str:
        """Return the URL under which the registry has the repository."""
        return f"{'http' if self.plain_http else 'https'}://{self.host}/v2/{self.repository}"


def remote_reference(ref: str, engine: Engine | None = None) -> RemoteReference:
    """Parse `host/name`, `host/name:tag` or `host/name@digest`.

    Loopback hosts, and those that `engine` lists as insecure, are reached over plain HTTP.
    """
    name, _, digest = ref.partition("@")
    host, path = sdk.auth.split_repo_name(name)
    repository, _, tag = path.partition(":")
    plain = _is_loopback(host) or (engine is not None and _is_insecure(engine, host))
    if host == sdk.auth.INDEX_NAME:
        # The default registry: the host of its protocol is that of the SDK's index address.
        host = str(urlsplit(sdk.auth.INDEX_URL).hostname)
        repository = repository if "/" in repository else f"library/{repository}"
    return RemoteReference(host, repository, digest or tag or "latest", plain)


def _hostname(host: str) -> str:
    return urlsplit(f"//{host}").hostname or host


def _is_loopback(host: str) -> bool:
    name = _hostname(host)
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _is_insecure(engine: Engine, host: str) -> bool:
    """Return whether the engine's own configuration lists the host as insecure."""
    with engine_errors("ask the engine for its registries"):
        info = cast("InfoAnswer", engine.api.info())
    registries = info.get("RegistryConfig") or {}
    named = (registries.get("IndexConfigs") or {}).get(host)
    if named is not None:
        return not named.get("Secure", True)
    try:
        address = ipaddress.ip_address(_hostname(host))
    except ValueError:
        return False
    nets = registries.get("InsecureRegistryCIDRs") or ()
    return any(address in ipaddress.ip_network(net) for net in nets)


@dataclass
class Session:
    """Send requests to one repository, with a token where the registry asks for one."""

    target: RemoteReference
    http: requests.Session = field(default_factory=lambda: sdk.requests.Session())

    def __post_init__(self) -> None:
        # Proxies of the environment are not for a registry on this machine.
        self.http.trust_env = not _is_loopback(self.target.host)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def digest(self, reference: str) -> str | None:
        """Return the digest of a manifest; None where there is none."""
        answer = self._call("HEAD", reference, {"Accept": ", ".join(MANIFEST_TYPES)})
        return None if answer.status_code == 404 else _digest(answer)

    def manifest(self, reference: str) -> tuple[str, bytes]:
        """Return media type and bytes of a manifest. Raises Refused where there is none."""
        answer = self._call("GET", reference, {"Accept": ", ".join(MANIFEST_TYPES)})
        if answer.status_code == 404:
            msg = f"{reference} is not in {self.target.host}/{self.target.repository}"
            raise Refused(msg)
        return answer.headers["Content-Type"], answer.content

    def labels(self, reference: str) -> dict[str, str]:
        """Return the labels of an image, without reading a layer; empty where it does not exist.

        Of an image for several platforms, they are the labels of the first.
        """
        if self.digest(reference) is None:
            return {}
        manifest = json.loads(self.manifest(reference)[1])
        while "manifests" in manifest:
            manifest = json.loads(self.manifest(manifest["manifests"][0]["digest"])[1])
        answer = self._call("GET", manifest["config"]["digest"], {}, kind="blobs")
        return dict((answer.json().get("config") or {}).get("Labels") or {})

    def put_manifest(self, reference: str, kind: str, manifest: bytes) -> str:
        """Store a manifest under a tag or digest; return the digest that the registry gives it."""
        return _digest(self._call("PUT", reference, {"Content-Type": kind}, manifest))

    def _call(
        self,
        method: str,
        reference: str,
        headers: Mapping[str, str],
        data: bytes | None = None,
        kind: str = "manifests",
    ) -> requests.Response:
        url = f"{self.target.base}/{kind}/{reference}"
        answer = self._send(method, url, headers, data)
        if answer.status_code == 401 and self._authorize(answer, push=method == "PUT"):
            answer = self._send(method, url, headers, data)
        if not answer.ok and answer.status_code != 404:
            msg = f"{answer.status_code} {answer.reason}: {answer.text[:300].strip()}".strip()
            raise Refused(msg)
        return answer

    def _send(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None
    ) -> requests.Response:
        return self.http.request(
            method, url, headers=dict(headers), data=data, timeout=TIMEOUT_SECONDS
        )

    def _authorize(self, answer: requests.Response, push: bool) -> bool:
        """Answer a challenge of RFC 7235; return whether another attempt makes sense."""
        kind, _, rest = answer.headers.get("WWW-Authenticate", "").partition(" ")
        login = _login(self.target.host)
        if kind.lower() == "basic":
            self.http.auth = login
            return login is not None
        if kind.lower() != "bearer":
            return False
        challenge = sdk.requests.utils.parse_dict_header(rest)  # type: ignore[no-untyped-call]
        self.http.headers["Authorization"] = f"Bearer {self._token(challenge, login, push)}"
        return True

    def _token(
        self, challenge: Mapping[str, str], login: tuple[str, str] | None, push: bool
    ) -> str:
        """Get a token. Source: distribution's token authentication specification."""
        scope = f"repository:{self.target.repository}:{'pull,push' if push else 'pull'}"
        answer = self.http.get(
            challenge["realm"],
            params={"service": challenge.get("service", ""), "scope": scope},
            auth=login,
            timeout=TIMEOUT_SECONDS,
        )
        if not answer.ok:
            msg = f"{answer.status_code} {answer.reason}: no token from {challenge['realm']}"
            raise Refused(msg)
        granted: Mapping[str, str] = answer.json()
        return granted.get("token") or granted.get("access_token", "")


def _login(host: str) -> tuple[str, str] | None:
    """Find user and password that `docker login` keeps for a registry.

    Credential helpers are asked too.
    """
    is_default = host == urlsplit(sdk.auth.INDEX_URL).hostname
    found = sdk.auth.resolve_authconfig(sdk.auth.load_config(), None if is_default else host)
    if not found or not found.get("username", found.get("Username")):
        return None
    user = found.get("username", found.get("Username"))
    return str(user), str(found.get("password", found.get("Password", "")))


def _digest(answer: requests.Response) -> str:
    digest = answer.headers.get("Docker-Content-Digest", "")
    if not digest:
        msg = "the registry's answer names no digest"
        raise Refused(msg)
    return digest
