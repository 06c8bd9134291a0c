"""Check that CUDA is the toolkit of the recipe, and that the host's driver can serve it."""

import os
from typing import List, NoReturn, Optional

from validate.check import check, fail, skip, warn
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes import cuda, gpu, kubernetes
from validate.probes.aside import aside, one_line, unset
from validate.probes.files import is_mounted, mount_points, under
from validate.probes.gpu_scripts import ASK_MEMORY
from validate.probes.libraries import (
    environment,
    flavour,
    instead_of,
    libraries,
    out_of_the_way,
    version_in_name,
    without_driver,
)
from validate.probes.native import OUT, ZERO, LibraryAnswers, call_functions
from validate.process import run
from validate.remedy import in_image, in_shell, on_host

REFUSES = on_host("dmesg | grep -i nvrm   # names the fault; then reboot", look="nvidia-smi")


def _promised(image: Situation) -> str:
    return image.expected.version("cuda")


@check(
    "cuda.toolkit",
    "the toolkit is the one that the recipe names, by its own files and compiler",
    cause="another toolkit was installed over it, or /usr/local/cuda points to another one",
    remedy=in_image("imagegen build", look="ls -l /usr/local/cuda /etc/alternatives/cuda"),
)
def test_toolkit(image: Situation, measure: Measure) -> None:
    """/usr/local/cuda/version.json or version.txt, CUDA_VERSION of cuda.h, `nvcc --version`, the
    name of libcudart; nvcc has to be in a devel image and not in a runtime one"""
    found = cuda.written(image.root)
    nvcc = cuda.compiler(image.root, image.env.get("PATH", ""))
    if nvcc:
        found["nvcc"] = cuda.parse_nvcc(run([nvcc, "--version"], env=image.env).out)
    library = version_in_name(_cudart(image), "cuda_runtime")
    if library:
        # Its third part is not nvcc's: both count builds, each its own.
        found["libcudart"] = cuda.major_minor(library)
    measure(", ".join("{} {}".format(name, version) for name, version in found.items()))
    _flavour(flavour(image), nvcc)
    if not found:
        skip("not-installed", "no file says which toolkit this is; cuda.cudart measures it")
    against = cuda.differs(_promised(image), found)
    if against:
        fail("{}, the recipe says {}".format(against, _promised(image)))
    build = str(image.expected.fact("cuda", "nvcc") or "")
    if build and nvcc and not same_version(build, found["nvcc"]):
        fail("nvcc says {}, the recipe says {}".format(found["nvcc"] or "nothing", build))


def _flavour(promised: str, nvcc: str) -> None:
    if promised == "devel" and not nvcc:
        fail("nvcc is neither in {}/bin nor on PATH, the recipe says devel".format(cuda.HOME))
    if promised == "runtime" and nvcc:
        remedy = in_shell(aside("/", nvcc))
        fail("{} is there, the recipe says runtime".format(nvcc), remedy=remedy)


def _cudart(image: Situation) -> str:
    """Return the run time that a program would load: the loader's, else that of a wheel."""
    return libraries(image).first(cuda.cudart(_promised(image)))


@check(
    "cuda.cudart",
    "the CUDA run time loads and is of the release that the recipe names, by its own word",
    cause="a library of another toolkit comes first, or none is on the loader's path",
    remedy=in_image("imagegen build", look="ldconfig -p | grep libcudart; echo $LD_LIBRARY_PATH"),
)
def test_cudart(image: Situation, measure: Measure) -> None:
    """cudaRuntimeGetVersion(int *) of the libcudart that dlopen finds, in a process of its own"""
    name, path = cuda.cudart(_promised(image)), _cudart(image)
    if not path:
        fail("{} is nowhere on the loader's path, nor in a wheel".format(name))
    answers = call_functions(path, {"cudaRuntimeGetVersion": OUT}, environment(image, path))
    if answers.problem:
        fail(answers.problem)
    number = answers.value("cudaRuntimeGetVersion")
    found = cuda.release(number) if number else _without_driver(image, answers, path)
    how = "" if number else ", by its name: before CUDA 12 it answers with a driver only"
    measure("{} from {}{}".format(found, path, how))
    if found != cuda.major_minor(_promised(image)):
        why = instead_of(image, name, cuda.major_minor(_promised(image)))
        fail("{} says {}, the recipe says {}".format(path, found, _promised(image)), *why)


def _without_driver(image: Situation, answers: LibraryAnswers, path: str) -> str:
    """Return the release of a run time that answers only with a driver, from its name."""
    code, found = (
        answers.code("cudaRuntimeGetVersion"),
        cuda.major_minor(version_in_name(path, "cuda_runtime")),
    )
    if code is None or code != cuda.INSUFFICIENT_DRIVER:
        fail("cudaRuntimeGetVersion of {} returned {}".format(path, code))
    if not found:
        skip(
            without_driver(image),
            "{} answers with a driver only, and its name does not tell".format(path),
        )
    return found


@check(
    "cuda.libcuda-origin",
    "libcuda.so.1 is the driver's own: no stub, and no compatibility package by accident",
    cause="the build put the stubs on the loader's path to link against them, and left them there",
)
def test_libcuda_origin(image: Situation, measure: Measure) -> None:
    """real path of the libcuda.so.1 and libcuda.so that dlopen finds: a mount, not below /stubs/ or
    /compat/, but the one of cuda-compat where the recipe has that"""
    loader = libraries(image).loader
    found = loader.find(gpu.DRIVER) + loader.find("libcuda.so")
    real = list(dict.fromkeys(os.path.realpath(path) for path in found))
    measure(", ".join(real) or "none: the driver brings it at start")
    stubs = [path for path in found if "/stubs/" in path or "/stubs/" in os.path.realpath(path)]
    if stubs:
        lines = [out_of_the_way(image, path, whole_folder=True)[1] for path in stubs]
        fail("the loader finds {}".format(", ".join(stubs)), remedy=in_shell(one_line(lines)))
    compat = os.path.realpath(found[0]) if found else ""
    if "cuda-compat" in image.expected.components:
        if "/compat" in compat:
            return
        text = "the recipe has cuda-compat, the loader takes {}".format(compat or "none")
        fail(text, "its folder is not the first on the loader's path", in_image("imagegen build"))
    if "/compat/" in compat:
        warn(
            "the loader takes {}".format(compat),
            "a cuda-compat package is on the loader's path: on a newer driver it fails with 803",
            out_of_the_way(image, found[0], whole_folder=True)[1],
        )
    if found and not is_mounted(_inside(image.root, found[0]), mount_points(image.root)):
        warn(
            "{} belongs to the image".format(found[0]),
            "a package brought the driver's library: it serves the hosts of one driver only",
            out_of_the_way(image, found[0])[1],
        )


def _inside(root: str, path: str) -> str:
    """Return the real path as the container names it."""
    real = os.path.realpath(path)
    return real if root == "/" else "/" + os.path.relpath(real, os.path.realpath(root))


@check(
    "cuda.env",
    "no variable hides the GPUs, slows CUDA down, or attaches a debugger",
    severity="warn",
    cause="it was left over from debugging, in the image or in the launch",
)
def test_env(image: Situation, measure: Measure) -> None:
    """CUDA_VISIBLE_DEVICES empty or -1, CUDA_LAUNCH_BLOCKING=1, and the ten variables that DCGM
    warns of"""
    wrong = [name for name in cuda.BAD_ENV if name in image.env]
    if image.env.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        wrong.append("CUDA_VISIBLE_DEVICES")
    if image.env.get("CUDA_LAUNCH_BLOCKING") == "1":
        wrong.append("CUDA_LAUNCH_BLOCKING")
    measure("none of {}".format(len(cuda.BAD_ENV) + 2))
    if wrong:
        seen = ["{}={}".format(name, image.env[name]) for name in wrong]
        fail(", ".join(seen), remedy=unset(wrong))


def _driver(image: Situation) -> LibraryAnswers:
    """Initialise the driver's library; skip or fail the check if there is none."""
    path = libraries(image).loader.first(gpu.DRIVER)
    functions = {"cuInit": ZERO, "cuDriverGetVersion": OUT}
    if path:
        called: LibraryAnswers = image.once(
            "libcuda", lambda: call_functions(path, functions, environment(image, path))
        )
        return called
    return _no_driver(image)


def _no_driver(image: Situation) -> NoReturn:
    cards, nodes = cuda.gpus(image.root), cuda.nodes(image.root)
    if kubernetes.launches_only(image.env) and not nodes:
        skip("not-applicable", "the launcher of an MPIJob has no GPU of its own")
    if nodes:
        fail(
            "{} are here, libcuda.so.1 is not".format(", ".join(nodes)),
            "the devices were passed by hand, without the driver's libraries",
            cuda.PASS_GPUS,
        )
    if cards:
        fail(
            "{} GPUs on the host's PCI bus, no device and no libcuda.so.1 here".format(len(cards)),
            "the container was started without its GPUs",
            cuda.PASS_GPUS,
        )
    skip("no-gpu-hw", "the host has no NVIDIA GPU")


@check(
    "cuda.init",
    "the driver can be used: cuInit says so",
    tier="live",
    cause="the driver of the host, its devices or its state do not let CUDA start",
    remedy=cuda.PASS_GPUS,
    needs=("cuda.libcuda-origin", "gpu.nodes"),
)
def test_init(image: Situation, measure: Measure) -> None:
    """cuInit(0) of libcuda.so.1 in a process of its own: 0 is good; 34, 100, 802, 803, 804 and 999
    have causes of their own"""
    answers = _driver(image)
    if answers.problem:
        fail(answers.problem, "libcuda.so.1 does not load", cuda.PASS_GPUS)
    code = answers.code("cuInit")
    measure("cuInit {} in {}".format(code, answers.path))
    if code == 100 and not cuda.gpus(image.root):
        skip("no-gpu-hw", "cuInit 100: the host has no NVIDIA GPU")
    if code != 0:
        text = "cuInit returned {}".format(code)
        known = cuda.INIT_CODES.get(code or 0)
        fail(text, *(known or ("the driver refuses", REFUSES)))


@check(
    "cuda.driver-ver",
    "the driver of the host is new enough for the toolkit",
    tier="live",
    cause="the driver of the host is older than the toolkit needs",
    needs=("cuda.init",),
)
def test_driver_ver(image: Situation, measure: Measure) -> None:
    """cuDriverGetVersion, /proc/driver/nvidia/version, against the driver of the toolkit's release
    notes and the floor of minor version compatibility"""
    number = _driver(image).value("cuDriverGetVersion")
    promised, driver = cuda.major_minor(_promised(image)), cuda.driver_on_host(image.root)
    serves = cuda.release(number) if number else "unknown"
    measure("driver {} serves CUDA {}".format(driver or "of unknown version", serves))
    floor = cuda.FLOOR_DRIVER.get(promised.partition(".")[0])
    native = cuda.NATIVE_DRIVER.get(promised, "")
    if number and cuda.numbers(serves) >= cuda.numbers(promised):
        return
    text = "driver {} serves CUDA {}, the recipe has {}".format(driver or "here", serves, promised)
    newer = native + " or later" if native else "a later one"
    remedy = on_host("update the host's driver to {}".format(newer), look="nvidia-smi")
    if _above(driver, floor):
        warn(
            text, "minor version compatibility holds, but kernels compiled at run time fail", remedy
        )
    fail(text, "", remedy)


def _above(driver: str, floor: Optional[str]) -> bool:
    return bool(driver and floor) and cuda.numbers(driver) >= cuda.numbers(floor or "")


@check(
    "cuda.malloc",
    "every GPU gives memory: a context can be made on it",
    tier="live",
    cause="the GPU is full, in exclusive use, in an error state, or its context cannot start",
    remedy=on_host("end what else uses the GPU; reboot where it shows ERR!", look="nvidia-smi"),
    needs=("cuda.cudart", "cuda.init"),
)
def test_malloc(image: Situation, measure: Measure) -> None:
    """cudaGetDeviceCount, then cudaSetDevice, cudaMalloc of 1 KiB and cudaFree for each GPU, in a
    process of its own"""
    path = _cudart(image)
    answer = gpu.ask_library(ASK_MEMORY, path, environment(image, path))
    if answer.problem or answer.code:
        fail(answer.problem or "cudaGetDeviceCount returned {}".format(answer.code))
    codes = answer.facts["codes"]
    measure("1 KiB on {} GPUs".format(len(codes)))
    wrong = ["GPU {} returned {}".format(n, code) for n, code in enumerate(codes) if code]
    if wrong or not codes:
        fail(", ".join(wrong) or "CUDA counts no GPU")


@check(
    "cuda.uvm",
    "the node of unified memory is there: NCCL needs it since 2.23",
    tier="live",
    cause="the module nvidia-uvm was not loaded on the host when the container started",
    remedy=on_host("nvidia-modprobe -u -c=0   # then start the container again"),
    needs=("cuda.init",),
)
def test_uvm(image: Situation, measure: Measure) -> None:
    """/dev/nvidia-uvm"""
    nodes: List[str] = cuda.nodes(image.root)
    measure("/dev/nvidia-uvm")
    if not nodes and not cuda.gpus(image.root):
        skip("no-gpu-hw", "the host has no NVIDIA GPU")
    if not os.path.exists(under(image.root, "/dev/nvidia-uvm")):
        fail("/dev/nvidia-uvm is not there")
