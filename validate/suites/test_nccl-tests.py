"""Check NVIDIA's own tests of NCCL."""

import os

from validate.check import check, fail
from validate.fixtures import Measure, Situation
from validate.probes import nccl
from validate.probes.files import under
from validate.probes.libraries import libraries
from validate.probes.linked import loaded_library
from validate.remedy import in_image

COMPONENT = "nccl-tests"
FOLDER = "/opt/nccl-tests/bin"


@check(
    "nccl-tests.programs",
    "the programs of nccl-tests are there, and call the NCCL and the MPI that training uses",
    cause="they were compiled against another NCCL or MPI, or a copy left some of them out",
    remedy=in_image("imagegen build", look="ldd {}/all_reduce_perf".format(FOLDER)),
    needs=("nccl.version",),
)
def test_programs(image: Situation, measure: Measure) -> None:
    """each program that the recipe names in /opt/nccl-tests/bin; the libnccl and the libmpi that
    `ldd` finds for it, against the first libnccl.so.2 on the loader's path and the libmpi of
    ompi_info"""
    names = [str(name) for name in image.expected.fact(COMPONENT, "programs", [])]
    paths = {name: under(image.root, os.path.join(FOLDER, name)) for name in names}
    gone = [name for name, path in paths.items() if not os.access(path, os.X_OK)]
    measure("{} programs".format(len(names) - len(gone)))
    if gone:
        fail("{} is not in {}".format(", ".join(gone), FOLDER))
    for name, path in paths.items():
        _calls(name, "libnccl", loaded_library(path, "libnccl"), _nccl(image))
        _calls(name, "libmpi", loaded_library(path, "libmpi"), _mpi(image))


def _calls(name: str, stem: str, found: str, wanted: str) -> None:
    if not found:
        fail("{} finds no {}, or was compiled without it".format(name, stem))
    if wanted and found != wanted:
        fail("{} would load {}, training loads {}".format(name, found, wanted))


def _nccl(image: Situation) -> str:
    """Return the NCCL that programs find first; empty if only wheels have one."""
    first = libraries(image).first(nccl.LIBRARY)
    return os.path.realpath(first) if first else ""


def _mpi(image: Situation) -> str:
    prefix = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
    return loaded_library(os.path.realpath(prefix + "/bin/ompi_info"), "libmpi")
