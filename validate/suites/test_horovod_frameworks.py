"""Check that Horovod loads into each framework of the recipe, and that two ranks add up there."""

import os

from validate.check import check, fail, skip
from validate.fixtures import Measure, Situation
from validate.probes import horovod
from validate.probes.import_errors import SLOW
from validate.probes.python_start import why_not
from validate.remedy import in_image

REBUILD = in_image("imagegen build   # compiles Horovod again, for each framework of the image")
NOT_BUILT = "it was not built for this framework, or for another release of it"
DOES_NOT_ADD_UP = "Horovod speaks another MPI than mpirun here, or was compiled for another release"
EXPECTED = [("0", "3.0"), ("1", "3.0")]


def _loads(image: Situation, component: str) -> horovod.Framework:
    """Fail unless Horovod's extension for a framework of the recipe loads; return the framework."""
    framework = horovod.of(image, component)
    answer = horovod.answer(image, framework)
    if not answer.ok:
        fail(answer.problem, *why_not(image, answer, horovod.script(image, framework)))
    return framework


def _library(image: Situation, framework: horovod.Framework) -> str:
    return os.path.basename(str(horovod.answer(image, framework).facts["library"]))


@check(
    "hvd.tf-abi",
    "Horovod's extension loads into the image's TensorFlow",
    cause=NOT_BUILT,
    remedy=REBUILD,
    needs=("tf.import", "tf.version"),
)
def test_tf_abi(image: Situation, measure: Measure) -> None:
    """`import horovod.tensorflow` in the image's Python, after `import tensorflow`"""
    measure(_library(image, _loads(image, "tensorflow")))


@check(
    "hvd.mxnet-abi",
    "Horovod's extension loads into the image's MXNet",
    cause=NOT_BUILT,
    remedy=REBUILD,
    needs=("mxnet.import", "mxnet.version"),
)
def test_mxnet_abi(image: Situation, measure: Measure) -> None:
    """`import horovod.mxnet` in the image's Python, after `import mxnet`"""
    measure(_library(image, _loads(image, "mxnet")))


def _adds_up(image: Situation, measure: Measure, component: str) -> None:
    """Fail unless two ranks have the right sum through a framework of the recipe."""
    framework = _loads(image, component)
    result = horovod.two_ranks(image, framework)
    if horovod.ranks_of(result) != horovod.TWO and framework == horovod.first(image):
        skip("blocked-by", "hvd.size")
    sums = horovod.sums_of(result)
    measure("1 + 2 is {}".format(" and ".join(total for _, total in sums) or "unknown"))
    if result.timed_out:
        fail(result.says(), *SLOW)
    if sums and sums != EXPECTED:
        said = "; ".join("rank {} has {}".format(*one) for one in sums)
        fail("1 + 2 on two ranks: {}".format(said))
    if not result.ok or not sums:
        fail(result.says(), "a rank ends before it has the sum, or right after it")


@check(
    "hvd.torch",
    "two ranks under mpirun add up through Horovod for PyTorch",
    tier="live",
    cause=DOES_NOT_ADD_UP,
    remedy=REBUILD,
    needs=("torch.import", "mpi.2rank"),
)
def test_torch(image: Situation, measure: Measure) -> None:
    """mpirun -np 2: `import horovod.torch`, hvd.allreduce of rank + 1, 65536 times: 3 everywhere"""
    _adds_up(image, measure, "torch")


@check(
    "hvd.tf",
    "two ranks under mpirun add up through Horovod for TensorFlow",
    tier="live",
    cause=DOES_NOT_ADD_UP,
    remedy=REBUILD,
    needs=("tf.import", "mpi.2rank"),
)
def test_tf(image: Situation, measure: Measure) -> None:
    """mpirun -np 2: `import horovod.tensorflow`, hvd.allreduce of rank + 1 on the CPU, 65536 times,
    eagerly or in a graph, as the release computes: 3 everywhere"""
    _adds_up(image, measure, "tensorflow")


@check(
    "hvd.mxnet",
    "two ranks under mpirun add up through Horovod for MXNet",
    tier="live",
    cause=DOES_NOT_ADD_UP,
    remedy=REBUILD,
    needs=("mxnet.import", "mpi.2rank"),
)
def test_mxnet(image: Situation, measure: Measure) -> None:
    """mpirun -np 2: `import horovod.mxnet`, hvd.allreduce of rank + 1, 65536 times: 3 everywhere"""
    _adds_up(image, measure, "mxnet")
