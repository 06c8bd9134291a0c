"""Download files into a cache under their sha256, so that a file is either complete or absent.

A file is written to `<sha256>.part`, measured, and only then gets its name. One process at a time
downloads a file; another one waits and finds it there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import tenacity

from imagegen.engine import sdk
from imagegen.engine.client import reason
from imagegen.engine.host.file_lock import one_at_a_time
from imagegen.engine.host.probe import (
    FOR_NOW,
    PAGE_TYPES,
    PLAIN,
    media_type,
    path_of,
    verify,
    without_secrets,
)
from imagegen.errors import BuildError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import requests

ATTEMPTS = 5
"""Attempts in a row that bring nothing new; an attempt that brought bytes resets the count."""

TIMEOUT_SECONDS = (10.0, 60.0)
"""Seconds to connect, and seconds without a byte."""

CHUNK_BYTES = 1 << 20

_WAIT: tenacity.wait.wait_base = tenacity.wait_random_exponential(multiplier=0.5, max=20)
_HINT = "check the address, the connection and mirrors.yaml, then run it again: it resumes"
_PAGE_START = re.compile(rb"\s*<(!doctype|html|\?xml)", re.IGNORECASE)


@dataclass(frozen=True)
class Download:
    """Name a file to download: its address and what it has to be.

    `size_bytes` is 0 where it is unknown. `upstream` is the address without a mirror, for messages.
    """

    url: str
    sha256: str
    size_bytes: int = 0
    upstream: str = ""

    def __str__(self) -> str:
        asked = f"`{without_secrets(self.url)}`"
        if self.upstream in ("", self.url):
            return asked
        return f"`{without_secrets(self.upstream)}` (mirror {asked})"


class _Interruption(Exception):
    """Report a transfer that was cut short or refused for now; another attempt may succeed."""


class _Refused(Exception):
    """Report an answer that another attempt would get again."""


def fetch(
    download: Download,
    cache: Path,
    ca_bundle: Path | None = None,
    on_line: Callable[[str], None] = lambda _: None,
) -> Path:
    """Return the file's path in the folder `cache`, under its sha256; download it if needed.

    Addresses are http, https or file. Raises ConfigError where the address has another file than
    expected, and BuildError where it cannot be downloaded or stored.
    """
    target = cache / download.sha256
    with _alone(download, target):
        if not (target.is_file() and sha256_of(target) == download.sha256):
            on_line(f"downloading {download}")
            _bring(_Part(download, Path(f"{target}.part"), ca_bundle, on_line), target)
    return target


def fetch_unverified(
    download: Download,
    cache: Path,
    ca_bundle: Path | None = None,
    on_line: Callable[[str], None] = lambda _: None,
) -> Path:
    """Return a file whose sha256 is unknown, in `cache` under a name made from its address.

    A file that is there already is used. Raises BuildError where it cannot be downloaded or stored.
    """
    target = cache / f"unverified-{hashlib.sha256(download.url.encode()).hexdigest()}"
    with _alone(download, target):
        if not target.is_file():
            on_line(f"downloading {download}, which nothing vouches for")
            part = _Part(download, Path(f"{target}.part"), ca_bundle, on_line)
            # Without a sha256, a mixture of two files would not be noticed.
            part.path.unlink(missing_ok=True)
            part.transfer()
            part.path.replace(target)
    return target


@contextmanager
def _alone(download: Download, target: Path) -> Iterator[None]:
    """Lock the target while it is downloaded, and turn errors into messages for the user."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(Path(f"{target}.lock")):
            yield
    except sdk.transport_errors(_Refused, _Interruption) as error:
        why = str(error) if isinstance(error, (_Refused, _Interruption)) else reason(error)
        text = f"{download} cannot be downloaded"
        raise BuildError.of(text, evidence=[why], hint=_HINT) from error
    except OSError as error:
        text = f"{download} cannot be kept in `{target.parent}`"
        raise BuildError.of(text, evidence=[error.strerror or str(error)]) from error


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal digits. Raises OSError."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            total.update(chunk)
    return total.hexdigest()


@dataclass
class _Part:
    """Download one file, over any number of attempts and runs."""

    download: Download
    path: Path
    ca_bundle: Path | None
    on_line: Callable[[str], None]
    resumed: bool = False

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def transfer(self) -> None:
        """Try again until the file is complete, as long as attempts bring something."""
        stalled = _Stalled(self)
        for attempt in tenacity.Retrying(
            retry=tenacity.retry_if_exception(_may_pass),
            stop=stalled,
            wait=_WAIT,
            before_sleep=stalled.tell,
            reraise=True,
        ):
            with attempt:
                self._attempt()

    def _attempt(self) -> None:
        if urlsplit(self.download.url).scheme == "file":
            self._copy()
            return
        have = self.size
        answer = sdk.requests.get(
            self.download.url,
            headers={**PLAIN, **({"Range": f"bytes={have}-"} if have else {})},
            stream=True,
            timeout=TIMEOUT_SECONDS,
            verify=verify(self.ca_bundle),
        )
        with answer:
            if answer.status_code == 416 and have:
                self._past_the_end(answer.headers.get("Content-Range", ""))
            else:
                self._take(answer, have)

    def _copy(self) -> None:
        source = path_of(self.download.url)
        if not source.is_file():
            msg = f"there is no file `{source}`"
            raise _Refused(msg)
        shutil.copyfile(source, self.path)

    def _past_the_end(self, content_range: str) -> None:
        """Handle "range not satisfiable": the part is complete, or it is of another file."""
        self.resumed = True
        if content_range != f"bytes */{self.size}":
            self.path.unlink()
            msg = "what was there is longer than the file"
            raise _Interruption(msg)

    def _take(self, answer: requests.Response, have: int) -> None:
        _check_answer(answer)
        started_at = f"bytes {have}-"
        goes_on = answer.status_code == 206 and _range(answer.headers).startswith(started_at)
        if answer.status_code == 206 and not goes_on:
            self.path.unlink()
            msg = f"asked from byte {have}, got `{_range(answer.headers)}`"
            raise _Interruption(msg)
        self.resumed = self.resumed or goes_on
        try:
            with self.path.open("ab" if goes_on else "wb") as file:
                # Undecoded, because some servers declare a .gz file to be a text that they
                # compressed.
                for chunk in answer.raw.stream(CHUNK_BYTES, decode_content=False):
                    file.write(chunk)
        except sdk.urllib3.exceptions.ProtocolError as error:
            msg = f"the connection ended after {self.size} bytes"
            raise _Interruption(msg) from error


class _Stalled:
    """Stop attempts that bring nothing new."""

    def __init__(self, part: _Part) -> None:
        self._part, self._most, self._attempts = part, part.size, 0

    def __call__(self, state: tenacity.RetryCallState) -> bool:
        del state
        if self._part.size > self._most:
            self._most, self._attempts = self._part.size, 0
        self._attempts += 1
        return self._attempts >= ATTEMPTS

    def tell(self, state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if error is not None:
            self._part.on_line(f"{self._part.download}: {reason(error)}; once more")


def _bring(part: _Part, target: Path) -> None:
    part.transfer()
    if part.resumed and sha256_of(part.path) != part.download.sha256:
        # The file on the server changed between the runs, so the part is a mixture of two files.
        part.path.unlink()
        part.transfer()
    problem = _not_wanted(part.download, part.path)
    if problem:
        part.path.unlink()
        text = f"{part.download} is not the file that is wanted"
        hint = "correct the address, or the sha256 if the file was meant to change"
        raise ConfigError.of(text, evidence=problem, hint=hint)
    with part.path.open("rb") as file:
        os.fsync(file.fileno())
    part.path.replace(target)


def _not_wanted(download: Download, path: Path) -> list[str]:
    """List how a complete file differs from the expected one; empty where it does not."""
    size, found = path.stat().st_size, sha256_of(path)
    if found == download.sha256:
        return []
    evidence = [f"sha256 is {found}, wanted {download.sha256}"]
    if download.size_bytes not in (0, size):
        evidence.append(f"it has {size} bytes, wanted {download.size_bytes}")
    with path.open("rb") as file:
        if _PAGE_START.match(file.read(512)):
            evidence.append("it is a page of HTML or XML, such as servers send for an error")
    return evidence


def _check_answer(answer: requests.Response) -> None:
    status = f"answers with HTTP {answer.status_code} {answer.reason or ''}".rstrip()
    if answer.status_code in FOR_NOW:
        raise _Interruption(status)
    if answer.status_code not in (200, 206):
        raise _Refused(status)
    if media_type(answer.headers) in PAGE_TYPES:
        msg = f"answers with a page ({media_type(answer.headers)}), not with the file"
        raise _Refused(msg)


def _may_pass(error: BaseException) -> bool:
    """Return whether another attempt may succeed; a wrong address or certificate stays wrong."""
    lasting = (sdk.requests.exceptions.SSLError, sdk.requests.TooManyRedirects, ValueError)
    passing = sdk.transport_errors(_Interruption)
    return isinstance(error, passing) and not isinstance(error, lasting)


def _range(headers: Mapping[str, str]) -> str:
    return headers.get("Content-Range", "")
