"""Test that the commands on the pages that need an engine or an image do what the pages say."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from command_line import CommandLine, command_line_in
from pages import CONTAINER, ENGINE, PAGES, blocks, commands, write_files
from running_image import SLEEP, started

from imagegen.engine.containers.containers import LaunchSpec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pages import Block

    from imagegen.engine.client import Engine
    from imagegen.engine.containers.containers import Container

SECONDS = 120


def blocks_of(page: Path, where: str) -> list[Block]:
    return [block for block in blocks(page) if block.where == {where}]


def pages_with(where: str) -> list[Path]:
    return [page for page in PAGES if blocks_of(page, where)]


def name_of(page: Path) -> str:
    return page.stem


@pytest.fixture(scope="module")
def one_user(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """Return a command line with one state for all pages: checks that passed are not repeated."""
    return command_line_in(tmp_path_factory.mktemp("pages"))


@pytest.mark.usefixtures("cpu_family")
@pytest.mark.parametrize("page", pages_with(ENGINE), ids=name_of)
def test_the_commands_of_a_page_run_with_an_engine(
    page: Path, one_user: CommandLine, tmp_path: Path
) -> None:
    """One after the other, in an empty folder with the files of the page."""
    run = replace(one_user, cwd=tmp_path)
    write_files(page, tmp_path)
    for block in blocks_of(page, ENGINE):
        for one in commands(block):
            program, *arguments = shlex.split(one.text)
            assert program == "imagegen"
            run(*arguments, code=block.exit_code)


@pytest.fixture(scope="module")
def container(this_engine: Engine, cpu_image: str) -> Iterator[Container]:
    """Run a container with the shared memory that the image asks for."""
    with started(this_engine, LaunchSpec(cpu_image, SLEEP, shm_bytes=1 << 30)) as container:
        yield container


def in_an_image() -> dict[str, Block]:
    """Return each command once, with the first block that has it."""
    found: dict[str, Block] = {}
    for page in PAGES:
        for block in blocks_of(page, CONTAINER):
            for one in commands(block):
                found.setdefault(one.text, block)
    return found


@pytest.mark.parametrize(("text", "block"), in_an_image().items())
def test_a_command_runs_in_an_image(text: str, block: Block, container: Container) -> None:
    done = container.exec(shlex.split(text), SECONDS)
    assert done.code == block.exit_code, f"{block}: {text}\n{done.out}{done.err}"
