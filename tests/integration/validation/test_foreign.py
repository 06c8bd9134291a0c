"""Test `imagegen validate` and `validate.pyz` in images that imagegen did not build."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from nccl_parts import compiled, plugin

from imagegen.model.recipe import ContextFile

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import CommandLine
    from image_builder import Builder

LIB = "/usr/lib/x86_64-linux-gnu"
NCCL = """
#include <dlfcn.h>
const char marks[] = "NCCL version {version}+cuda12.2\\0ncclNetPlugin_v6\\0ncclNetPlugin_v5";
int ncclGetVersion(int *v) {{ *v = {number}; return 0; }}
int ncclGetUniqueId(void *id) {{ return dlopen("libnccl-net.so", RTLD_NOW) == 0; }}
"""


def nccl(folder: Path, version: str, number: int) -> bytes:
    source = NCCL.format(version=version, number=number)
    return compiled(folder, "libnccl.so", source, ["-ldl", "-Wl,-soname,libnccl.so.2"])


def report(command_line: CommandLine, folder: Path, *arguments: str, code: int = 0) -> Any:
    """Return the report of one image."""
    path = folder / "report.json"
    command_line("validate", "--json", str(path), *arguments, code=code)
    (one,) = json.loads(path.read_text())["images"]
    return one


def outcomes(one: Any) -> dict[str, str]:
    return {row["id"]: row["outcome"] for row in one["checks"]}


def ids(one: Any, outcome: str) -> set[str]:
    """Return the ids of an outcome without what depends on this engine's limits."""
    return {name for name, found in outcomes(one).items() if found == outcome} - {
        "lim.nofile",
        "lim.memlock",
    }


def test_an_image_that_ends_at_once_for_a_user_without_rights(
    builder: Builder,
    debian_base: str,
    token: str,
    command_line: CommandLine,
    tmp_path: Path,
) -> None:
    builder.base = debian_base
    image = builder(f"RUN echo {token}", 'ENTRYPOINT ["/bin/sh", "-c", "exit 3"]', "USER 1000:1000")
    one = report(command_line, tmp_path, image)
    assert ids(one, "failed") == ids(one, "error") == set()
    assert outcomes(one)["env.manifest"] == "passed"
    found = next(row for row in one["checks"] if row["id"] == "env.manifest")
    assert found["measured"] == "no expectation file; found: nothing that trains"


def test_an_image_without_a_shell_ends_in_words(
    builder: Builder, token: str, command_line: CommandLine
) -> None:
    builder.base = "scratch"
    image = builder("COPY a /a", files=(ContextFile("a", token.encode()),))
    end = command_line("validate", image, code=7)
    assert f"error: `{image}` has no shell that runs" in end.err
    assert "hint: " in end.err


def test_a_stray_plugin_is_named_and_an_image_without_it_is_well(
    builder: Builder, debian_base: str, command_line: CommandLine, tmp_path: Path
) -> None:
    builder.base = debian_base
    files = (
        ContextFile("nccl", nccl(tmp_path, "2.18.3", 21803)),
        ContextFile("plugin", plugin(tmp_path, 4)),
    )
    lines = (f"COPY nccl {LIB}/libnccl.so.2.18.3", "RUN ldconfig")
    healthy = report(command_line, tmp_path, builder(*lines, files=files), "--static")
    assert ids(healthy, "failed") | ids(healthy, "warned") | ids(healthy, "error") == set()
    assert outcomes(healthy)["nccl.version"] == "passed"
    stray = "COPY plugin /usr/local/lib/libnccl-net.so"
    broken = builder(lines[0], stray, "RUN ldconfig", files=files)
    found = report(command_line, tmp_path, broken, "--static")
    assert ids(found, "warned") == {"plugin.one", "plugin.abi"}
    assert ids(found, "failed") == set()


def test_what_was_inferred_holds_the_next_build(
    builder: Builder, debian_base: str, command_line: CommandLine, tmp_path: Path
) -> None:
    builder.base = debian_base
    first, other = nccl(tmp_path, "2.18.3", 21803), nccl(tmp_path, "2.20.5", 22005)
    line = f"COPY nccl {LIB}/libnccl.so.2"
    image = builder(line, "RUN ldconfig", files=(ContextFile("nccl", first),))
    said = command_line("validate", "--infer", image).out
    assert json.loads(said)["components"]["nccl"]["version"] == "2.18.3"
    path = tmp_path / "image.json"
    path.write_text(said)
    again = report(command_line, tmp_path, "--static", "--expect", str(path), image)
    assert ids(again, "failed") == set()
    changed = builder(line, "RUN ldconfig", files=(ContextFile("nccl", other),))
    found = report(command_line, tmp_path, "--static", "--expect", str(path), changed, code=7)
    assert ids(found, "failed") == {"nccl.version"}


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write `validate.pyz` as a user does."""
    path = tmp_path_factory.mktemp("pyz") / "validate.pyz"
    script = [sys.executable, "-m", "imagegen", "validate", "--export", str(path)]
    subprocess.run(script, check=True, capture_output=True, timeout=300)
    return path


def test_one_file_runs_on_this_machine(pyz: Path, tmp_path: Path) -> None:
    argv = [sys.executable, str(pyz), "--static", "--only", "validate,limits", "--json", "-"]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    found = json.loads(ended.stdout)
    assert found["exit_code"] == ended.returncode
    assert outcomes(found)["env.manifest"] == "passed"
    assert list(tmp_path.iterdir()) == []
