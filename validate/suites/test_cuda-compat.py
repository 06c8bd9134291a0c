"""Check that the libcuda of a newer driver is there, for the older kernel drivers of some hosts."""

import os

from validate.check import check, fail
from validate.fixtures import Measure, Situation
from validate.probes.cuda import numbers
from validate.probes.files import names, under
from validate.remedy import in_image

NAME = "libcuda.so."


@check(
    "cuda-compat.lib",
    "the libcuda of the recipe's cuda-compat is there, and of the driver release that it names",
    cause="the package was removed, or /usr/local/cuda leads to another toolkit",
    remedy=in_image("imagegen build", look="ls -l /usr/local/cuda/compat"),
)
def test_lib(image: Situation, measure: Measure) -> None:
    """libcuda.so.1 and the version in the name of libcuda.so.* in the folder of cuda-compat"""
    folder = str(image.expected.fact("cuda-compat", "folder", "/usr/local/cuda/compat"))
    promised = str(image.expected.fact("cuda-compat", "libcuda", "0"))
    path = under(image.root, folder)
    found = [one[len(NAME) :] for one in names(path) if one.startswith(NAME)]
    versions = sorted((one for one in found if one != "1"), key=numbers)
    measure(", ".join("{}{}".format(NAME, one) for one in versions) or "none in " + folder)
    if not versions or not os.path.exists(os.path.join(path, NAME + "1")):
        fail("{} has no libcuda.so.1 with a file of a driver's release".format(folder))
    if numbers(versions[-1])[:1] < numbers(promised)[:1]:
        fail("libcuda is of driver {}, the recipe says {}".format(versions[-1], promised))
