"""Make a digest of all that a validation depends on beside the image.

Two runs with equal digests have equal results. The digest covers

- the tool's own code that launches and judges: `validation` and every module that it imports. The
  checks themselves, and all that they import, are in the image, whose id stands for their bytes;
- the options of the run, except `--only`: tier, profile, what is required;
- how the container is launched: capabilities, devices, limits, shared memory;
- the host's facts, which `engine.surroundings` lists.
"""

from __future__ import annotations

import ast
import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.config.payload import expose_validate
from imagegen.engine.containers.surroundings import surroundings
from imagegen.validation.foreign import is_foreign
from imagegen.validation.in_container import PROGRAM, contract_of, launch_spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.engine.client import Engine
    from imagegen.engine.images.local_image import LocalImage
    from imagegen.validation.in_container import ValidationRequest

ALWAYS_RUN = {"--benchmark", "--loopback", "--ranks", "benchmark"}
"""Options, and a suite, that the user gives to run a test now, not to read an earlier result."""


def basis_of(engine: Engine, image: LocalImage, ref: str, request: ValidationRequest) -> str:
    """Make the digest of a run; equal digests mean that two runs of one image cannot differ.

    It is empty for a run that always takes place. Raises EngineError, and ValidationError for an
    unreadable contract.
    """
    options, only = options_of(request), only_of(request)
    if ALWAYS_RUN & {*options, *only} or (only and "--require" in options) or _counts(options):
        return ""
    host = surroundings(engine)
    # The checks that are brought into an image of another maker are not in its bytes.
    if host is None or request.expect or is_foreign(engine, image.id, image.labels, PROGRAM):
        return ""
    launch = asdict(launch_spec(image.id, contract_of(ref, image.labels)))
    run = {"static": request.static, "layers": request.look_into_layers, "options": options}
    basis = {"code": code_digest(), "host": host, "launch": launch, "run": run}
    return hashlib.sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()


def _counts(options: Sequence[str]) -> bool:
    """Return whether a number of devices is required (`gpu=8`).

    A run of only some suites would not check that number.
    """
    return "--require" in options and "=" in options[options.index("--require") + 1]


@cache
def code_digest() -> str:
    """Make a digest of the files of `in_container` and of all imagegen modules that it imports."""
    package, found = Path(__file__).parents[1], dict[str, bytes]()
    waiting = ["imagegen.validation.in_container"]
    while waiting:
        name = waiting.pop()
        path = package.joinpath(*name.split(".")[1:]).with_suffix(".py")
        if name.startswith("imagegen.") and name not in found and path.is_file():
            found[name] = path.read_bytes()
            waiting += _imports(found[name])
    sums = {name: hashlib.sha256(text).hexdigest() for name, text in found.items()}
    return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()


def _imports(source: bytes) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def only_of(request: ValidationRequest) -> list[str]:
    """List the suites that were asked for, by their own names; empty where all are."""
    expose_validate()
    from validate.catalogue import ALIASES

    value = dict(zip(request.arguments, request.arguments[1:], strict=False)).get("--only", "")
    names = [name.strip() for name in value.split(",") if name.strip()]
    return list(dict.fromkeys(ALIASES.get(name, name) for name in names))


def options_of(request: ValidationRequest) -> list[str]:
    """Return the arguments without `--only` and its value."""
    given = list(request.arguments)
    if "--only" in given:
        at = given.index("--only")
        del given[at : at + 2]
    return given
