"""A file that a host brings into a build: a vendor's part, or the tarball of a release."""

from __future__ import annotations

from dataclasses import dataclass

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
