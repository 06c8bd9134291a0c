"""Check that PyTorch loads, has the version of the recipe and was built for the device."""

import os
import re
from typing import Any, Dict

from validate.check import check, fail, skip, warn
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes import loaded
from validate.probes.dpkg import install_again, package_of, packages_with
from validate.probes.import_errors import why
from validate.probes.interpreter import find_python
from validate.probes.packages import owner_version
from validate.probes.pip import install, uninstall
from validate.probes.training import torch_and_horovod
from validate.remedy import Remedy, in_image, in_shell

ONE_RELEASE = in_image(
    "imagegen build   # on one release for all",
    look="ldd $(python3 -c 'import torch; print(torch.__file__)' | xargs dirname)/_C*.so",
)


def _facts(image: Situation) -> Dict[str, Any]:
    answer = torch_and_horovod(image).torch
    if not answer.ok:
        fail(answer.problem, *why(answer, image.env))
    facts: Dict[str, Any] = answer.facts
    return facts


@check(
    "torch.import",
    "`import torch` works in the image's Python",
    cause="PyTorch is missing or broken, or a library that it loads is",
    remedy=in_image("imagegen build", look="python3 -c 'import torch'"),
)
def test_import(image: Situation, measure: Measure) -> None:
    """`import torch` in the image's Python, 200 s"""
    measure(os.path.dirname(str(_facts(image)["file"])))


@check(
    "torch.version",
    "PyTorch is the version that the recipe names, by its own word",
    cause=(
        "PyTorch was replaced after the build, often by a `pip install` that pulled another one in"
    ),
    needs=("torch.import",),
)
def test_version(image: Situation, measure: Measure) -> None:
    """torch.__version__, torch.version.cuda, torch._C._GLIBCXX_USE_CXX11_ABI; the version of its
    package too, if the recipe says that the build reports another version"""
    facts, expected = _facts(image), image.expected
    promised, version = expected.version("torch"), str(facts["version"])
    # A build from a source archive reports what its version.txt says: 1.13.0a0 for 1.13.1.
    # Then the release is that of its package, in the package database.
    reports = str(expected.fact("torch", "reports", "") or "")
    packaged = owner_version(str(facts["file"]), image.env) if reports else ""
    right = same_version(reports or promised, version) and (
        not reports or same_version(promised, packaged)
    )
    here = "{} from {}".format(version, os.path.dirname(str(facts["file"])))
    here += ", package {}".format(packaged or "unknown") if reports else ""
    measure(here)
    if not right:
        wanted = "{}, which calls itself {}".format(promised, reports) if reports else promised
        fail("torch {}, the recipe says {}".format(here, wanted), remedy=_the_recipes(image, facts))
    cuda = expected.fact("torch", "cuda")
    if cuda and facts["cuda"] != cuda:
        text = "torch was built for CUDA {}, the recipe says {}".format(facts["cuda"], cuda)
        fail(text, remedy=_from_index(image))
    abi = str(expected.fact("torch", "cxx11_abi", "") or "")
    if abi in ("0", "1") and bool(facts["cxx11_abi"]) != (abi == "1"):
        text = "torch has _GLIBCXX_USE_CXX11_ABI={}, the recipe says {}"
        cause = "this wheel is of another build: extensions of the image meet undefined symbols"
        fail(text.format(int(facts["cxx11_abi"]), abi), cause, in_image("imagegen build"))


def _the_recipes(image: Situation, facts: Dict[str, Any]) -> Remedy:
    """Return what brings the recipe's PyTorch back: its package, or the wheel of its index."""
    package = package_of(image.root, str(facts["file"]))[0]
    if package:
        return in_shell(install_again(package))
    if packages_with(image.root, "dist-packages/torch"):
        return in_shell(uninstall(find_python(image.env, image.expected), "torch"))
    return _from_index(image)


@check(
    "torch.cuda-build",
    "PyTorch was built with CUDA",
    cause="pip took the CPU wheel: the index of the CUDA wheels was not given",
    needs=("torch.import",),
)
def test_cuda_build(image: Situation, measure: Measure) -> None:
    """torch.version.cuda is not None"""
    if image.expected.device != "gpu":
        skip("not-in-recipe", "the image is for {}".format(image.expected.device))
    cuda = _facts(image)["cuda"]
    toolkit = image.expected.version("cuda") if image.expected.has("cuda") else ""
    beside = ", beside the image's {}: extensions are compiled with that".format(toolkit)
    # A wheel has a CUDA of its own, which need not be that of the image.
    other = bool(cuda and toolkit) and not same_version(str(cuda), toolkit)
    measure("CUDA {}{}".format(cuda, beside if other else ""))
    if cuda is None:
        fail("torch.version.cuda is None", remedy=_from_index(image))


def _from_index(image: Situation) -> Remedy:
    """Return the line that installs the recipe's wheel from PyTorch's index of its CUDA."""
    version, cuda = image.expected.version("torch"), str(image.expected.fact("torch", "cuda") or "")
    if not re.match(r"\d+\.\d+$", cuda):
        return in_image("imagegen build")
    index = "https://download.pytorch.org/whl/cu" + cuda.replace(".", "")
    words = ["--force-reinstall", "--no-deps", "--index-url", index, "torch==" + version]
    return in_shell(install(find_python(image.env, image.expected), *words))


@check(
    "torch.numpy",
    "PyTorch and NumPy hand arrays to each other",
    cause="NumPy was upgraded past the release that PyTorch was compiled for, often by another pip",
    needs=("torch.import",),
)
def test_numpy(image: Situation, measure: Measure) -> None:
    """torch.from_numpy(torch.ones(2).numpy()), as data loaders do"""
    facts = _facts(image)
    if not facts["numpy"]:
        skip("not-installed", "the image has no NumPy")
    measure("NumPy {}".format(facts["numpy"]))
    if facts["numpy_problem"]:
        text = "with NumPy {}: {}".format(facts["numpy"], facts["numpy_problem"])
        fail(text, remedy=_numpy(image, facts))


def _numpy(image: Situation, facts: Dict[str, Any]) -> Remedy:
    """Return what brings a NumPy that PyTorch knows: the distribution's, or one before 2."""
    python = find_python(image.env, image.expected)
    if package_of(image.root, str(facts.get("numpy_file", "")))[0]:
        return in_shell(install_again("python3-numpy"))
    if packages_with(image.root, "dist-packages/numpy"):
        return in_shell(uninstall(python, "numpy"))
    return in_shell(install(python, "'numpy<2'"))


@check(
    "torch.loaded-libs",
    "one process loads one copy of each library, PyTorch and Horovod together",
    cause=(
        "a wheel brings a library that the image has as well; which one answers depends "
        "on the order"
    ),
    remedy=ONE_RELEASE,
    needs=("torch.import",),
)
def test_loaded_libs(image: Situation, measure: Measure) -> None:
    """/proc/self/maps after `import torch, horovod.torch`: libnccl, libcudnn, libcudart, libmpi,
    libibverbs, libtorch_cpu and libc10 by real path. Two copies of a library are a warning; two
    releases of a library that Horovod's extension is linked to (DT_NEEDED) are a failure"""
    copies = loaded.families(_facts(image)["mapped"])
    measure(", ".join(sorted(copies)) or "none of " + ", ".join(loaded.WHEELS))
    twice = {family: paths for family, paths in copies.items() if len(paths) > 1}
    if not twice:
        return
    text = "; ".join(
        "{}: {}".format(f, loaded.describe_copies(p)) for f, p in sorted(twice.items())
    )
    mixed = loaded.mixed(twice, str(torch_and_horovod(image).horovod.facts.get("library", "")))
    if mixed:
        cause = "Horovod is linked to {}, of which PyTorch brings another release"
        fail(text, cause.format(", ".join(mixed)), ONE_RELEASE)
    warn(text)
