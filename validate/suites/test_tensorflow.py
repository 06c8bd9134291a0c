"""Check that TensorFlow loads, has the version of the recipe and was built for the device."""

import os

from validate.check import check, fail, skip
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes.frameworks import (
    ask_framework,
    distributions,
    require_import,
    version_of,
)
from validate.remedy import in_image

DISTRIBUTIONS = ["tensorflow", "tensorflow-gpu", "ttensorflow", "tensorflow-cpu"]


@check(
    "tf.import",
    "`import tensorflow` works in the image's Python",
    cause="TensorFlow is missing or broken, or a library that it loads is",
    remedy=in_image("imagegen build", look="python3 -c 'import tensorflow'"),
    needs=("py.start",),
)
def test_import(image: Situation, measure: Measure) -> None:
    """`import tensorflow` in the image's Python, 200 s"""
    answer = ask_framework(image, "tensorflow")
    measure(os.path.dirname(str(answer.facts.get("file", ""))))
    require_import(image, answer, "tensorflow")


@check(
    "tf.version",
    "TensorFlow is the version that the recipe names",
    cause="it was replaced after the build, often by a `pip install` that pulled another one in",
    remedy=in_image("imagegen build", look="python3 -m pip list | grep -i tensorflow"),
    needs=("py.start",),
)
def test_version(image: Situation, measure: Measure) -> None:
    """tf.__version__, or the distribution's metadata where only the driver is missing"""
    answer = ask_framework(image, "tensorflow")
    # a vendor's build has a suffix after + that its own version lacks
    promised = image.expected.version("tensorflow").partition("+")[0]
    found = version_of(image, answer, DISTRIBUTIONS)
    if not found:
        skip("blocked-by", "tf.import")
    measure(found + ("" if answer.ok else " by its metadata: it cannot be imported without a GPU"))
    if not same_version(promised, found):
        fail("tensorflow {}, the recipe says {}".format(found, promised))


@check(
    "tf.cuda-build",
    "TensorFlow was built with CUDA, for the CUDA of the recipe",
    cause="pip took the CPU wheel, or the wheel of another CUDA",
    remedy=in_image("imagegen build", look="python3 -m pip list | grep -i tensorflow"),
    needs=("tf.import",),
)
def test_cuda_build(image: Situation, measure: Measure) -> None:
    """tf.test.is_built_with_cuda(), tf.sysconfig.get_build_info()"""
    if not image.expected.has("cuda"):
        skip("not-in-recipe", "the image has no CUDA")
    facts = ask_framework(image, "tensorflow").facts
    built = str(facts["cuda"])
    measure("CUDA {}".format(built or "of a release that it does not tell"))
    if not facts["cuda_build"]:
        dists = [name for name in DISTRIBUTIONS if name in distributions(image)]
        fail("{} was built without CUDA".format(" and ".join(dists) or "tensorflow"))
    promised = str(image.expected.fact("tensorflow", "cuda") or "")
    if built and promised and not (same_version(built, promised) or same_version(promised, built)):
        fail("built for CUDA {}, the recipe says {}".format(built, promised))
