"""Run the command line: load the command that is asked for, and print the errors of all."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from imagegen.cli.surroundings import (
    drop_unwritten,
    end_like_ctrl_c,
    open_closed_streams,
    write_rest,
)
from imagegen.errors import EXIT_CODES, ConfigError, ImagegenError, Interrupted, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = {
    "doctor": "what this machine lacks for building, or for one image; --fix sets it up",
    "list": "the cells of the matrices",
    "show": "one cell: every component, its version, where it comes from",
    "render": "Dockerfiles and contexts into a folder, no engine needed",
    "plan": "the order of layers, and what is stale and why",
    "check-sources": "whether all that the cells are made of can be had, without building",
    "lock": "write down exactly what built images were made of",
    "build": "build what is stale, validate it, tag it",
    "validate": "launch an image and run `validate` in it",
    "publish": "push validated images, then move their tags",
    "nightly": "build, validate, publish, report",
    "request": "pin a combination of versions, or say why there is none",
    "catalog": "what the tool knows: releases, what they need, where they come from",
    "diff": "what differs between two images, and where the bytes are",
    "sbom": "what is in an image, as SPDX or CycloneDX",
    "launch": "what starts an image: a command, a manifest or a script",
    "contract": "what a launch has to give an image",
    "history": "what was built, validated and published",
    "prune": "remove superseded images, leftovers and old cache",
}


class _Verbs(click.Group):
    """Knows all commands by name, and loads the module of the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"imagegen.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([*VERBS.items()])
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in EXIT_CODES])


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    if not value or ctx.resilient_parsing:
        return
    from imagegen.console.console import make_console
    from imagegen.workflow.version import show_version

    show_version(make_console("auto"))
    ctx.exit()


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="version, commit, and where the data is that it reads",
)
def cli() -> None:
    """Images for distributed GPU training that are known to work."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line, and exit; nothing else catches errors or exits."""
    # Not `list(…)`: once the command of that name is imported, `list` is its module here.
    arguments = [*(sys.argv[1:] if argv is None else argv)]
    open_closed_streams()
    try:
        end_like_ctrl_c()
        code = cli.main(arguments, prog_name="imagegen", standalone_mode=False)
        write_rest()
        _check_output()
        sys.exit(code if isinstance(code, int) else 0)
    except ImagegenError as error:
        _end(arguments, error)
    except click.Abort:
        _end(arguments, Interrupted.of("interrupted"))
    except click.ClickException as error:
        _end(arguments, ConfigError(_usage_problem(error)))
    except KeyboardInterrupt:
        _end(arguments, Interrupted.of("interrupted"))
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if os.environ.get("IMAGEGEN_DEBUG"):
            raise
        _end(arguments, _refused_by_system(error))
    except Exception as error:
        if os.environ.get("IMAGEGEN_DEBUG"):
            raise
        _end(arguments, _defect(error))


def _usage_problem(error: click.ClickException) -> Problem:
    text = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "imagegen"
    return Problem(text[:1].lower() + text[1:], hint=f"`{command} --help`")


def _check_output() -> None:
    """Raise ConfigError where the result was made, and could not be written."""
    if why := _lost():
        hint = "make room where stdout goes, and run it again"
        raise ConfigError.of("the output could not be written", evidence=[why], hint=hint)


def _lost() -> str:
    """Say why results could not be written; where the console is not loaded, there were none."""
    module = sys.modules.get("imagegen.console.console")
    return str(module.output_lost()) if module is not None else ""


def _refused_by_system(error: OSError) -> ImagegenError:
    """Make the error for a file, a folder or a stream that the system refused."""
    what = f"`{error.filename}`" if error.filename else "the output, or a file,"
    reason = error.strerror or str(error) or type(error).__name__
    return ConfigError.of(
        f"{what} cannot be used",
        evidence=[reason],
        hint="correct that name, or make room or give the right to use it",
    )


def _defect(error: Exception) -> ImagegenError:
    return ImagegenError.of(
        "this is a defect in imagegen, not in your files",
        evidence=[f"{type(error).__name__}: {error}"],
        hint="set IMAGEGEN_DEBUG=1, run it again, and report what it prints",
    )


def _end(arguments: Sequence[str], error: ImagegenError) -> None:
    from imagegen.console.console import make_console

    as_json = "--format=json" in arguments or (
        "--format" in arguments and arguments[arguments.index("--format") + 1 :][:1] == ["json"]
    )
    with suppress(OSError):
        make_console("json" if as_json else "auto").error(error)
        if as_json and _lost():
            make_console("plain").error(error)
    drop_unwritten()
    sys.exit(error.exit_code)
