"""Start slow probes before the checks are loaded, so that they run at the same time.

These are the import of PyTorch and Horovod, and `pip check`.
"""

import contextlib
import importlib
from typing import Callable, Collection, Dict, Iterator

from validate.components import COMPONENTS
from validate.fixtures import Situation, SlowProbe
from validate.probes import gpu
from validate.probes.libraries import libraries
from validate.process import Result, RunningCommand

PREFETCHED: Dict[str, SlowProbe] = {
    name: importlib.import_module("validate.probes." + one.slow_probe).SLOW_PROBE
    for name, one in COMPONENTS.items()
    if one.slow_probe
}
"""Suite -> the slow probe whose answer its checks need."""


@contextlib.contextmanager
def started(image: Situation, suites: Collection[str]) -> Iterator[None]:
    """Start the slow probes of these suites; end those that still run when the block ends."""
    if image.preflight and "gpu" in suites and libraries(image).loader.first(gpu.NVML):
        gpu.ask_nvml(image)
    with contextlib.ExitStack() as stack:
        for suite, (key, begin, read) in PREFETCHED.items():
            if suite in suites and image.expected.has(suite):
                command = begin(image)
                stack.callback(command.end)
                image.prefetched[key] = _when_asked(command, read)
        yield


def _when_asked(command: RunningCommand, read: Callable[[Result], object]) -> Callable[[], object]:
    return lambda: read(command.result())
