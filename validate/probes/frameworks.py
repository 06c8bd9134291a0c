"""Ask TensorFlow and MXNet for their versions in the image's own Python, and the distributions.

One process asks a framework and the Horovod for it. Two frameworks in one process may end it.
"""

from typing import Dict, List

from validate.check import fail, skip
from validate.fixtures import Situation
from validate.probes import cuda
from validate.probes.imports import HOROVOD, FrameworkAndHorovod, read_answers
from validate.probes.interpreter import IMPORT_SECONDS, Answer, ask, find_python
from validate.probes.python_start import why_not
from validate.process import run

TENSORFLOW = """
import json, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
try:
    info = dict(tf.sysconfig.get_build_info())
except AttributeError:
    info = {}
print("\\n" + json.dumps({"tensorflow": {
    "version": tf.__version__,
    "file": tf.__file__,
    "cuda_build": bool(tf.test.is_built_with_cuda()),
    "cuda": str(info.get("cuda_version", "")),
    "cudnn": str(info.get("cudnn_version", "")),
}}), flush=True)
"""

MXNET = """
import json
import mxnet
facts = {"version": mxnet.__version__, "file": mxnet.__file__}
print("\\n" + json.dumps({"mxnet": facts}), flush=True)
"""

SCRIPTS = {"tensorflow": TENSORFLOW, "mxnet": MXNET}
"""Component -> what asks it. The key of its answer is the name of the component."""

DISTRIBUTIONS = """
import json
try:
    from importlib.metadata import distributions
    found = [(d.metadata["Name"], d.version) for d in distributions()]
except ImportError:
    import pkg_resources
    found = [(d.project_name, d.version) for d in pkg_resources.working_set]
print(json.dumps({str(name).lower(): str(version) for name, version in found}))
"""


def python(image: Situation) -> str:
    """Return the interpreter of the image."""
    return find_python(image.env, image.expected)


def script_of(image: Situation, component: str) -> str:
    """Return the script that asks a framework, and Horovod after it where the image has one."""
    horovod = any(image.expected.has(one) for one in ("horovod", "lightcc"))
    return SCRIPTS[component] + (HOROVOD.format(name=component) if horovod else "")


def imported(image: Situation, component: str) -> FrameworkAndHorovod:
    """Return the answers of a framework and of its Horovod; the import runs once in a run."""
    argv = [python(image), "-c", script_of(image, component)]
    found: FrameworkAndHorovod = image.once(
        component, lambda: read_answers(run(argv, IMPORT_SECONDS, image.env), component)
    )
    return found


def ask_framework(image: Situation, component: str) -> Answer:
    """Return the answer of a framework."""
    return imported(image, component).framework


def distributions(image: Situation) -> Dict[str, str]:
    """Return every installed distribution: name in lower case -> version."""
    found: Answer = image.once(
        DISTRIBUTIONS, lambda: ask(python(image), DISTRIBUTIONS, image.env, IMPORT_SECONDS)
    )
    return {str(k): str(v) for k, v in found.facts.items()}


def wants_driver(answer: Answer) -> bool:
    """Return whether an import failed only because there is no driver.

    Old GPU wheels are linked against libcuda.so.1: they do not load without a driver.
    """
    return "libcuda.so.1" in answer.problem


def require_import(image: Situation, answer: Answer, component: str) -> None:
    """Return if a framework loaded; skip the check if only a GPU is missing; fail it otherwise."""
    if answer.ok:
        return
    if not wants_driver(answer):
        fail(answer.problem, *why_not(image, answer, script_of(image, component)))
    if cuda.gpus(image.root):
        fail(answer.problem, "the container was started without its GPUs", cuda.PASS_GPUS)
    skip("no-gpu-hw", "this release loads libcuda.so.1 when it is imported")


def version_of(image: Situation, answer: Answer, dists: List[str]) -> str:
    """Return the version that the framework reports.

    Where only the driver is missing, it comes from the metadata of the distribution. Empty if
    neither is there.
    """
    if answer.ok:
        return str(answer.facts["version"])
    if not wants_driver(answer):
        return ""
    there = distributions(image)
    return next((there[name] for name in dists if name in there), "")
