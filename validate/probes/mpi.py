"""Read what Open MPI prints about itself, and build the command line of a launch."""

import re
import sys
from typing import Dict, List, Sequence

from validate.fixtures import Situation, SlowProbe
from validate.process import Result, RunningCommand

KEY = "ompi_info"
"""The key of what ompi_info says in a Situation."""

DAEMONS = {"orte": "orted", "prrte": "prted"}
"""What mpirun starts on the other machines: Open MPI up to 4 has ORTE, 5 has PRRTE."""


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


def prefix_of(image: Situation) -> str:
    """Return the folder that the recipe installs Open MPI in."""
    return str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))


def _begin_info(image: Situation) -> RunningCommand:
    argv = [prefix_of(image) + "/bin/ompi_info", "--parsable", "--all"]
    return RunningCommand(argv, 30, image.env)


def info(image: Situation) -> Result:
    """Return what `ompi_info --parsable --all` says, asked once in a run."""
    found: Result = image.once(KEY, lambda: _begin_info(image).result())
    return found


SLOW_PROBE = SlowProbe(KEY, _begin_info, lambda result: result)


def parameters(text: str) -> Dict[str, str]:
    """Read what each parameter of Open MPI does, from `ompi_info --parsable --all`."""
    return dict(re.findall(r"^mca:[^:]*:[^:]*:param:([^:]+):help:(.*)$", text, re.MULTILINE))


MESSAGES = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
def handle(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(lib, name)))
lib.MPI_Init(None, None)
world, rank, size = handle("ompi_mpi_comm_world"), ctypes.c_int(), ctypes.c_int()
lib.MPI_Comm_rank(world, ctypes.byref(rank))
lib.MPI_Comm_size(world, ctypes.byref(size))
count = 1 << 18
mine = (ctypes.c_int * count)(*([rank.value + 1] * count))
total = (ctypes.c_int * count)()
lib.MPI_Allreduce(
    mine, total, ctypes.c_int(count), handle("ompi_mpi_int"), handle("ompi_mpi_op_sum"), world
)
lib.MPI_Finalize()
sys.stdout.write("rank %d of %d has %d\\n" % (rank.value, size.value, total[count - 1]))
sys.stdout.flush()
"""
"""A program of two ranks that add up a MiB: they have to find a transport and to use it."""
ADDED = ["rank 0 of 2 has 3", "rank 1 of 2 has 3"]


def messages(library: str) -> List[str]:
    """Return the command of each rank, in validate's own Python: the image's may be broken."""
    return [sys.executable, "-I", "-S", "-c", MESSAGES, library]


def plain_launch(prefix: str, command: Sequence[str]) -> List[str]:
    """Build the command line of a launch of two ranks as a user writes it, without parameters."""
    argv = [prefix + "/bin/mpirun", "-np", "2", "--allow-run-as-root", "--oversubscribe"]
    return argv + list(command)


def added_up(result: Result) -> bool:
    """Return whether both ranks have the right sum."""
    said = [line.strip() for line in result.out.splitlines() if line.startswith("rank ")]
    return result.ok and sorted(said) == ADDED


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
