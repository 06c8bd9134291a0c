"""Start slow probes before the checks are loaded, so that they run at the same time.

These are the import of PyTorch and Horovod, and `pip check`.
"""

import contextlib
from typing import Callable, Collection, Dict, Iterator, Tuple

from validate.fixtures import Situation
from validate.probes import pip, training
from validate.process import Result, RunningCommand

PREFETCHED: Dict[
    str, Tuple[str, Callable[[Situation], RunningCommand], Callable[[Result], object]]
] = {
    "torch": (training.KEY, training.begin_import, training.parse_answers),
    "python": (pip.KEY, pip.begin_check, lambda result: result),
}
"""Suite -> the key of its answer in Situation, the function that starts the probe, and the function
that reads its result.
"""


@contextlib.contextmanager
def started(image: Situation, suites: Collection[str]) -> Iterator[None]:
    """Start the slow probes of these suites; end those that still run when the block ends."""
    with contextlib.ExitStack() as stack:
        for suite, (key, begin, read) in PREFETCHED.items():
            if suite in suites and image.expected.has(suite):
                command = begin(image)
                stack.callback(command.end)
                image.prefetched[key] = _when_asked(command, read)
        yield


def _when_asked(command: RunningCommand, read: Callable[[Result], object]) -> Callable[[], object]:
    return lambda: read(command.result())
