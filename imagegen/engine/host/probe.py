"""Check whether an address has a file, without downloading it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit, urlunsplit

from imagegen.engine import sdk
from imagegen.engine.client import reason

if TYPE_CHECKING:
    from collections.abc import Mapping

PROBE_SECONDS = 10.0

PLAIN = {"Accept-Encoding": "identity"}
"""Asks for bytes without compression, because ranges and sizes count those."""

FOR_NOW = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may change in a moment."""

PAGE_TYPES = ("text/html", "application/xhtml+xml", "text/xml", "application/xml")
"""Media types of error pages, some of which come with HTTP 200; no wanted file has one of them."""

_NO_HEAD = (400, 403, 405, 501)
"""Answers to HEAD of servers that would answer GET: signed addresses, small servers."""


@dataclass(frozen=True)
class Probe:
    """Say whether an address has a file, and how that was found out."""

    state: Literal["ok", "missing", "unknown"]
    evidence: str


def probe(url: str, ca_bundle: Path | None = None) -> Probe:
    """Ask for a file without downloading it, over http, https or file.

    It never raises: the state is `unknown` where no answer comes.
    """
    if urlsplit(url).scheme == "file":
        path = path_of(url)
        return Probe("ok", "is there") if path.is_file() else Probe("missing", "no such file")
    try:
        return _judged(*_asked(url, verify(ca_bundle)))
    except sdk.requests.RequestException as error:
        return Probe("unknown", reason(error))


def _asked(url: str, trusted: str | None) -> tuple[int, Mapping[str, str]]:
    answer = sdk.requests.head(
        url, headers=PLAIN, timeout=PROBE_SECONDS, allow_redirects=True, verify=trusted
    )
    if answer.status_code not in _NO_HEAD:
        return answer.status_code, answer.headers
    headers = {**PLAIN, "Range": "bytes=0-0"}
    with sdk.requests.get(
        url, headers=headers, timeout=PROBE_SECONDS, stream=True, verify=trusted
    ) as got:
        return got.status_code, got.headers


def _judged(status: int, headers: Mapping[str, str]) -> Probe:
    if status in (200, 206):
        if media_type(headers) in PAGE_TYPES:
            text = f"answers with a page ({media_type(headers)}), not with the file"
            return Probe("missing", text)
        total = headers.get("Content-Range", "").rpartition("/")[2]
        size = total or headers.get("Content-Length", "")
        return Probe("ok", f"{size} bytes" if size.isdigit() else "answers")
    state: Literal["unknown", "missing"] = "unknown" if status in FOR_NOW else "missing"
    return Probe(state, f"answers with HTTP {status}")


def verify(ca_bundle: Path | None) -> str | None:
    """Return the value of requests' `verify`; None leaves it to the environment.

    The `verify` of a session would not leave it to the environment.
    """
    return str(ca_bundle) if ca_bundle else None


def media_type(headers: Mapping[str, str]) -> str:
    """Return the media type of an answer, without parameters."""
    return headers.get("Content-Type", "").partition(";")[0].strip().lower()


def path_of(url: str) -> Path:
    """Return the path of a `file:` address."""
    return Path(unquote(urlsplit(url).path))


def without_secrets(url: str) -> str:
    """Remove user, password, and a query with a token from an address, so that it may be shown."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=host, query="…" if parts.query else ""))
