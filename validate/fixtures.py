"""Define what pytest gives to each check: `image`, which is a Situation, and `measure`.

This module does not import pytest, because probes use a Situation too.
"""

from typing import Any, Callable, Dict, NamedTuple, Tuple

from validate.expected import Expected
from validate.process import BROKEN, Result, RunningCommand


class Measure:
    """Record what a check saw. A check calls it, also when all is well."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, text: object) -> None:
        """Record the text of what was seen."""
        self.text = str(text)


class Situation(NamedTuple):
    """Hold all that checks look at.

    `env` is the environment and `root` the root of the file system. `memory` keeps answers that
    several checks share in this run. `peers` are the names of the other containers of the job.
    `prefetched` are probes that run already, by their key. `gpus` is the required number of GPUs, 0
    for any number. In a `preflight` PyTorch is imported once for all checks.
    """

    expected: Expected
    env: Dict[str, str]
    root: str
    memory: Dict[str, Any]
    peers: Tuple[str, ...] = ()
    prefetched: Dict[str, Callable[[], Any]] = {}
    gpus: int = 0
    preflight: bool = False

    def once(self, key: str, look: Callable[[], Any]) -> Any:
        """Return what `look` returned when it was first called in this run.

        Checks share the answer of a slow probe in this way. If a probe of this key runs already,
        wait for that one instead of calling `look`. A command of the probe that broke counts
        for every check that shares the answer.
        """
        if key not in self.memory:
            before = len(BROKEN)
            self.memory[key] = self.prefetched.pop(key, look)()
            self.memory["broken for " + key] = BROKEN[before:]
        else:
            BROKEN.extend(self.memory.get("broken for " + key, ()))
        return self.memory[key]


class SlowProbe(NamedTuple):
    """Describe a probe that starts before the checks are loaded.

    `key` is where a Situation keeps its answer, `begin` starts it, and `read` reads its result.
    """

    key: str
    begin: Callable[[Situation], RunningCommand]
    read: Callable[[Result], object]
