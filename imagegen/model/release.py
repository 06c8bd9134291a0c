"""What the tool knows of one release: of a distribution, or of a component."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROOT = "dockerfiles/"
"""The folder that the files of the catalog are in, below each root."""


@dataclass(frozen=True)
class OsRelease:
    """One `dockerfiles/os/<id>.yaml`: a distribution release that images can stand on."""

    id: str
    family: str
    os_id: str
    version_id: str
    suite: str
    image: str
    glibc: str
    lib_dir: str
    bootstrap: bool
    source: str
    file: str
    gcc: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Release:
    """One release of a component: what it is, what it asks of others, where it comes from.

    A constraint speaks of another component, or of a value such as `os`, `glibc` or `driver`; of
    several constraints for one name one must hold. The five maps of constraints differ in what
    follows when none holds:

    | map | where the other is not in the image | where no constraint holds |
    | --- | --- | --- |
    | `requires` | it is added | refused |
    | `limits` | nothing follows | refused |
    | `built_for` | nothing follows | refused, except for a build that is asked for by full name |
    | `known_with` | nothing follows | unknown: refused without `--allow-unknown` |
    | `recommends` | nothing follows | a warning |
    """

    component: str
    """The component that this is a release of."""
    version: str
    """The version as the project writes it, with the local part of a wheel: `1.11.0+cu113`."""
    variant: str
    """What tells releases of one version apart, such as `distro` and `source`; mostly empty."""
    requires: Mapping[str, tuple[str, ...]]
    """What has to be in the image too: `{python: ["3.8", "3.9"]}`."""
    apt: Mapping[str, str]
    """apt packages of the image, with their versions; `*` stands for any text."""
    build_apt: Mapping[str, str]
    """apt packages for what is compiled against it, such as headers, or for compiling it."""
    wheels: Mapping[str, str]
    """Python packages that pip installs, with their versions."""
    facts: Mapping[str, object]
    """Free data for templates and for `validate`, such as `{cuda: "11.3"}`."""
    origin: str
    """Where it comes from, in words: `wheel torch 1.11.0+cu113`."""
    source: str
    """The document that the facts of this release are taken from."""
    file: str
    """The file that has this release."""
    line: int
    """The line of that file."""
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What may be beside it, where it is there: `{driver: [">=450.80.02"]}`."""
    built_for: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What a binary was built for: `{cuda: ["11.3"]}`. Who asks for this build by its full name may
    have another one beside it, of the same major version if anything is compiled."""
    known_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What its source speaks of; whether it works with anything else is unknown."""
    recommends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What it was tested with or made for; it works with others too, under a warning."""
    provides: Mapping[str, str] = field(default_factory=dict)
    """Values that come with it and have no releases of their own, such as the NCCL in a wheel:
    `unknown` where no source says, with a `?` at the end where the source is not certain."""
    aliases: tuple[str, ...] = ()
    """Other names of the version: CUDA 11.3.1 has the compiler 11.3.109."""
    rank: int = 0
    """Releases of a lower rank are preferred, whatever their versions."""
    only_by_full_name: bool = False
    """Whether it is taken only by a request that gives its full version, or its variant."""
    confidence: str = "high"
    """How certain the source is: `high`, or `medium` for a warning."""
    index: str = ""
    """The index of wheels that pip asks instead of its default one."""
    tarball: Mapping[str, str] = field(default_factory=dict)
    """An archive that is downloaded and checked: `url` and `sha256`."""
    artifact: str = ""
    """The name in `artifacts.yaml` of a vendor part that a user has to give."""
    notes: tuple[str, ...] = ()
    """What a user should know who takes it; each is a warning."""

    @cached_property
    def name(self) -> str:
        """What a user reads: `torch 1.11.0+cu113`, `rdma 44.0 (rdma-core)`."""
        return f"{self.component} {self.version}" + (f" ({self.variant})" if self.variant else "")

    @property
    def row(self) -> str:
        """Its file, below the root that has it, and the line; empty for what no file has."""
        found = self.file.rfind(_ROOT)
        return f"{self.file[max(found, 0) :]}:{self.line}" if self.file else ""

    @property
    def where(self) -> str:
        """Its name and its file on this machine: `torch 1.11.0+cu113 (…/releases.csv:31)`."""
        return f"{self.name} ({self.file}:{self.line})" if self.file else self.name
