"""Test every command on the pages here, with an engine, or in an image; a list names the others.

The list says why a command does not run. Where a page shows what a command prints, it prints that.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from pages import (
    COMMANDS,
    CONTAINER,
    DATA,
    ENGINE,
    NOT_RUN_HERE,
    PAGES,
    REPOSITORY,
    blocks,
    commands,
    every_command,
    not_run,
    prints,
    write_files,
)

from imagegen.cli.main import VERBS, cli
from validate.arguments import parsed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pages import Command

    from unit.conftest import Ended

PLACES = {
    frozenset[str](),
    frozenset({ENGINE}),
    frozenset({CONTAINER}),
    frozenset({NOT_RUN_HERE}),
    frozenset({CONTAINER, NOT_RUN_HERE}),
}
SHELL = re.compile(r"[|;&><$`(~]")
PLACEHOLDER = re.compile(r"[A-Z_|]+…?|…")


def test_every_block_says_what_it_is() -> None:
    """A block without a language, or of another one, may hold commands that nobody runs."""
    for page in PAGES:
        for block in blocks(page):
            assert block.language in (*COMMANDS, *DATA), str(block)
            assert block.language not in COMMANDS or block.where in PLACES, str(block)


def test_what_is_not_run_is_in_the_list_and_nothing_else_is() -> None:
    marked = {one.text for one in every_command() if NOT_RUN_HERE in one.block.where}
    assert marked == not_run()


def test_commands_with_an_engine_are_plain() -> None:
    """They are started as they are, without a shell, and what they print differs."""
    for one in every_command():
        if {ENGINE, CONTAINER} & one.block.where:
            assert not SHELL.search(one.text) or NOT_RUN_HERE in one.block.where, str(one)
            assert one.printed is None, str(one)


def words_of(text: str) -> list[str]:
    return shlex.split(text, comments=True)


@pytest.mark.parametrize("command", every_command(), ids=str)
def test_a_command_has_the_options_that_it_is_given(command: Command) -> None:
    """Those that are not run too: the parser of the command line takes them."""
    words = words_of(command.text)
    if words[0] == "imagegen" and not SHELL.search(command.text):
        parse(words[1:])
    elif words[0] == "validate":
        assert parsed(words[1:])


def parse(words: list[str]) -> None:
    if words[0].startswith("-"):
        return
    verb = cli.get_command(click.Context(cli), words[0])
    assert verb is not None, words
    with click.Context(cli) as context:
        verb.make_context(words[0], words[1:], parent=context)


def inline_commands() -> list[tuple[Path, str]]:
    """Return each `imagegen …` in the text of the pages."""
    found = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        found += [(page, code) for code in re.findall(r"`(imagegen [^`\n]+)`", text)]
    return found


@pytest.mark.parametrize(("page", "code"), inline_commands())
def test_a_command_in_the_text_has_a_verb_and_options_that_are_there(page: Path, code: str) -> None:
    del page
    verb, *rest = words_of(code)[1:]
    if verb.startswith("-") or PLACEHOLDER.fullmatch(verb):
        return
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None, code
    known = {name for one in command.get_params(click.Context(command)) for name in one.opts}
    if isinstance(command, click.Group):
        return
    assert {word for word in rest if word.startswith("-")} <= known, code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_do_what_it_says(
    page: Path, run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, in an empty folder with the files of the page, and without an engine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("imagegen.request.existing._label_here", lambda _: "")
    write_files(page, tmp_path)
    for block in blocks(page):
        if not block.where:
            for one in commands(block):
                ended_well(one, *outcome(one.text, run))


def outcome(text: str, run: Callable[..., Ended]) -> tuple[int, str]:
    """Run a command and return its exit code and what it printed."""
    words = words_of(text)
    if words[0] == "imagegen" and not SHELL.search(text):
        ended = run(*words[1:])
        return ended.code, ended.out + ended.err
    if words[0] == "make":
        text = f"make -C {shlex.quote(str(REPOSITORY))} -n {shlex.join(words[1:])}"
    programs = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-c", text],
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def ended_well(command: Command, code: int, text: str) -> None:
    assert code == command.block.exit_code, f"{command}\n{text}"
    if command.printed is not None:
        assert prints(command.printed, text), f"{command}\n{text}"


def test_the_readme_has_every_verb() -> None:
    text = PAGES[0].read_text()
    assert re.findall(r"^\| `imagegen ([a-z-]+)` \|", text, re.MULTILINE) != []
    assert {*re.findall(r"^\| `imagegen ([a-z-]+)` \|", text, re.MULTILINE)} == {*VERBS}
