"""Whether the container has finished starting: keys and sshd come from its entrypoint."""

import os
import time

NAME = b"imagegen-entrypoint"
MOST_SECONDS = 20.0


def starting(root: str) -> bool:
    """Whether process 1 is still the entrypoint: at its end it becomes the command."""
    try:
        with open(os.path.join(root, "proc/1/cmdline"), "rb") as file:
            return NAME in file.read()
    except OSError:
        return False


def await_start(root: str, seconds: float = MOST_SECONDS) -> None:
    """Return when the entrypoint is done, or after `seconds`: the checks then say what is wrong."""
    end = time.time() + seconds
    while starting(root) and time.time() < end:
        time.sleep(0.05)
