"""Find the processes of a session (proc_pid_stat(5), field 6), and wait for the end of one."""

import os
import select
import subprocess
from typing import List


def processes_of(leader: int) -> List[int]:
    """List the processes of a session: the ranks of mpirun have process groups of their own."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/{}/stat".format(name)) as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[3] == str(leader) and int(name) != leader:
            found.append(int(name))
    return found


def wait_for_end(child: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Wait until a child ends, at most so long; return whether it ended.

    The kernel tells its end at once (pidfd_open(2), from Python 3.9 and Linux 5.3 on). Popen.wait
    with a time limit looks now and then, up to 50 ms too late: with thirty commands in a run that
    was a quarter of its time.
    """
    opened = getattr(os, "pidfd_open", None)
    try:
        ends = opened(child.pid) if opened is not None and child.poll() is None else -1
    except OSError:  # not in this kernel, or its container does not allow it
        ends = -1
    if ends < 0:
        return _looked_now_and_then(child, seconds)
    try:
        waiting = select.poll()
        waiting.register(ends, select.POLLIN)
        waiting.poll(max(seconds, 0.0) * 1000)
    finally:
        os.close(ends)
    return child.poll() is not None


def _looked_now_and_then(child: "subprocess.Popen[bytes]", seconds: float) -> bool:
    try:
        child.wait(max(seconds, 0.0))
    except subprocess.TimeoutExpired:
        return False
    return True
