"""Write the SBOM of an image as SPDX 2.3 and as CycloneDX 1.6.

The same image gives the same bytes: the times are the image's own, and unique ids are made from its
id. Sources: SPDX 2.3 specification, sections 6, 7 and 11; CycloneDX 1.6 JSON reference; the types
of package URLs in the purl specification.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from packageurl import PackageURL

from imagegen import __version__
from imagegen.model.labels import LABEL_PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from imagegen.engine.images.contents import Package
    from imagegen.engine.images.inventory import Inventory

FORMATS = ("spdx", "cyclonedx")
TITLE = "org.opencontainers.image.title"
UNKNOWN_TIME = "1970-01-01T00:00:00Z"

# Components with such an origin are already listed as packages; the others are added.
_PACKAGED = re.compile(r"(apt|(vendor )?wheel|pip|conda package|python3 of) ")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAMESPACE = uuid.UUID("5a3b0f0e-0b6b-5e39-9d7e-6d5f5e1c8f51")
"""The namespace of the serial numbers. It can be any constant, but it must never change."""


@dataclass(frozen=True)
class Item:
    """Describe one thing in an image; `ref` is unique in its SBOM, `comment` says its origin."""

    ref: str
    name: str
    version: str
    purl: str
    comment: str = ""
    sha256: str = ""


def document(found: Inventory, kind: str) -> bytes:
    """Make the SBOM of an image in one of `FORMATS`, as JSON with the same bytes every time."""
    make = {"spdx": _spdx, "cyclonedx": _cyclonedx}[kind]
    return orjson.dumps(make(found, items(found)), option=orjson.OPT_INDENT_2) + b"\n"


def items(found: Inventory) -> tuple[Item, ...]:
    """List all that is in an image: packages of its databases, then what is in no package."""
    distro = "-".join(filter(None, map(found.contents.os.get, ("ID", "VERSION_ID"))))
    vendor = found.contents.os.get("ID", "debian")
    rows = [_packaged(package, vendor, distro) for package in found.contents.packages]
    return tuple(_unique([*rows, *_loose(found)]))


def _packaged(package: Package, vendor: str, distro: str) -> Item:
    namespace = vendor if package.kind == "deb" else None
    name = package.name
    if package.kind == "pypi":  # purl specification: lower case, dashes for underscores
        name = name.lower().replace("_", "-")
    qualifiers = {"arch": package.arch, "distro": distro, "upstream": _upstream(package)}
    given = {key: value for key, value in qualifiers.items() if value and package.kind == "deb"}
    purl = PackageURL(package.kind, namespace, name, package.version, given)
    where = f"installed in {package.path.rpartition('/')[0]}" if package.path else ""
    ref = _ref(package.kind, package.name, package.version)
    return Item(ref, package.name, package.version, purl.to_string(), where)


def _upstream(package: Package) -> str:
    """Return the source package if its name or version differs from the package's.

    Distributions list security fixes by source package.
    """
    source, _, version = package.source.partition(" ")
    if version and version != package.version:
        return f"{source}@{version}"
    return source if source != package.name else ""


def _loose(found: Inventory) -> Iterable[Item]:
    """List components without a package, and the vendor parts and tarballs of the build."""
    parts = _parts(found.labels)
    for name, one in sorted(found.contents.promise.get("components", {}).items()):
        if not _PACKAGED.match(one["origin"]):
            sha256 = parts.pop(f"{name} {one['version']}", "")
            yield _generic("component", name, one["version"], one["origin"], sha256)
    for named, sha256 in sorted(parts.items()):
        name, _, version = named.partition(" ")
        yield _generic("part", name, version, "a file that the build mounted", sha256)


def _generic(kind: str, name: str, version: str, comment: str, sha256: str) -> Item:
    purl = PackageURL("generic", None, name, version).to_string()
    known = sha256 if _SHA256.fullmatch(sha256) else ""
    return Item(_ref(kind, name, version), name, version, purl, comment, known)


def _parts(labels: Mapping[str, str]) -> dict[str, str]:
    try:
        found = json.loads(labels.get(LABEL_PARTS, "{}"))
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _ref(*words: str) -> str:
    """Make an id of letters that an SPDX identifier may have."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", "-".join(words))


def _unique(rows: Iterable[Item]) -> Iterable[Item]:
    """Make the ids unique, where a package is in two places or two names give the same id."""
    seen = Counter[str]()
    for row in rows:
        seen[row.ref] += 1
        again = f"-{seen[row.ref]}" if seen[row.ref] > 1 else ""
        yield Item(row.ref + again, row.name, row.version, row.purl, row.comment, row.sha256)


def _name_of(found: Inventory) -> str:
    """Return the image's title, because its tags differ from engine to engine; else its id."""
    return found.labels.get(TITLE) or found.id


def _created(found: Inventory) -> str:
    """Return the image's time in the form of both formats: UTC, whole seconds."""
    match = re.match(r"(?!0001)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", found.created)
    return f"{match[0]}Z" if match and found.created.endswith("Z") else UNKNOWN_TIME


def _spdx(found: Inventory, rows: Sequence[Item]) -> dict[str, Any]:
    image: dict[str, Any] = {
        "SPDXID": "SPDXRef-image",
        "name": _name_of(found),
        "versionInfo": found.id,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": "CONTAINER",
    }
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": _name_of(found),
        "documentNamespace": f"urn:imagegen:sbom:{found.id}",
        "creationInfo": {
            "created": _created(found),
            "creators": [f"Tool: imagegen-{__version__}"],
            **({"comment": _gaps(found)} if found.missing else {}),
        },
        "documentDescribes": ["SPDXRef-image"],
        "packages": [image, *map(_spdx_package, rows)],
        "relationships": [
            _related("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image"),
            *(_related("SPDXRef-image", "CONTAINS", f"SPDXRef-{row.ref}") for row in rows),
        ],
    }


def _related(one: str, how: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}


def _spdx_package(row: Item) -> dict[str, Any]:
    made: dict[str, Any] = {
        "SPDXID": f"SPDXRef-{row.ref}",
        "name": row.name,
        "versionInfo": row.version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": row.purl,
            }
        ],
    }
    if row.comment:
        made["comment"] = row.comment
    if row.sha256:
        made["checksums"] = [{"algorithm": "SHA256", "checksumValue": row.sha256}]
    return made


def _cyclonedx(found: Inventory, rows: Sequence[Item]) -> dict[str, Any]:
    image = {"type": "container", "bom-ref": "image", "name": _name_of(found), "version": found.id}
    properties = [{"name": "imagegen:not-read", "value": text} for text in found.missing]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, found.id)}",
        "version": 1,
        "metadata": {
            "timestamp": _created(found),
            "tools": {
                "components": [{"type": "application", "name": "imagegen", "version": __version__}]
            },
            "component": image,
            **({"properties": properties} if properties else {}),
        },
        "components": [_cyclonedx_component(row) for row in rows],
        "dependencies": [{"ref": "image", "dependsOn": [row.ref for row in rows]}],
    }


def _cyclonedx_component(row: Item) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": row.ref,
        "name": row.name,
        "version": row.version,
        "purl": row.purl,
    }
    if row.comment:
        made["description"] = row.comment
    if row.sha256:
        made["hashes"] = [{"alg": "SHA-256", "content": row.sha256}]
    return made


def _gaps(found: Inventory) -> str:
    return "not read: " + "; ".join(found.missing)
