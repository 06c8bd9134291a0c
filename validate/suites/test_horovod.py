"""Check that one Horovod is there, built for this PyTorch and MPI, and that two ranks meet."""

import os
import re
from typing import Any, Dict, Optional

from validate.check import check, fail
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes import mpi
from validate.probes.elf import read_elf
from validate.probes.import_errors import SLOW, why
from validate.probes.interpreter import (
    HOROVOD_DIST,
    HOROVOD_SIZE,
    IMPORT_SECONDS,
    ask,
    find_python,
)
from validate.probes.training import torch_and_horovod
from validate.process import run
from validate.remedy import in_image, only_look

LAUNCH_SECONDS = 200
REBUILD = in_image("imagegen build   # compiles Horovod again, against what is in the image")


def _python(image: Situation) -> str:
    return find_python(image.env, image.expected)


def _built(image: Situation) -> Dict[str, Any]:
    answer = torch_and_horovod(image).horovod
    if not answer.ok:
        fail(answer.problem, *why(answer, image.env))
    facts: Dict[str, Any] = answer.facts
    return facts


@check(
    "hvd.dist",
    "one Horovod is installed, of the version that the recipe names, by its own word",
    cause="another Horovod (LightCC's `light-horovod` writes over the same files) was installed",
    remedy=in_image("imagegen build", look="python3 -m pip list | grep -i horovod"),
)
def test_dist(image: Situation, measure: Measure) -> None:
    """distributions `horovod` and `light-horovod` by their metadata, horovod.__version__"""
    answer = ask(_python(image), HOROVOD_DIST, image.env, IMPORT_SECONDS)
    if not answer.ok:
        fail(answer.problem)
    dists, version = list(answer.facts["dists"]), str(answer.facts["version"])
    measure("{} {}".format(" and ".join(dists), version))
    if len(dists) != 1:
        fail("installed: {}".format(" and ".join(dists) or "neither horovod nor light-horovod"))
    if not image.expected.has("horovod"):
        return  # LightCC: lightcc.dist checks its version
    if not same_version(image.expected.version("horovod"), version):
        fail("horovod {}, the recipe says {}".format(version, image.expected.version("horovod")))


@check(
    "hvd.torch-abi",
    "Horovod's extension loads into the image's PyTorch",
    cause="it was not built, or it was built for another PyTorch than the one in the image",
    remedy=REBUILD,
    needs=("torch.import", "torch.version"),
)
def test_torch_abi(image: Situation, measure: Measure) -> None:
    """`import horovod.torch` and its mpi_lib_v2 in the image's Python"""
    measure(os.path.basename(str(_built(image)["library"])))


@check(
    "hvd.build",
    "Horovod was built with what the recipe asks for",
    cause="a library was not found while Horovod was compiled, and it went on without",
    remedy=REBUILD,
    needs=("hvd.torch-abi",),
)
def test_build(image: Situation, measure: Measure) -> None:
    """hvd.mpi_built(), nccl_built(), gloo_built()"""
    facts = _built(image)
    kinds = ("mpi", "nccl", "gloo")
    measure(", ".join(kind for kind in kinds if facts[kind]) or "nothing")
    for kind in kinds:
        promised = _promised(image, kind)
        if promised is not None and facts[kind] != promised:
            words = {True: "with", False: "without"}
            text = "built {} {}, the recipe says {}"
            fail(text.format(words[facts[kind]], kind.upper(), words[promised]))


def _promised(image: Situation, kind: str) -> Optional[bool]:
    """Return whether the recipe promises MPI, NCCL or Gloo; None if it says nothing.

    Horovod in an image for GPUs with NCCL has to use NCCL, whatever its catalog row says.
    """
    fact = image.expected.fact("horovod", kind)
    if fact is None and kind == "nccl":
        return image.expected.device == "gpu" and image.expected.has("nccl")
    return None if fact is None else str(fact).lower() == "true"


@check(
    "hvd.link",
    "Horovod loads the MPI that launches it",
    cause="it was compiled against another MPI: every rank would believe it is alone",
    remedy=REBUILD,
    needs=("hvd.torch-abi", "mpi.prefix"),
)
def test_link(image: Situation, measure: Measure) -> None:
    """the libmpi that `ldd` finds for mpi_lib_v2, against the one that it finds for ompi_info"""
    library = str(_built(image)["library"])
    elf = read_elf(library)
    wanted = [name for name in (elf.needed if elf else ()) if name.startswith("libmpi.so")]
    if image.expected.fact("horovod", "mpi") and not wanted:
        fail("{} needs no libmpi".format(os.path.basename(library)))
    own = _libmpi(library) if wanted else ""
    program = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi")) + "/bin/ompi_info"
    launcher = _libmpi(os.path.realpath(program))
    measure("{} is {}".format(", ".join(wanted), own or "not found") if wanted else "no libmpi")
    if wanted and not own:
        fail("the loader does not find {}".format(", ".join(wanted)))
    if own and launcher and own != launcher:
        fail("the launcher uses {}, Horovod would load {}".format(launcher, own))


def _libmpi(path: str) -> str:
    """Return the real path of the libmpi that the loader takes for a program or a library."""
    found = re.search(r"libmpi\.so\S* => (/\S+)", run(["ldd", path]).out)
    return os.path.realpath(found.group(1)) if found else ""


@check(
    "hvd.size",
    "two ranks under mpirun find each other",
    tier="live",
    cause="Horovod and mpirun speak different MPIs, so each rank believes it is alone",
    remedy=REBUILD,
    needs=("hvd.torch-abi", "hvd.link", "mpi.2rank"),
)
def test_size(image: Situation, measure: Measure) -> None:
    """mpirun -np 2: hvd.rank() and hvd.size() of both ranks"""
    prefix = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
    command = mpi.launch(prefix, 2, [_python(image), "-c", HOROVOD_SIZE], image.env)
    result = run(command, LAUNCH_SECONDS, image.env)
    ranks = sorted(re.findall(r"horovod rank (\d+) of (\d+)", result.out))
    measure("ranks {} of 2".format(" and ".join(rank for rank, _ in ranks)))
    if result.timed_out:
        fail(result.says(), *SLOW)
    if not result.ok:
        fail(
            result.says(),
            "the two ranks did not come up",
            only_look("validate --only mpi   # does mpirun itself work?"),
        )
    if not ranks:
        cause = "mpirun did not start them, or did not hand on what they print"
        fail("no rank printed which one it is", cause, only_look("validate --only mpi"))
    if ranks != [("0", "2"), ("1", "2")]:
        fail(
            "the ranks call themselves {}".format(
                ", ".join("{} of {}".format(*one) for one in ranks)
            )
        )
