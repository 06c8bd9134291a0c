"""Write the commit into what is built, so that `imagegen --version` names it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACES = {"wheel": "imagegen/payload/COMMIT", "sdist": "COMMIT"}


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds a file with the commit; none where nobody knows it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable install asks git each time instead."""
        commit = "" if version == "editable" else commit_of(Path(self.root))
        if commit:
            file = Path(tempfile.mkdtemp(prefix="imagegen-")) / "COMMIT"
            file.write_text(commit + "\n", encoding="utf-8")
            build_data["force_include"][str(file)] = PLACES[self.target_name]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file."""
        del version, artifact_path
        for source, place in build_data["force_include"].items():
            if place == PLACES[self.target_name]:
                Path(source).unlink()
                Path(source).parent.rmdir()


def commit_of(root: Path) -> str:
    """The commit of a source archive, which holds it in a file, or of a checkout."""
    if (root / "COMMIT").is_file():
        return (root / "COMMIT").read_text(encoding="utf-8").strip()
    if not (root / ".git").exists():
        return ""
    asked = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        ended = subprocess.run(
            [*asked, "--exclude=*"], capture_output=True, text=True, check=False, timeout=30
        )
    except OSError:
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""
