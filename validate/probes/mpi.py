"""Read what Open MPI prints about itself, and build the command line of a launch."""

import os
import re
from typing import Dict, List, Sequence

DAEMONS = {"orte": "orted", "prrte": "prted"}
"""What mpirun starts on the other machines: Open MPI up to 4 has ORTE, 5 has PRRTE."""


def absence(path: str) -> str:
    """Say in words why a program of Open MPI cannot be started."""
    if os.path.islink(path) and not os.path.exists(path):
        return "missing: {}, to which {} leads".format(os.path.realpath(path), path)
    if os.path.exists(path):
        return "{} cannot be run ({:04o})".format(path, os.stat(path).st_mode & 0o7777)
    return "missing: {}".format(path)


def parse_version(text: str) -> str:
    """Read the version from `mpirun (Open MPI) 4.1.4`; empty if another MPI answers."""
    match = re.search(r"^mpirun \(Open MPI\) (\S+)", text, re.MULTILINE)
    return match.group(1) if match else ""


def parse_prefix(text: str) -> str:
    """Read the prefix from `ompi_info --parsable --all` or `ompi_info --path prefix`."""
    match = re.search(r"^path:prefix:(.*)$", text, re.MULTILINE)
    return match.group(1).strip() if match else ""


def thread_multiple(text: str) -> bool:
    """Return whether `ompi_info` says that ranks may call MPI from many threads."""
    return "MPI_THREAD_MULTIPLE: yes" in text


def launch(
    prefix: str, ranks: int, command: Sequence[str], env: Dict[str, str], names: Sequence[str] = ()
) -> List[str]:
    """Build the command line of a launch, with the flags of a real one on one machine.

    The options of mpirun work on Open MPI 4 and 5. There may be more ranks than cores. `names` are
    variables that the ranks get, besides PATH and LD_LIBRARY_PATH.
    """
    argv = [prefix + "/bin/mpirun", "-np", str(ranks), "--allow-run-as-root"]
    argv += ["--bind-to", "none", "--map-by", "slot:OVERSUBSCRIBE" if ranks > 1 else "slot"]
    for name in ("LD_LIBRARY_PATH", "PATH", *names):
        if name in env:
            argv += ["-x", name]
    argv += ["-mca", "pml", "ob1", "-mca", "btl", "^openib"]
    return argv + list(command)
