"""Test `install-wheels.sh`: it installs wheels by uv or else by pip, with the same files."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from image_builder import Builder

from imagegen.config.network import FOLDER, pip_config_files, read_build_env
from imagegen.config.payload import shipped_root
from imagegen.engine.builds.buildkit import StepError
from imagegen.engine.builds.vertex_events import VertexLog
from imagegen.model.recipe import ContextFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.engine.client import Engine

BIND = f"--mount=type=bind,source={FOLDER},target=/mnt"
CACHE = "--mount=type=cache,id=imagegen-test-wheels,target=/media"
WHEELS = "--constraint /mnt/held.txt jinja2==3.1.6 charset-normalizer"
HELD = b"markupsafe==3.0.2\ncharset-normalizer==3.4.1\n"
PLACE = "/usr/local/lib/python3.11/dist-packages"

LOOK = f"""\
cd /usr/local && \\
    echo "by $(sort -u {PLACE}/*.dist-info/INSTALLER | tr '\\n' ' ')" && \\
    echo "names $(find . -type f ! -path '*.dist-info/*' | sort | sha256sum)" && \\
    echo "bytes $(find lib -type f ! -path '*.dist-info/*' ! -name '*.pyc' -print0 | sort -z \\
      | xargs -0 sha256sum | sha256sum)" && \\
    echo "compiled $(find . -name '*.pyc' | wc -l)" && \\
    echo "left $(ls -A /tmp /root/.cache /root/.local 2>/dev/null | grep -v : | tr '\\n' ' ')" && \\
    python3 -m pip check && normalizer --version && \\
    python3 -c 'import jinja2, markupsafe._speedups; print("imports", jinja2.__version__)'
"""


def env_files(changed: Mapping[str, bytes | None] | None = None) -> tuple[ContextFile, ...]:
    """Return the files that imagegen mounts into such a step on this host.

    `changed` replaces contents by name; a file with None is left out.
    """
    shipped = shipped_root() / "dockerfiles" / FOLDER
    files: dict[str, bytes | None] = {path.name: path.read_bytes() for path in shipped.iterdir()}
    env = read_build_env(os.environ, None, pip_config_files(Path.home()))
    files |= {file.path.removeprefix(f"{FOLDER}/"): file.data for file in env.files}
    files |= {"held.txt": HELD, **(changed or {})}
    return tuple(ContextFile(f"{FOLDER}/{name}", data) for name, data in files.items() if data)


class Step:
    """Run one step on Debian's Python and pip and return what it printed."""

    def __init__(self, builder: Builder, token: str) -> None:
        self._builder, self._token = builder, token

    def __call__(self, wheels: str, changed: Mapping[str, bytes | None] | None = None) -> list[str]:
        install = f"RUN {CACHE} {BIND} . /mnt/env.sh && echo {self._token} && "
        text = f"{install}sh /mnt/install-wheels.sh {wheels} && \\\n    {LOOK}"
        self._builder(text, files=env_files(changed))
        return [one.text for one in self._builder.events if isinstance(one, VertexLog)]


@pytest.fixture(scope="module")
def on_python(engine: Engine, debian_base: str) -> Iterator[Builder]:
    base = Builder(engine, debian_base)
    apt = "apt-get install -y --no-install-recommends python3 python3-pip"
    tag = f"test-python/{secrets.token_hex(6)}:debian12"
    base(f"RUN {BIND} . /mnt/env.sh && apt-get update && {apt}", files=env_files(), tag=tag)
    made = Builder(engine, tag)
    yield made
    made.clean()
    base.clean()


@pytest.fixture
def step(on_python: Builder, token: str) -> Step:
    return Step(on_python, token)


def told(lines: list[str], word: str) -> str:
    (found,) = [line for line in lines if line.startswith(f"{word} ")]
    return found.removeprefix(f"{word} ").strip()


def by_pip(step: Step) -> list[str]:
    """Run the step as a locked build does, without settings for uv."""
    lines = step(WHEELS, {"uv.toml": None})
    assert not [line for line in lines if "in its place" in line]
    assert told(lines, "by") == "pip"
    return lines


def test_uv_installs_the_files_that_pip_installs_and_leaves_nothing(step: Step) -> None:
    lines = step(WHEELS)
    assert not [line for line in lines if "in its place" in line]
    assert (told(lines, "by"), told(lines, "left")) == ("uv", "")
    assert told(lines, "imports") == "3.1.6"
    assert int(told(lines, "compiled")) > 20
    same = by_pip(step)
    assert [told(lines, word) for word in ("names", "bytes", "compiled")] == [
        told(same, word) for word in ("names", "bytes", "compiled")
    ]


def test_where_the_index_has_no_uv_pip_installs_and_the_step_says_so(step: Step) -> None:
    script = (shipped_root() / "dockerfiles" / FOLDER / "install-wheels.sh").read_text()
    there = next(line for line in script.splitlines() if line.startswith("UV="))
    lines = step(WHEELS, {"install-wheels.sh": script.replace(there, "UV=0.0.0").encode()})
    (why,) = [line for line in lines if "pip installs in its place" in line]
    assert why.startswith("no uv here, ")
    assert "No matching distribution found for uv==0.0.0" in why
    assert (told(lines, "by"), told(lines, "left")) == ("pip", "")


def test_for_a_python_that_uv_does_not_know_pip_installs_and_the_step_says_so(step: Step) -> None:
    script = (shipped_root() / "dockerfiles" / FOLDER / "install-wheels.sh").read_text()
    assert script.count("(3, 8)") == 1
    lines = step(WHEELS, {"install-wheels.sh": script.replace("(3, 8)", "(9, 9)").encode()})
    assert "no uv here, pip installs in its place: Python is older than 3.8" in lines
    assert told(lines, "by") == "pip"


def test_where_uv_cannot_use_the_index_pip_installs(step: Step) -> None:
    lines = step(WHEELS, {"uv.toml": b"no-index = true\n"})
    assert "uv could not, pip installs in its place" in lines
    assert told(lines, "by") == "pip"


def test_what_neither_can_install_fails_the_step_with_the_words_of_pip(step: Step) -> None:
    with pytest.raises(StepError) as caught:
        step("jinja2==0.0.0.1")
    assert caught.value.exit_code == 1
    assert caught.value.cause == "upstream gone"
    assert any("jinja2==0.0.0.1" in line for line in caught.value.last(12))
