"""What takes long and waits for nothing is begun before the checks are loaded, beside them: the
import of PyTorch and Horovod, and pip's look at all packages."""

import contextlib
from typing import Callable, Collection, Dict, Iterator, Tuple

from validate.probes import pip, training
from validate.process import Begun, Result
from validate.pytest_plugin import Situation

LONG: Dict[str, Tuple[str, Callable[[Situation], Begun], Callable[[Result], object]]] = {
    "torch": (training.KEY, training.begin, training.read),
    "python": (pip.KEY, pip.begin, lambda result: result),
}
"""Suite -> what Situation keeps it under, how it begins, how its end is read."""


@contextlib.contextmanager
def begun(image: Situation, suites: Collection[str]) -> Iterator[None]:
    """As long as the block lasts; nothing that was begun survives it."""
    with contextlib.ExitStack() as stack:
        for suite, (key, begin, read) in LONG.items():
            if suite in suites and image.expected.has(suite):
                command = begin(image)
                stack.callback(command.end)
                image.begun[key] = _when_asked(command, read)
        yield


def _when_asked(command: Begun, read: Callable[[Result], object]) -> Callable[[], object]:
    return lambda: read(command.result())
