"""Read and write proofs: which images were built and validated, with which result.

A file `proofs/MATRIX.yaml` has the proofs of one matrix. It is written by `imagegen nightly` and
`imagegen validate --prove`, and reviewed like code.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, cast

from imagegen.config import schemas
from imagegen.config.files import write_whole
from imagegen.config.patterns import properties_of
from imagegen.config.payload import PROOFS_FOLDER, shown
from imagegen.config.schema_check import check_schema
from imagegen.config.yamlfile import load
from imagegen.errors import ConfigError, Problem
from imagegen.model.validation import Proof

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from imagegen.catalog.data import ProofData
    from imagegen.config.payload import Payload
    from imagegen.config.schema_check import Schema

_TEXT = properties_of(schemas.RELEASE)["origin"]
_TEXTS: Schema = {"type": "array", "items": _TEXT}
ENTRY: Schema = {
    "type": "object",
    "required": ["cell", "at", "tier", "passed", "image", "recipe", "tool", "pins", "suites"],
    "properties": {
        **dict.fromkeys(("cell", "at", "tier", "image", "tool"), _TEXT),
        "recipe": {"type": "string"},
        "passed": {"type": "boolean"},
        "pins": {"type": "object", "additionalProperties": _TEXT},
        "suites": _TEXTS,
        "failed": _TEXTS,
    },
    "additionalProperties": False,
}
SCHEMA: Schema = {
    "type": "object",
    "required": ["proofs"],
    "properties": {"proofs": {"type": "array", "items": ENTRY}},
    "additionalProperties": False,
}
"""The schema of a file of `proofs`."""

HEAD = """\
# Images that were built and validated: `imagegen nightly` and `imagegen validate --prove` write it.
# A later result of the same pins, tier and outcome takes the place of an earlier one.
"""


def read_proofs(payload: Payload, problems: list[Problem]) -> tuple[Proof, ...]:
    """Read the proofs of all matrices; what is wrong in the files is added to the problems."""
    found: list[Proof] = []
    for file in payload.names(PROOFS_FOLDER):
        path = payload.find(f"{PROOFS_FOLDER}/{file}")
        if path is not None and file.endswith(".yaml"):
            found += _read(path, file.removesuffix(".yaml"), problems)
    return tuple(found)


def _read(path: Path, matrix: str, problems: list[Problem]) -> list[Proof]:
    try:
        document = load(path, shown(path))
    except ConfigError as error:
        problems += error.problems
        return []
    wrong = check_schema(document, SCHEMA)
    problems += wrong
    rows = [] if wrong else cast("list[ProofData]", document.data["proofs"])
    return [
        Proof(
            matrix=matrix,
            cell=row["cell"],
            at=row["at"],
            tier=row["tier"],
            passed=row["passed"],
            image=row["image"],
            recipe=row["recipe"],
            tool=row["tool"],
            pins=row["pins"],
            suites=tuple(row["suites"]),
            failed=tuple(row.get("failed", ())),
        )
        for row in rows
    ]


def add_proofs(payload: Payload, root: Path, new: Iterable[Proof]) -> list[Path]:
    """Add proofs to the files of their matrices below a folder; return the files.

    What is there already comes from the first root that has the file. Raises ConfigError where a
    file is wrong or cannot be written.
    """
    by_matrix: dict[str, list[Proof]] = {}
    for proof in new:
        by_matrix.setdefault(proof.matrix, []).append(proof)
    return [_add(payload, root, matrix, proofs) for matrix, proofs in sorted(by_matrix.items())]


def _add(payload: Payload, root: Path, matrix: str, new: Iterable[Proof]) -> Path:
    name = f"{PROOFS_FOLDER}/{matrix}.yaml"
    problems: list[Problem] = []
    before = payload.find(name)
    old = _read(before, matrix, problems) if before else []
    if problems:
        raise ConfigError(*problems)
    kept = {proof.key: proof for proof in (*old, *new)}
    write_whole(root / name, as_yaml(kept.values()).encode())
    return root / name


def as_yaml(proofs: Iterable[Proof]) -> str:
    """Write proofs as a file, sorted by cell and result."""
    import yaml

    rows = []
    for proof in sorted(proofs, key=lambda one: (one.cell, one.key)):
        row = {name: value for name, value in asdict(replace(proof)).items() if name != "matrix"}
        row["suites"], row["failed"] = list(proof.suites), list(proof.failed)
        row["pins"] = dict(sorted(proof.pins.items()))
        rows.append(row)
    return HEAD + yaml.safe_dump({"proofs": rows}, sort_keys=False, width=120)
