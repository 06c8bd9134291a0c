"""Check that the host's driver serves the CUDA that PyTorch brings, whatever toolkit there is."""

import os

from validate.check import check, fail, skip, warn
from validate.fixtures import Measure, Situation
from validate.probes import cuda, gpu
from validate.probes.libraries import libraries
from validate.probes.training import torch_and_horovod
from validate.remedy import on_host


@check(
    "torch.driver",
    "the driver of the host serves the CUDA that PyTorch was built for",
    tier="live",
    cause="the driver of the host is older than this build of PyTorch needs: it sees no GPU",
    needs=("torch.import",),
)
def test_driver(image: Situation, measure: Measure) -> None:
    """torch.version.cuda, /proc/driver/nvidia/version, against the driver of NVIDIA's release notes
    and the floor of minor version compatibility; cuda.driver-ver says it of the image's toolkit"""
    built = str(torch_and_horovod(image).torch.facts.get("cuda") or "")
    if not built:
        skip("not-in-recipe", "PyTorch is built for CPUs")
    toolkit = image.expected.version("cuda") if image.expected.has("cuda") else ""
    if toolkit and cuda.major_minor(toolkit) == cuda.major_minor(built):
        skip("not-applicable", "it is the CUDA of the image: see cuda.driver-ver")
    driver = cuda.driver_on_host(image.root)
    if not driver:
        skip("no-gpu-hw", "there is no driver")
    if "/compat/" in os.path.realpath(libraries(image).loader.first(gpu.DRIVER)):
        skip("not-applicable", "a cuda-compat package takes the place of the driver's library")
    measure("CUDA {}, driver {}".format(built, driver))
    native = cuda.NATIVE_DRIVER.get(cuda.major_minor(built), "")
    floor = cuda.FLOOR_DRIVER.get(built.partition(".")[0], "")
    if native and cuda.numbers(driver) >= cuda.numbers(native):
        return
    text = "PyTorch is built for CUDA {}, the driver is {}".format(built, driver)
    newer = native or floor
    remedy = on_host("update the host's driver to {} or later".format(newer), look="nvidia-smi")
    served = bool(floor) and cuda.numbers(driver) >= cuda.numbers(floor)
    if served and native:
        cause = "minor version compatibility holds, but kernels compiled at run time fail"
        warn(text, cause, remedy)
    if newer and not served:
        fail(text, remedy=remedy)
