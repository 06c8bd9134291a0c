"""Read mirrors.yaml, and replace addresses by those of a closed network's mirrors."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast
from urllib.parse import urlsplit, urlunsplit

from imagegen.config.document import Document, dotted
from imagegen.config.payload import Payload, shown
from imagegen.config.schema_check import Schema, check_schema
from imagegen.config.yamlfile import load
from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "mirrors.yaml"

_ADDRESS = {
    "type": "string",
    "pattern": r"^(https?://[^\s/?#]+(/[^\s?#]*)?|file:///[^\s?#]*)$",
    "description": "an address such as `https://host/folder/`",
}
SCHEMA: Schema = {
    "type": "object",
    "required": ["mirrors"],
    "properties": {
        "mirrors": {
            "type": "object",
            "propertyNames": _ADDRESS,
            "additionalProperties": _ADDRESS,
        }
    },
    "additionalProperties": False,
}


class MirrorsData(TypedDict):
    """The data of mirrors.yaml, after the schema has accepted it."""

    mirrors: Mapping[str, str]


def read_mirrors(payload: Payload) -> Mapping[str, str]:
    """Read the map of upstream prefixes to mirror prefixes from the first root that has one.

    The map is empty where no root has a mirrors.yaml. Raises ConfigError with every problem of the
    file.
    """
    path = payload.find(FILE)
    if path is None:
        return {}
    document = load(path, shown(path))
    problems = check_schema(document, SCHEMA)
    mirrors = cast("Document[MirrorsData]", document)
    problems = problems or _repeated(mirrors)
    if problems:
        raise ConfigError(*problems)
    return mirrors.data["mirrors"]


def rewrite(url: str, mirrors: Mapping[str, str]) -> str:
    """Replace the longest prefix of an address that has a mirror.

    A prefix must end at a `/`, a `?` or the end of the address. The address stays as it is where no
    prefix fits. The address of a mirror is not rewritten again.
    """
    wanted = _lowered(url)
    prefixes = {_lowered(prefix).rstrip("/"): mirror for prefix, mirror in mirrors.items()}
    fitting = [prefix for prefix in prefixes if _leads_to(prefix, wanted)]
    if not fitting:
        return url
    longest = max(fitting, key=len)
    return prefixes[longest].rstrip("/") + wanted[len(longest) :]


def rewrite_image(image: str, mirrors: Mapping[str, str]) -> str:
    """Replace a reference of Docker Hub by a mirror's, by a prefix such as `https://docker.io/`.

    The reference stays as it is where no prefix fits.
    """
    path = image if "/" in image else f"library/{image}"
    upstream = f"https://docker.io/{path}"
    found = rewrite(upstream, mirrors)
    return image if found == upstream else found.partition("://")[2]


def _lowered(address: str) -> str:
    """Write scheme and host in lower case, as their case has no meaning."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(scheme=parts.scheme.lower(), netloc=parts.netloc.lower()))


def _leads_to(prefix: str, url: str) -> bool:
    return url.startswith(prefix) and url[len(prefix) :][:1] in ("", "/", "?")


def _repeated(document: Document[MirrorsData]) -> tuple[Problem, ...]:
    """Report prefixes that mean the same address: which one wins would depend on their order."""
    first: dict[str, str] = {}
    problems = []
    for prefix in document.data["mirrors"]:
        known = first.setdefault(_lowered(prefix).rstrip("/"), prefix)
        if known != prefix:
            path = ("mirrors", prefix)
            text = f"means the same as `{known}`"
            where = (document.file, document.line(path), dotted(path))
            problems.append(Problem(text, *where, hint="remove one of the two"))
    return tuple(problems)
