"""Validate an image that imagegen did not build: bring the checks, and a Python to run them.

The container starts with that Python in place of the image's own program, so an ENTRYPOINT that
ends at once, or a user who may write nowhere, does no harm. Nothing of the image is changed.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.config.payload import expose_validate
from imagegen.engine.containers.containers import LaunchSpec, image_has
from imagegen.errors import ConfigError, EngineError, ValidationError
from imagegen.model.labels import LABEL_CONTRACT, LABEL_RECIPE
from imagegen.model.recipe import OWN_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.engine.client import Engine
    from imagegen.engine.containers.containers import Container

FOLDER = f"{OWN_FOLDER}brought"
LOADER = f"{FOLDER}/libc/ld-linux-x86-64.so.2"
PYTHON = f"{FOLDER}/bin/python"
WAIT = "import time\nwhile True:\n    time.sleep(3600)"
START_SECONDS = 60
SHM_BYTES = 8 << 30
"""Shared memory for an image without a contract: what NCCL and data loaders ask for."""


def is_foreign(engine: Engine, image_id: str, labels: Mapping[str, str], program: str) -> bool:
    """Return whether an image has neither a label of imagegen nor its program."""
    if LABEL_RECIPE in labels or LABEL_CONTRACT in labels:
        return False
    return not image_has(engine, image_id, program)


@contextmanager
def foreign_launch(image_id: str) -> Iterator[LaunchSpec]:
    """Describe a container that has the checks and waits, while the block lasts.

    Raises ConfigError where this installation lacks what the checks import.
    """
    expose_validate()
    try:
        import pytest  # noqa: F401
        import testinfra  # noqa: F401
    except ImportError:
        raise ConfigError.of(
            "the checks for images of other makers need pytest and testinfra",
            hint="`pip install 'imagegen[hosts]'`",
        ) from None
    from validate.outside.bundle import archive

    with tempfile.TemporaryDirectory(prefix="imagegen-checks-") as folder:
        packed = Path(folder, "checks.tar.gz")
        packed.write_bytes(archive(FOLDER, FOLDER.lstrip("/") + "/"))
        waits = (*own_python(), "-I", "-S", "-c", WAIT)
        yield LaunchSpec(
            image=image_id,
            command=waits[1:],
            entrypoint=waits[:1],
            shm_bytes=SHM_BYTES,
            files=str(packed),
        )


def own_python() -> tuple[str, ...]:
    """Return the command of the Python that was brought, with its own C library."""
    return (LOADER, "--library-path", f"{FOLDER}/libc:{FOLDER}/libs", f"{PYTHON}.bin")


def program(container: Container, ref: str) -> tuple[str, ...]:
    """Return the command of the checks in a container.

    They use the C library of the image where their Python starts with it, else their own. Raises
    ValidationError for an image without a shell: most checks ask programs.
    """
    shell = _ended(container, ["/bin/sh", "-c", "exit 0"])
    if shell != 0:
        raise ValidationError.of(
            f"`{ref}` has no shell that runs, so that its programs cannot be asked",
            evidence=[f"/bin/sh ended with exit code {shell}"],
            hint="`imagegen sbom` and `imagegen request --like` read an image from its files",
        )
    tried = "import ctypes, json, struct, select, math"
    if _ended(container, [PYTHON, "-I", "-S", "-c", tried]) != 0:
        container.write_file(f"{FOLDER}/own-libc", b"")
    return (PYTHON, "-I", "-S", "-B", f"{FOLDER}/start.py")


def _ended(container: Container, argv: list[str]) -> int:
    """Return the exit code of a command; 127 where it does not start."""
    try:
        code = container.exec(argv, START_SECONDS).code
    except EngineError:
        if not container.alive():
            raise
        return 127
    return 127 if code is None else code
