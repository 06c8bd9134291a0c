"""Read what one process said that imported a framework and then Horovod.

The process prints the facts of the framework before it imports Horovod: if Horovod ends it, the
framework has answered.
"""

import json
from typing import Any, Dict, NamedTuple

from validate.probes.interpreter import Answer
from validate.process import Result

HOROVOD = """
import glob, json, os
import horovod.{name} as hvd
def built(kind):
    return bool(getattr(hvd, kind + "_built", lambda: False)())
print("\\n" + json.dumps({{"horovod": {{
    "mpi": built("mpi"),
    "nccl": built("nccl"),
    "gloo": built("gloo"),
    "library": "".join(sorted(
        glob.glob(os.path.join(os.path.dirname(hvd.__file__), "mpi_lib*.so")))[:1]),
}}}}), flush=True)
"""
"""The end of such a script; `name` is the framework's module below horovod."""


class FrameworkAndHorovod(NamedTuple):
    """Hold the answers of both."""

    framework: Answer
    horovod: Answer


def read_answers(result: Result, name: str) -> FrameworkAndHorovod:
    """Read the answers from what the script printed; `name` is the key of the framework's facts.

    A process that fails after both have answered fails both; but not where it says that the import
    itself went well and something else was asked after it.
    """
    facts = printed_facts(result.out)
    problem = "" if result.ok or facts.get("imported") else result.says()
    none = Answer(
        {},
        problem or "`{}` printed no facts".format(result.argv[0]),
        result.timed_out,
        bool(result.killed_by),
        result.err,
    )
    if name not in facts or (problem and "horovod" in facts):
        return FrameworkAndHorovod(none, none)
    horovod = Answer(facts["horovod"], "") if "horovod" in facts else none
    return FrameworkAndHorovod(Answer(facts[name], ""), horovod)


def printed_facts(text: str) -> Dict[str, Any]:
    """Merge all objects that the script printed; libraries may print lines of their own."""
    found: Dict[str, Any] = {}
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.update(json.loads(line))
            except ValueError:
                continue
    return found
