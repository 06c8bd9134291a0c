"""Find out whether the container has started: its entrypoint makes the keys and starts sshd."""

import os
import time

NAME = b"imagegen-entrypoint"
MOST_SECONDS = 20.0


def starting(root: str) -> bool:
    """Return whether process 1 is still the entrypoint, which ends with an exec of the command."""
    try:
        with open(os.path.join(root, "proc/1/cmdline"), "rb") as file:
            return NAME in file.read()
    except OSError:
        return False


def await_start(root: str, seconds: float = MOST_SECONDS) -> None:
    """Wait until the entrypoint is done, at most `seconds`: the checks then say what is wrong."""
    end = time.time() + seconds
    while starting(root) and time.time() < end:
        time.sleep(0.05)
