"""What pytest gives to each check: `image`, which is a Situation, and `measure`.

Nothing here needs pytest: probes look at a Situation too.
"""

from typing import Any, Callable, Dict, NamedTuple, Tuple

from validate.expected import Expected
from validate.process import Result, RunningCommand


class Measure:
    """A check calls it to say what it saw, also where all is well."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, text: object) -> None:
        self.text = str(text)


class Situation(NamedTuple):
    """What checks look at: expectations, environment, root of the file system, the memory of this
    run, the other containers of the job, by name, probes that run already, and how many GPUs there
    have to be (0: any number)."""

    expected: Expected
    env: Dict[str, str]
    root: str
    memory: Dict[str, Any]
    peers: Tuple[str, ...] = ()
    prefetched: Dict[str, Callable[[], Any]] = {}
    gpus: int = 0

    def once(self, key: str, look: Callable[[], Any]) -> Any:
        """What `look` returned when first asked: the checks that need a slow probe share it. One
        that runs already is waited for instead."""
        if key not in self.memory:
            self.memory[key] = self.prefetched.pop(key, look)()
        return self.memory[key]


class SlowProbe(NamedTuple):
    """A probe that starts before the checks are loaded: the key that a Situation keeps its answer
    under, how it begins, how its end is read."""

    key: str
    begin: Callable[[Situation], RunningCommand]
    read: Callable[[Result], object]
