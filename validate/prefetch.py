"""Slow probes start before the checks are loaded and run beside them: the import of PyTorch and
Horovod, and pip's look at all packages."""

import contextlib
import importlib
from typing import Callable, Collection, Dict, Iterator

from validate.components import COMPONENTS
from validate.fixtures import Situation, SlowProbe
from validate.process import Result, RunningCommand

PREFETCHED: Dict[str, SlowProbe] = {
    name: importlib.import_module("validate.probes." + one.slow_probe).SLOW_PROBE
    for name, one in COMPONENTS.items()
    if one.slow_probe
}
"""Suite -> the probe that its checks wait for."""


@contextlib.contextmanager
def started(image: Situation, suites: Collection[str]) -> Iterator[None]:
    """Start the slow probes of these suites; what still runs at the end of the block is ended."""
    with contextlib.ExitStack() as stack:
        for suite, (key, begin, read) in PREFETCHED.items():
            if suite in suites and image.expected.has(suite):
                command = begin(image)
                stack.callback(command.end)
                image.prefetched[key] = _when_asked(command, read)
        yield


def _when_asked(command: RunningCommand, read: Callable[[Result], object]) -> Callable[[], object]:
    return lambda: read(command.result())
