"""Define a recipe: the Dockerfile, its context files, and where each step comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.model.image import ImageSpec
    from imagegen.model.launch import Contract

EXPECTATION_PATH = "/etc/imagegen/image.json"
"""The file in an image that says what the resolver promised about it."""

OWN_FOLDER = "/opt/imagegen/"
"""The folder of `validate` and its Python environment in images."""

BENCHMARK_PATH = f"{OWN_FOLDER}validate/benchmark/synthetic.py"
"""The file of the benchmark that is in every image."""


@dataclass(frozen=True)
class ContextFile:
    """One file of a build context; `path` is POSIX, relative to the root of the context."""

    path: str
    data: bytes
    mode: int = 0o644


@dataclass(frozen=True)
class StepOrigin:
    """The template line that an instruction comes from, the `index`-th of its stage (from 0)."""

    stage: str
    index: int
    component: str
    template: str
    line: int


@dataclass(frozen=True)
class Recipe:
    """All that an image is built from.

    `digest` covers all of it; `templates` maps each template that was read to its hash.
    """

    spec: ImageSpec
    dockerfile: str
    files: tuple[ContextFile, ...]
    origins: tuple[StepOrigin, ...]
    contract: Contract
    digest: str
    parts: tuple[Part, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)


UNVERIFIED = "unverified"
"""The value of a row's sha256 where no source gives the one of its tarball."""


@dataclass(frozen=True)
class Part:
    """A file that a user gives or a build downloads: a vendor part, or a tarball of a row (`url`).

    `sha256` is empty where artifacts.yaml does not list the part, `unverified` where a row says so.
    `row` names the release that needs the file; `os` is set where the file is for that OS alone.
    """

    name: str
    version: str
    sha256: str
    url: str
    row: str
    os: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def folder(self) -> str:
        """Return the folder of the file in a build context."""
        return f"artifacts/{self.name}/{self.version}"
