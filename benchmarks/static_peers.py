"""Write facts as tests for testinfra and for container-structure-test."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

from static_fact import Command, Environment, File, Program

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from static_fact import Fact

HEAD = "import re"


def testinfra_file(facts: Sequence[Fact]) -> str:
    """Write a module with a test for each fact."""
    tests = [_testinfra(number, fact) for number, fact in enumerate(facts)]
    return "\n\n\n".join([HEAD, *tests]) + "\n"


def _testinfra(number: int, fact: Fact) -> str:
    body = "\n    ".join(_assertions(fact))
    return f'def test_{number}(host):\n    """{", ".join(fact.checks)}"""\n    {body}'


def _assertions(fact: Fact) -> list[str]:
    if isinstance(fact, Command):
        found = [f"assert re.search({one!r}, said, re.MULTILINE)" for one in fact.wants]
        found += [f"assert not re.search({one!r}, said, re.MULTILINE)" for one in fact.unwanted]
        return [f"said = host.check_output({fact.line!r})", *found]
    if isinstance(fact, Environment):
        found = [f"assert env[{name!r}] == {value!r}" for name, value in fact.values.items()]
        found += [f"assert {name!r} not in env" for name in fact.unset]
        return ["env = host.environment()", *found]
    if isinstance(fact, Program):
        return [f"assert host.exists({fact.path.rpartition('/')[2]!r})"]
    return [f"file = host.file({fact.path!r})", *_of_file(fact)]


def _of_file(fact: File) -> list[str]:
    found = ["assert file.is_directory"] if fact.folder else []
    found += [f"assert file.mode == {fact.mode:#o}"] if fact.mode is not None else []
    found += ["text = file.content_string"] if fact.says else []
    found += [f"assert re.search({one!r}, text, re.MULTILINE)" for one in fact.says]
    return found or [f"assert {'' if fact.there else 'not '}file.exists"]


def structure_file(facts: Sequence[Fact]) -> str:
    """Write one file with all facts, in JSON, which is also YAML."""
    of_environment = [fact for fact in facts if isinstance(fact, Environment)]
    tests = {
        "commandTests": [_command(f) for f in facts if isinstance(f, Command)],
        "fileExistenceTests": list(_existence(facts)),
        "fileContentTests": [
            {"name": _name(f), "path": f.path, "expectedContents": _lines(f.says)}
            for f in facts
            if isinstance(f, File) and f.says
        ],
        "metadataTest": {
            "envVars": [
                {"key": name, "value": value}
                for fact in of_environment
                for name, value in fact.values.items()
            ],
            "unboundEnvVars": [{"key": name} for fact in of_environment for name in fact.unset],
        },
    }
    return json.dumps({"schemaVersion": "2.0.0", **tests}, indent=1)


def _command(fact: Command) -> dict[str, Any]:
    return {
        "name": _name(fact),
        "command": "sh",
        "args": ["-c", fact.line],
        "expectedOutput": _lines(fact.wants),
        "excludedOutput": _lines(fact.unwanted),
    }


def _existence(facts: Iterable[Fact]) -> Iterable[dict[str, Any]]:
    for fact in facts:
        if isinstance(fact, Program):
            yield {"name": _name(fact), "path": fact.path, "shouldExist": True,
                   "isExecutableBy": "any"}  # fmt: skip
        if isinstance(fact, File) and (fact.mode is not None or not fact.says):
            known = {} if fact.mode is None else {"permissions": _bits(fact)}
            yield {"name": _name(fact), "path": fact.path, "shouldExist": fact.there, **known}


def _name(fact: Fact) -> str:
    return ", ".join(fact.checks)


def _bits(fact: File) -> str:
    """Write permission bits as Go does: `dtrwxrwxrwx`."""
    mode = fact.mode or 0
    kind = ("d" if fact.folder else "") + ("t" if mode & stat.S_ISVTX else "")
    return (kind or "-") + stat.filemode(mode & 0o777)[1:]


def _lines(patterns: Sequence[str]) -> list[str]:
    """Make `^` and `$` of the patterns match the ends of lines, as they do for testinfra."""
    return [f"(?m){one}" for one in patterns]
