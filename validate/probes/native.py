"""Ask libraries for their versions, each in a process of its own: a crash ends only that process.

The process is validate's own interpreter, not the image's, because the library is measured, not the
interpreter.
"""

import json
import os
import sys
from typing import Any, Dict, List, Optional

from validate import endings
from validate.probes.interpreter import Answer
from validate.process import Result, run

LOAD_SECONDS = 60.0

OUT, SIZE, ZERO = "out", "size", "zero"
"""How a function is called: `int f(int *)`, `size_t f(void)`, `int f(unsigned)` with 0."""

CALLS = """
import ctypes, json, os, sys
library = ctypes.CDLL(sys.argv[1])
answers = {}
for asked in sys.argv[2:]:
    name, kind = asked.split(":")
    function = getattr(library, name, None)
    if function is None:
        continue
    if kind == "out":
        value = ctypes.c_int(0)
        answers[name] = [function(ctypes.byref(value)), value.value]
    elif kind == "size":
        function.restype = ctypes.c_size_t
        answers[name] = [0, function()]
    else:
        answers[name] = [function(ctypes.c_uint(0)), 0]
stem = os.path.basename(sys.argv[1]).partition(".so")[0] + ".so"
path = ""
with open("/proc/self/maps") as maps:
    for line in maps:
        mapped = line.split(None, 5)[-1].strip()
        if mapped.startswith("/") and os.path.basename(mapped).startswith(stem):
            path = path or mapped
print("\\n" + json.dumps({"path": path, "answers": answers}))
"""


class LibraryAnswers:
    """Hold what a library answered. `path` is the file that was really loaded."""

    def __init__(self, answer: Answer) -> None:
        self.problem = answer.problem
        self.path = str(answer.facts.get("path", ""))
        self._answers: Dict[str, List[int]] = answer.facts.get("answers", {})

    def code(self, function: str) -> Optional[int]:
        """Return the return code of a function; None if the library has no such function."""
        answer = self._answers.get(function)
        return answer[0] if answer else None

    def value(self, function: str) -> Optional[int]:
        """Return the number that a function gave; None if it failed or does not exist."""
        answer = self._answers.get(function)
        return answer[1] if answer and answer[0] == 0 else None


def call_functions(library: str, functions: Dict[str, str], env: Dict[str, str]) -> LibraryAnswers:
    """Load a library by name or path and call some of its functions: name -> OUT, SIZE or ZERO."""
    asked = ["{}:{}".format(name, kind) for name, kind in functions.items()]
    result = run_script(CALLS, [library, *asked], env)
    if not result.ok:
        return LibraryAnswers(Answer({}, ended(library, result)))
    facts = facts_of(result)
    problem = "" if facts else "{} answered nothing".format(os.path.basename(library))
    return LibraryAnswers(Answer(facts, problem))


def run_script(script: str, arguments: List[str], env: Dict[str, str]) -> Result:
    """Run a script in validate's own interpreter, without PYTHONPATH and site packages."""
    return run([sys.executable, "-I", "-S", "-c", script, *arguments], LOAD_SECONDS, env)


def facts_of(result: Result) -> Dict[str, Any]:
    """Return the JSON object that a script printed.

    Lines of the library may follow it, because C flushes its output last.
    """
    for line in reversed(result.out.splitlines()):
        if line.startswith("{"):
            try:
                found: Dict[str, Any] = json.loads(line)
            except ValueError:
                continue
            return found
    return {}


def ended(library: str, result: Result) -> str:
    """Say why a script did not end well, in the words of the loader if that was the reason."""
    if result.killed_by:
        how = endings.name_of(result.killed_by)
        return "{} crashed: {} {}".format(os.path.basename(library), how, result.tail(1)).strip()
    last = result.tail(1).strip()
    error = last.partition("OSError: ")[2]
    return error or result.says()
