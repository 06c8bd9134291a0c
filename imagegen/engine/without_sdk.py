"""Ask the engine which images it has, over a plain socket, for commands that are short.

Loading the SDK takes longer than answering a request. Addresses with TLS or SSH are left to it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import quote

from imagegen.engine import client, plain_http
from imagegen.engine.endpoint import BY_VARIABLE, HINT_VARIABLE, endpoints
from imagegen.engine.images import local_images
from imagegen.engine.images.local_image import LocalImage, inspected, listed
from imagegen.errors import EngineError
from imagegen.events.waiting import PATIENCE_SECONDS, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from imagegen.engine.answers import ImageAnswer, ImageRow

T = TypeVar("T")

SECONDS = PATIENCE_SECONDS
NO_ENGINE = "no container engine answers"


class SilentError(TimeoutError):
    """The engine did not even answer the first and smallest request."""


_NOBODY_THERE = (FileNotFoundError, ConnectionRefusedError, PermissionError)
_NOT_UNDERSTOOD = (OSError, ValueError, TypeError, KeyError, AttributeError)


def image_labels(ref: str, environ: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Read the labels of an image on the engine that `client.connect` would find.

    They are empty where the engine has no such image, and where no engine answers.
    """
    where = os.environ if environ is None else environ
    none: Mapping[str, str] = {}
    found = _asked(where, lambda url: _labels(url, ref), nobody=none)
    return _asked_by_sdk(ref, where) if found is None else found


def labelled_images(
    label: str, refs: Iterable[str], environ: Mapping[str, str] | None = None
) -> tuple[tuple[LocalImage, ...], Mapping[str, LocalImage]] | None:
    """List all images with a label, and map each reference to its image, if there is one.

    Returns None where the SDK has to be used instead: no engine answers on a plain socket, or its
    answer was not understood. Raises EngineError for an engine that hangs.
    """
    where = os.environ if environ is None else environ
    return _asked(where, lambda url: _images(url, label, refs), nobody=None)


def _asked(environ: Mapping[str, str], ask: Callable[[str], T], nobody: T | None) -> T | None:
    """Return the answer of the first engine that listens, or `nobody` where none does.

    None means that the SDK has to be used.
    """
    try:
        places = endpoints(environ)
    except EngineError:
        return None
    for place in places:
        if not place.is_plain:
            return None
        try:
            return ask(place.url)
        except _NOBODY_THERE:
            continue
        except TimeoutError as error:
            told = f"{place.url} ({place.named_by}): {error}"
            if nobody is None and isinstance(error, SilentError):
                hint = HINT_VARIABLE if place.named_by == BY_VARIABLE else client.HINT_FIX
                raise EngineError.of(NO_ENGINE, evidence=[told], hint=hint) from None
            say(told)
            return nobody
        except _NOT_UNDERSTOOD:
            return None
    return nobody


def _labels(url: str, ref: str) -> Mapping[str, str]:
    found = _image(url, _version(url), ref)
    return found.labels if found else {}


def _images(
    url: str, label: str, refs: Iterable[str]
) -> tuple[tuple[LocalImage, ...], Mapping[str, LocalImage]]:
    version = _version(url)
    wanted = quote(json.dumps({"label": [label]}))
    rows = cast("list[ImageRow]", _json(url, f"/v{version}/images/json?filters={wanted}"))
    found = {ref: _image(url, version, ref) for ref in refs}
    return tuple(map(listed, rows)), {ref: image for ref, image in found.items() if image}


def _image(url: str, version: str, ref: str) -> LocalImage | None:
    described = _json(url, f"/v{version}/images/{quote(ref, safe='/:@')}/json")
    return None if described is None else inspected(cast("ImageAnswer", described))


def _version(url: str) -> str:
    """Ask for the newest version of the API that the engine supports."""
    try:
        _, head, _ = plain_http.get(url, "/_ping", SECONDS)
    except TimeoutError:
        raise SilentError(f"no answer for {SECONDS} s") from None
    named = [line.split(b":", 1)[1] for line in head if line.lower().startswith(b"api-version:")]
    return named[0].strip().decode("ascii") if named else ""


def _json(url: str, path: str) -> object:
    """Read an answer of the engine; None where it has no such thing.

    Raises OSError or ValueError.
    """
    status, _, body = plain_http.get(url, path, SECONDS)
    if status not in (200, 404):
        raise ValueError(status)
    answer: object = json.loads(body)
    return answer if status == 200 else None


def _asked_by_sdk(ref: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    try:
        found = local_images.find(client.connect(environ), ref)
    except EngineError:
        return {}
    return found.labels if found else {}
