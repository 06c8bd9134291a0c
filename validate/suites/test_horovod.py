"""Check that one Horovod is there, built for this PyTorch and MPI, and that two ranks meet."""

import os
from typing import Dict, Optional, Tuple

from validate.check import check, fail
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes import horovod
from validate.probes.elf import read_elf
from validate.probes.import_errors import SLOW
from validate.probes.interpreter import HOROVOD_DIST, IMPORT_SECONDS, ask, find_python
from validate.probes.linked import loaded_library
from validate.probes.python_start import why_not
from validate.remedy import in_image, only_look

REBUILD = in_image("imagegen build   # compiles Horovod again, against what is in the image")


def _python(image: Situation) -> str:
    return find_python(image.env, image.expected)


@check(
    "hvd.dist",
    "one Horovod is installed, of the version that the recipe names, by its own word",
    cause="another Horovod (LightCC's `light-horovod` writes over the same files) was installed",
    remedy=in_image("imagegen build", look="python3 -m pip list | grep -i horovod"),
    needs=("py.start",),
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
    torch = horovod.of(image, "torch")
    answer = horovod.answer(image, torch)
    if not answer.ok:
        fail(answer.problem, *why_not(image, answer, horovod.script(image, torch)))
    measure(os.path.basename(str(answer.facts["library"])))


@check(
    "hvd.build",
    "Horovod was built with what the recipe asks for",
    cause="a library was not found while Horovod was compiled, and it went on without",
    remedy=REBUILD,
)
def test_build(image: Situation, measure: Measure) -> None:
    """hvd.mpi_built(), nccl_built(), gloo_built() in each framework of the recipe"""
    kinds = ("mpi", "nccl", "gloo")
    built = {
        title: ", ".join(kind for kind in kinds if answer.facts[kind]) or "nothing"
        for title, answer in horovod.answers(image).items()
    }
    measure(_by_framework(built))
    for title, answer in horovod.answers(image).items():
        for kind in kinds:
            promised = _promised(image, kind)
            if promised is not None and answer.facts[kind] != promised:
                words = {True: "with", False: "without"}
                text = "built {} {}{}, the recipe says {}"
                of_it = " for {}".format(title) if len(built) > 1 else ""
                fail(text.format(words[not promised], kind.upper(), of_it, words[promised]))


def _by_framework(seen: Dict[str, str]) -> str:
    """Say what was seen: once, if it is the same for all frameworks."""
    if len(set(seen.values())) == 1:
        names = " for {}".format(", ".join(seen)) if len(seen) > 1 else ""
        return next(iter(seen.values())) + names
    return "; ".join("{}: {}".format(*one) for one in seen.items())


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
    needs=("mpi.prefix",),
)
def test_link(image: Situation, measure: Measure) -> None:
    """the libmpi that `ldd` finds for Horovod's extension in each framework of the recipe
    (mpi_lib_v2, mpi_lib), against the one that it finds for ompi_info"""
    program = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi")) + "/bin/ompi_info"
    launcher = loaded_library(os.path.realpath(program), "libmpi")
    libraries = {
        title: str(answer.facts["library"]) for title, answer in horovod.answers(image).items()
    }
    seen = {title: _linked(image, library) for title, library in libraries.items()}
    measure(_by_framework({title: words for title, (words, _) in seen.items()}))
    for title, (_, own) in seen.items():
        if own and launcher and own != launcher:
            loads = "Horovod" if len(seen) == 1 else "Horovod for {}".format(title)
            fail("the launcher uses {}, {} would load {}".format(launcher, loads, own))


def _linked(image: Situation, library: str) -> Tuple[str, str]:
    """Return what an extension is linked to, in words, and the libmpi that it would load."""
    elf = read_elf(library)
    wanted = [name for name in (elf.needed if elf else ()) if name.startswith("libmpi.so")]
    if image.expected.fact("horovod", "mpi") and not wanted:
        fail("{} needs no libmpi".format(os.path.basename(library)))
    own = loaded_library(library, "libmpi") if wanted else ""
    if wanted and not own:
        fail("the loader does not find {}".format(", ".join(wanted)))
    return ("{} is {}".format(", ".join(wanted), own) if wanted else "no libmpi"), own


@check(
    "hvd.size",
    "two ranks under mpirun find each other",
    tier="live",
    cause="Horovod and mpirun speak different MPIs, so each rank believes it is alone",
    remedy=REBUILD,
    needs=("hvd.link", "mpi.2rank"),
)
def test_size(image: Situation, measure: Measure) -> None:
    """mpirun -np 2: hvd.rank() and hvd.size() of both ranks, in a framework of the recipe"""
    result = horovod.two_ranks(image, horovod.first(image))
    ranks = horovod.ranks_of(result)
    measure("ranks {} of 2".format(" and ".join(rank for rank, _ in ranks)))
    if ranks == horovod.TWO:
        return
    if len(ranks) == 2:
        names = ", ".join("{} of {}".format(*one) for one in ranks)
        fail("the ranks call themselves {}".format(names))
    if result.timed_out:
        fail(result.says(), *SLOW)
    if not result.ok:
        fail(
            result.says(),
            "the two ranks did not come up",
            only_look("validate --only mpi   # does mpirun itself work?"),
        )
    cause = "mpirun did not start them, or did not hand on what they print"
    fail(
        "{} printed which one it is".format("one rank" if ranks else "no rank"),
        cause,
        only_look("validate --only mpi"),
    )
