"""Run `validate --hosts`, which checks containers and machines from outside."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def from_outside(*arguments: str) -> dict[str, Any]:
    """Return the document that `validate --hosts` writes here."""
    argv = [sys.executable, "-m", "validate", "--json", "-", *arguments]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=500)
    assert ended.stdout.startswith("{"), ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout)
    assert document["exit_code"] == ended.returncode
    return document


def verdicts(report: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["id"]: (one["outcome"], one["reason"]) for one in report["checks"]}
