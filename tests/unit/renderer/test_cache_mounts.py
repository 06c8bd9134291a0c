"""Test how steps share the caches of package managers."""

from __future__ import annotations

import re

from unit.conftest import REPOSITORY


def test_no_step_locks_a_cache() -> None:
    """On Docker 20.10, builds that waited for each other's locked caches repeated shared steps."""
    templates = sorted((REPOSITORY / "dockerfiles").rglob("*.j2"))
    mounts = [
        mount
        for template in templates
        for mount in re.findall(r"--mount=type=cache\S*", template.read_text(encoding="utf-8"))
    ]
    assert len(mounts) >= 3
    assert [mount for mount in mounts if "sharing=locked" in mount] == []
