"""Check that there is one complete cuDNN of the recipe's version, without a GPU."""

import os
from typing import Dict, List

from validate.check import check, fail, skip, warn
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes import cuda, cudnn
from validate.probes.files import header_version, under
from validate.probes.libraries import (
    back_on_the_path,
    environment,
    flavour,
    instead_of,
    libraries,
    out_of_the_way,
    version_in_name,
    without_driver,
)
from validate.probes.native import SIZE, LibraryAnswers, call_functions
from validate.remedy import in_image

CALLS = {"cudnnGetVersion": SIZE, "cudnnGetCudartVersion": SIZE}


def _promised(image: Situation) -> str:
    return image.expected.version("cudnn")


def _name(image: Situation) -> str:
    return str(image.expected.fact("cudnn", "soname", "")) or cudnn.soname(_promised(image))


def _package(image: Situation) -> str:
    return "libcudnn" + _promised(image).partition(".")[0]


def _ask(image: Situation, path: str) -> LibraryAnswers:
    called: LibraryAnswers = image.once(
        path, lambda: call_functions(path, CALLS, environment(image, path))
    )
    return called


def _needs_driver(image: Situation, path: str) -> bool:
    """Return whether cuDNN failed to load without a driver: some load libcuda.so.1, such as 8.5."""
    return "libcuda.so.1" in _ask(image, path).problem


def _said(image: Situation, path: str) -> str:
    """Return the version that the library reports, or that in its name if it needs a driver."""
    number = _ask(image, path).value("cudnnGetVersion")
    if number:
        return cudnn.cudnn_version(number)
    by_name = cudnn.major_minor_patch(version_in_name(path, "cudnn"))
    return by_name if _needs_driver(image, path) else ""


@check(
    "cudnn.version",
    "cuDNN loads and is the version that the recipe names, by its own word",
    cause="another cuDNN comes first on the loader's path, or was installed over it",
    remedy=in_image("imagegen build", look="ldconfig -p | grep libcudnn.so; echo $LD_LIBRARY_PATH"),
)
def test_version(image: Situation, measure: Measure) -> None:
    """cudnnGetVersion() and cudnnGetCudartVersion() of the libcudnn.so.N that dlopen finds, in a
    process of its own"""
    path = libraries(image).first(_name(image))
    if not path:
        fail("{} is nowhere on the loader's path, nor in a wheel".format(_name(image)))
    called, by_name = _ask(image, path), _needs_driver(image, path)
    if called.problem and not by_name:
        fail(called.problem)
    if by_name and not _said(image, path):
        skip(without_driver(image), "{} answers with a driver only".format(path))
    found, built = _said(image, path), called.value("cudnnGetCudartVersion")
    text = "{} from {}".format(found or "no version", path)
    more = ", for CUDA {}".format(cuda.release(built)) if built else ""
    measure(text + (", by its name: it answers with a driver only" if by_name else more))
    release = cudnn.major_minor_patch(_promised(image))
    if not same_version(release, found):
        why = instead_of(image, _name(image), release)
        fail("{}, the recipe says {}".format(text, _promised(image)), *why)
    line = back_on_the_path(image, "cudnn", path)
    if line:
        fail("{} is not on the loader's path".format(path), "its folder was taken out", line)
    _for_this_cuda(image, built or 0)


def _for_this_cuda(image: Situation, built: int) -> None:
    if not built or not image.expected.has("cuda"):
        return
    release, promised = cuda.release(built), image.expected.version("cuda")
    if release.partition(".")[0] != promised.partition(".")[0]:
        fail(
            "cuDNN was built for CUDA {}, the recipe has {}".format(release, promised),
            "the package of another CUDA was installed",
            in_image("imagegen build", look="dpkg -l '{}*'".format(_package(image))),
        )


@check(
    "cudnn.header",
    "the header that programs are compiled with is of the library's version",
    severity="warn",
    cause="the development package was upgraded without the library, or the other way round",
    needs=("cudnn.version",),
)
def test_header(image: Situation, measure: Measure) -> None:
    """CUDNN_MAJOR, MINOR and PATCHLEVEL of cudnn_version.h or cudnn.h"""
    if flavour(image) == "runtime":
        skip("not-applicable", "a runtime image has no headers")
    places = list(cudnn.INCLUDES)
    places.append("/usr/include/" + os.path.basename(image.expected.os.get("lib_dir", "")))
    paths = [under(image.root, os.path.join(p, n)) for n in cudnn.HEADERS for p in places]
    found = {path: header_version(path, cudnn.VERSION_MACROS) for path in paths}
    found = {path: version for path, version in found.items() if version}
    if not found:
        skip("not-installed", "there is no header of cuDNN")
    measure(", ".join("{} {}".format(path, version) for path, version in found.items()))
    here = _said(image, libraries(image).first(_name(image)))
    others = ["{} says {}".format(p, version) for p, version in found.items() if version != here]
    if others:
        remedy = in_image("imagegen build", look="dpkg -l '{}*'".format(_package(image)))
        fail("{}, the library {}".format(", ".join(others), here), remedy=remedy)


@check(
    "cudnn.split",
    "all parts of cuDNN are of one version",
    cause="one part was upgraded or copied in without the others",
    needs=("cudnn.version",),
)
def test_split(image: Situation, measure: Measure) -> None:
    """libcudnn_*.so.N beside libcudnn.so.N: the versions in their real names, else those that they
    report"""
    main = libraries(image).first(_name(image))
    parts = cudnn.parts(main, _name(image).rpartition(".")[2])
    versions = cudnn.file_versions(parts) or _by_their_word(image, parts)
    if not versions:
        skip(without_driver(image), "its parts answer with a driver only")
    measure("{} libraries of {}".format(len(parts), " and ".join(versions)))
    if len(versions) > 1:
        seen = ["{}: {}".format(v, ", ".join(who)) for v, who in sorted(versions.items())]
        remedy = in_image("imagegen build", look="dpkg -l '{}*'".format(_package(image)))
        fail("; ".join(seen), remedy=remedy)


def _by_their_word(image: Situation, parts: List[str]) -> Dict[str, List[str]]:
    found: Dict[str, List[str]] = {}
    for path in parts:
        number = _ask(image, path).value("cudnnGetVersion")
        if number:
            found.setdefault(cudnn.cudnn_version(number), []).append(os.path.basename(path))
    return found


@check(
    "cudnn.dupes",
    "no second cuDNN of another version hides the one that a program was built for",
    severity="warn",
    cause="a wheel brings a cuDNN of its own beside the one of the system",
    needs=("cudnn.version",),
)
def test_dupes(image: Situation, measure: Measure) -> None:
    """every libcudnn.so.N in LD_LIBRARY_PATH, the loader's cache and folders, wheels and
    torch/lib"""
    copies = libraries(image).copies(_name(image))
    versions = {path: _said(image, path) for path in copies}
    seen = ["{} {}".format(version or "no version", path) for path, version in versions.items()]
    measure(", ".join(seen))
    if len(set(versions.values())) > 1:
        text = "a program loads one of {}; the loader takes the first"
        release = cudnn.major_minor_patch(_promised(image))
        others = [path for path in copies if not same_version(release, versions[path])]
        warn(text.format(", ".join(seen)), *out_of_the_way(image, (others or copies)[-1]))
