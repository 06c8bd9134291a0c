"""A rendered image: Dockerfile, context files, where each step came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.model.catalog import Contract
    from imagegen.model.image import ImageSpec

EXPECTATION_PATH = "/etc/imagegen/image.json"
"""Where an image keeps what the resolver promised about it."""

BENCHMARK_PATH = "/opt/imagegen/validate/benchmark/synthetic.py"
"""The benchmark that travels in every image."""


@dataclass(frozen=True)
class ContextFile:
    """One file of a build context: POSIX path relative to the context root."""

    path: str
    data: bytes
    mode: int = 0o644


@dataclass(frozen=True)
class StepOrigin:
    """Where the `index`-th (from 0) instruction of a stage came from: its template line."""

    stage: str
    index: int
    component: str
    template: str
    line: int


@dataclass(frozen=True)
class Recipe:
    """A rendered image, the digest over all of it; `templates`: a hash of each source read."""

    spec: ImageSpec
    dockerfile: str
    files: tuple[ContextFile, ...]
    origins: tuple[StepOrigin, ...]
    contract: Contract
    digest: str
    parts: tuple[Part, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)


UNVERIFIED = "unverified"
"""What a row says where no source gives the sha256 of its tarball."""


@dataclass(frozen=True)
class Part:
    """One such file: a vendor's part, or the tarball of a row (`url`).

    `sha256` is empty where artifacts.yaml does not list the part, `unverified` where a row says so;
    `row` names the release that needs it, `os` the OS of the image where the file is for it alone.
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
        """Its folder in a build context."""
        return f"artifacts/{self.name}/{self.version}"
