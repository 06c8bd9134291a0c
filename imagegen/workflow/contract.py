"""`imagegen contract` prints what a launch has to give an image."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from imagegen.engine.client import connect
from imagegen.errors import EngineError, NothingSelectedError
from imagegen.renderer.image_json import contract
from imagegen.validation.in_container import contract_of as contract_in
from imagegen.workflow.image_name import image_of
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.model.launch import Contract


def show_contract(name: str, overlay: Path | None, console: Console) -> None:
    """Show the contract of a cell, or that in the label of an image on the engine."""
    image, found = contract_of(name, overlay)
    console.data({"image": image, "contract": found})
    console.line(image)
    for key, value in lines_of(found):
        console.line(f"  {key:<10} {value}")


def contract_of(name: str, overlay: Path | None) -> tuple[str, Contract]:
    """Find the contract of a cell without an engine, else of an image on the engine.

    Raises NothingSelectedError; EngineError; ConfigError for a label that is no contract.
    """
    if ":" in name:
        with suppress(EngineError, NothingSelectedError):
            return name, _labelled(name, overlay)
    try:
        project = Project(overlay)
        _, spec = project.cell(name)
    except NothingSelectedError as error:
        if any(" means " in problem.text for problem in error.problems):
            raise
        return name, _labelled(name, overlay)
    return spec.tag, contract(spec, project.catalog)


def _labelled(name: str, overlay: Path | None) -> Contract:
    """Read the contract in the label of an image on the engine."""
    return contract_in(name, image_of(connect(), name, overlay).labels)


def lines_of(found: Contract) -> Iterator[tuple[str, str]]:
    """Write each part of a contract as a user gives it."""
    if "driver" in found:
        yield "driver", f"{found['driver']} on the host"
    for key, values in (("devices", found.get("devices")), ("caps", found.get("caps"))):
        if values:
            yield key, " ".join(values)
    for name, limit in found.get("ulimits", {}).items():
        yield name, "unlimited" if limit == -1 else f"{limit} bytes"
    if found.get("shm_bytes"):
        yield "shm", f"{found['shm_bytes'] / 1024**3:g} GiB"
    if found.get("privileged"):
        yield "privileged", "yes"
    if pages := found.get("hugepages"):
        text = f"{pages['per_gpu']} x GPUs + {pages['more']} pages of {pages['size']} on the host"
        yield "hugepages", text
    for one in found.get("mounts", ()):
        yield "mount", f"{one['host']} of the host at {one['path']}"
    for name, value in found.get("env", {}).items():
        yield "env", f"{name}={value}"
    if "user" in found:
        yield "user", str(found["user"])
    yield "network", found.get("network", "bridge")
