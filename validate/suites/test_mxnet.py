"""Check that MXNet loads and has the version of the recipe."""

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


@check(
    "mxnet.import",
    "`import mxnet` works in the image's Python",
    cause="MXNet is missing or broken, or a library that it loads is",
    remedy=in_image("imagegen build", look="python3 -c 'import mxnet'"),
    needs=("py.start",),
)
def test_import(image: Situation, measure: Measure) -> None:
    """`import mxnet` in the image's Python, 200 s"""
    answer = ask_framework(image, "mxnet")
    measure(os.path.dirname(str(answer.facts.get("file", ""))))
    require_import(image, answer, "mxnet")


@check(
    "mxnet.version",
    "MXNet is the version that the recipe names",
    cause="it was replaced after the build, often by a `pip install` that pulled another one in",
    remedy=in_image("imagegen build", look="python3 -m pip list | grep -i mxnet"),
    needs=("py.start",),
)
def test_version(image: Situation, measure: Measure) -> None:
    """mxnet.__version__, or the distribution's metadata where only the driver is missing"""
    answer, promised = ask_framework(image, "mxnet"), image.expected.version("mxnet")
    wheels = [name for name in distributions(image) if name.split("-")[0] == "mxnet"]
    found = version_of(image, answer, wheels)
    if not found:
        skip("blocked-by", "mxnet.import")
    measure(found + ("" if answer.ok else " by its metadata: it cannot be imported without a GPU"))
    if not same_version(promised, found):
        fail("mxnet {}, the recipe says {}".format(found, promised))
