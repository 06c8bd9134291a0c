"""Test that click gives a verb exactly the options that the verb's record holds, by name."""

from __future__ import annotations

from dataclasses import MISSING, fields
from importlib import import_module

import click
import pytest

from imagegen.cli.launch import SETTINGS, _key
from imagegen.cli.main import cli

RECORDS = {
    "catalog refresh": "catalog.RefreshOptions",
    "check-sources": "check_sources.CheckOptions",
    "launch": "launch.LaunchOptions",
    "lock": "lock.LockOptions",
    "plan": "plan.PlanOptions",
    "prune": "prune.PruneOptions",
    "validate": "validate.ValidateOptions",
}
NOT_KEPT: dict[str, set[str]] = {
    # Each is an entry of `settings`.
    "launch": {_key(name) for name, _ in SETTINGS},
}


@pytest.mark.parametrize("verb", RECORDS)
def test_the_record_of_a_verb_has_its_options_and_their_defaults(verb: str) -> None:
    context = click.Context(cli)
    command: click.Command = cli
    for word in verb.split():
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found
        command = found
    module, name = RECORDS[verb].split(".")
    record = getattr(import_module(f"imagegen.workflow.{module}"), name)
    given = {param.name: param for param in command.params}
    assert given.keys() - {"fmt"} - NOT_KEPT.get(verb, set()) == {
        one.name for one in fields(record)
    }
    for one in fields(record):
        if one.default is not MISSING and one.default not in ((), None):
            assert given[one.name].get_default(context) == one.default, one.name
