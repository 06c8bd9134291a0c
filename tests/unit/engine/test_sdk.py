"""Test that the SDK is loaded at its first use, and not when a module of the tool is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from imagegen.engine import sdk

HEAVY = {"docker", "google.protobuf", "requests", "urllib3"}
IMPORT_ALL = """
import importlib, pkgutil, sys
import imagegen
for module in pkgutil.walk_packages(imagegen.__path__, "imagegen."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(*sys.modules)
"""


def test_no_module_loads_the_sdk_by_being_imported() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=True
    )
    loaded = set(ended.stdout.split())
    assert {"imagegen.engine.images.local_images", "imagegen.workflow.build"} <= loaded
    assert loaded & HEAVY == set()


def test_the_sdk_is_there_at_its_first_use() -> None:
    assert issubclass(sdk.errors.NotFound, sdk.docker.errors.DockerException)
    assert sdk.requests.RequestException in sdk.transport_errors(ValueError)
    assert ValueError in sdk.transport_errors(ValueError)
    with pytest.raises(AttributeError, match="nothing"):
        sdk.nothing  # type: ignore[attr-defined]  # noqa: B018
