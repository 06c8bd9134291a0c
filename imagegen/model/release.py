"""Define what is known of one release: of a distribution, or of a component."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from imagegen.model import constraint

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROOT = "dockerfiles/"
"""The folder of the catalog's files, below each root."""


@dataclass(frozen=True)
class OsRelease:
    """One `dockerfiles/os/<id>.yaml`: a release of a distribution that images can be based on."""

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
    notes: tuple[str, ...] = ()
    missing: str = ""
    """What of it is not known, so that no image of it can be built."""

    @property
    def age(self) -> tuple[str, tuple[int, ...]]:
        """Return a key that sorts the newest release of a distribution last."""
        return self.os_id, tuple(int(part) for part in self.version_id.split("."))

    @property
    def obstacle(self) -> str:
        """Say why no image can be built on it; empty where one can."""
        if self.family != APT_FAMILY:
            return f"no template installs anything on {self.id} yet: all of them use apt"
        return f"nothing is built on {self.id} yet: {self.missing}" if self.missing else ""


APT_FAMILY = "debian"
"""The family of distributions that templates install on."""


@dataclass(frozen=True)
class Release:
    """One release of a component: what it is, what it needs, and where it comes from.

    A constraint is about another component, or a value such as `os`, `glibc` or `driver`. Of
    several for one name, one must hold. These are the effects of the five maps of constraints:

    | map | if the other component is not in the image | if no constraint holds |
    | --- | --- | --- |
    | `requires` | it is added | refused |
    | `limits` | no effect | refused |
    | `built_for` | no effect | refused, except for a build that is asked for by full name |
    | `known_with` | no effect | unknown: refused without `--allow-unknown` |
    | `recommends` | no effect | a warning |
    """

    component: str
    """The name of the component."""
    version: str
    """The version as the project writes it, with the local part of a wheel: `1.11.0+cu113`.

    A local part that is no build for CUDA or a CPU is a variant of its own, such as a vendor's
    `1.15.5+ttensorflow`. Only a request that names such a variant selects it.
    """
    variant: str
    """What distinguishes releases of one version, such as `distro` and `source`; mostly empty."""
    requires: Mapping[str, tuple[str, ...]]
    """What must be in the image too: `{python: ["3.8", "3.9"]}`."""
    apt: Mapping[str, str]
    """The apt packages of the image, with their versions; `*` stands for any text."""
    build_apt: Mapping[str, str]
    """The apt packages to compile it, or to compile against it, such as headers."""
    wheels: Mapping[str, str]
    """The Python packages that pip installs, with their versions."""
    facts: Mapping[str, object]
    """Other data for templates and for `validate`, such as `{cuda: "11.3"}`."""
    origin: str
    """The origin of its files, in words: `wheel torch 1.11.0+cu113`."""
    source: str
    """The document that states the facts of this release."""
    file: str
    """The file that lists this release."""
    line: int
    """The line of that file."""
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What other components may be, if they are in the image: `{driver: [">=450.80.02"]}`."""
    built_for: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What a binary was built for: `{cuda: ["11.3"]}`.

    A request for this build by its full name may have another one in the image, of the same major
    version if anything is compiled.
    """
    known_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What its source mentions; whether it works with anything else is unknown."""
    recommends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What it was tested with or made for; with others it works too, with a warning."""
    provides: Mapping[str, str] = field(default_factory=dict)
    """Values of parts without releases of their own, such as the NCCL in a wheel.

    `unknown` means that no source says it.
    """
    uncertain: tuple[str, ...] = ()
    """The names in `provides` whose value the source is not certain of: `[torch-nccl]`."""
    aliases: tuple[str, ...] = ()
    """Other names of the version: CUDA 11.3.1 has the compiler 11.3.109."""
    rank: int = 0
    """Releases of a lower rank are preferred, whatever their versions."""
    confidence: str = "high"
    """How certain the source is: `high`, or `medium`, which causes a warning."""
    index: str = ""
    """The index of wheels that pip asks instead of its default one."""
    tarball: Mapping[str, str] = field(default_factory=dict)
    """An archive to download and check: `url` and `sha256`."""
    artifact: str = ""
    """The name in `artifacts.yaml` of a vendor part that the user must provide."""
    notes: tuple[str, ...] = ()
    """What a user of this release should know; each note is a warning."""
    patched: Mapping[str, str] = field(default_factory=dict)
    """Files of its packages that the image has changed, each with the reason.

    The change is `files/patches/<version>.patch` of the component.
    """

    @cached_property
    def name(self) -> str:
        """Return the name that a user reads: `torch 1.11.0+cu113`, `rdma 44.0 (rdma-core)`."""
        return f"{self.component} {self.version}" + (f" ({self.variant})" if self.variant else "")

    @cached_property
    def ways(self) -> tuple[str, ...]:
        """List the ways in which it can be installed, by the data in its row."""
        data = {
            "apt": self.apt,
            "wheels": self.wheels,
            "index": self.index,
            "tarball": self.tarball,
            "artifact": self.artifact,
            "conda": self.variant == "conda",
            "base": "image" in self.facts,
        }
        return tuple(name for name, there in data.items() if there)

    def provided(self, name: str) -> str:
        """Return a value that it provides, for users; empty where it provides none."""
        return self.provides.get(name, "") + (" (not certain)" if name in self.uncertain else "")

    @cached_property
    def own_variant(self) -> str:
        """Return the variant that its version names, `ttensorflow`; empty where it names none."""
        return constraint.own_variant(self.version)

    @property
    def pinned(self) -> str:
        """Return version and variant, as a proof has them."""
        return f"{self.version} {self.variant}" if self.variant else self.version

    @property
    def row(self) -> str:
        """Return its file, below the root that has it, and the line; empty if it is in no file."""
        found = self.file.rfind(_ROOT)
        return f"{self.file[max(found, 0) :]}:{self.line}" if self.file else ""

    @property
    def where(self) -> str:
        """Return its name and its file on this machine: `nccl 2.8.4 (…/releases.csv:31)`."""
        return f"{self.name} ({self.file}:{self.line})" if self.file else self.name
