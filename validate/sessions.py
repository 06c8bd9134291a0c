"""Find the processes of a session (proc_pid_stat(5), field 6)."""

import os
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
