"""Ask Horovod in each framework that the recipe promises it for.

Each framework gets processes of its own: two in one process bring the same libraries twice, and it
may end.
"""

import re
from typing import Dict, List, NamedTuple, Tuple

from validate.check import skip
from validate.fixtures import Situation
from validate.probes import mpi
from validate.probes.frameworks import imported, script_of, wants_driver
from validate.probes.interpreter import Answer, find_python
from validate.probes.training import SCRIPT, torch_and_horovod
from validate.process import Result, run

LAUNCH_SECONDS = 200
TWO = [("0", "2"), ("1", "2")]
"""Rank and size of two ranks that found each other."""
COUNT = 65536
"""The number of values that the ranks add up: more than fits into the first message of MPI."""

TORCH = """
import torch
import horovod.torch as hvd
def add_up(values):
    return hvd.allreduce(torch.tensor(values), name="imagegen.sum", **SUM).tolist()
"""

TENSORFLOW = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import tensorflow as tf
import horovod.tensorflow as hvd
def add_up(values):
    if tf.executing_eagerly():
        return hvd.allreduce(tf.constant(values), name="imagegen.sum", **SUM).numpy().tolist()
    total = hvd.allreduce(tf.constant(values), name="imagegen.sum", **SUM)
    with getattr(tf.compat, "v1", tf).Session() as session:
        return session.run(total).tolist()
"""

MXNET = """
import mxnet
import horovod.mxnet as hvd
def add_up(values):
    given = mxnet.nd.array(values)
    return hvd.allreduce(given, average=False, name="imagegen.sum").asnumpy().tolist()
"""

ADD_UP = """
import sys
SUM = {{"op": hvd.Sum}} if hasattr(hvd, "Sum") else {{"average": False}}
def say(text):
    sys.stdout.write("\\n" + text + "\\n")
    sys.stdout.flush()
hvd.init()
say("horovod rank %d of %d" % (hvd.rank(), hvd.size()))
sums = sorted(set(add_up([hvd.rank() + 1.0] * {count})))
say("horovod sum on rank %d is %s" % (hvd.rank(), " and ".join("%.1f" % one for one in sums[:4])))
"""
"""Every rank r gives r + 1, many times. Horovod below 0.19 has no `op`."""


class Framework(NamedTuple):
    """Describe a framework that Horovod may be compiled for.

    `abi` is the check that imports both, `add_up` how a rank adds values up over all ranks.
    """

    component: str
    title: str
    abi: str
    add_up: str

    @property
    def program(self) -> str:
        """Return the program of a rank."""
        return self.add_up + ADD_UP.format(count=COUNT)


FRAMEWORKS = (
    Framework("torch", "PyTorch", "hvd.torch-abi", TORCH),
    Framework("tensorflow", "TensorFlow", "hvd.tf-abi", TENSORFLOW),
    Framework("mxnet", "MXNet", "hvd.mxnet-abi", MXNET),
)


def promised(image: Situation) -> List[Framework]:
    """List the frameworks of the recipe that its Horovod is compiled for.

    These are all that it has, if the recipe names none.
    """
    named = image.expected.fact("horovod", "frameworks") or [one.component for one in FRAMEWORKS]
    there = image.expected.components
    return [one for one in FRAMEWORKS if one.component in there and one.component in named]


def of(image: Situation, component: str) -> Framework:
    """Return a framework that the recipe promises Horovod for; skip the check if it does not."""
    (found,) = [one for one in FRAMEWORKS if one.component == component]
    if found not in promised(image):
        skip("not-in-recipe", "the recipe promises no Horovod for {}".format(found.title))
    return found


def answer(image: Situation, framework: Framework) -> Answer:
    """Return what Horovod says of itself in a framework; each is imported once in a run."""
    if framework.component == "torch":
        return torch_and_horovod(image).horovod
    return imported(image, framework.component).horovod


def script(image: Situation, framework: Framework) -> str:
    """Return the script that `answer` ran."""
    return SCRIPT if framework.component == "torch" else script_of(image, framework.component)


def answers(image: Situation) -> Dict[str, Answer]:
    """Return the answers of all frameworks that Horovod loads into, by title.

    Skip the check if there is none: other checks say why.
    """
    asked = [(one, answer(image, one)) for one in promised(image)]
    found = {one.title: answer for one, answer in asked if answer.ok}
    if not asked:
        skip("not-in-recipe", "the recipe promises no framework for Horovod")
    if not found and all(wants_driver(answer) for _, answer in asked):
        skip("no-gpu-hw", "the framework loads libcuda.so.1 when it is imported")
    if not found:
        skip("blocked-by", " and ".join(one.abi for one, _ in asked))
    return found


def first(image: Situation) -> Framework:
    """Return the first framework that Horovod loads into; skip the check if there is none."""
    loaded = answers(image)
    return next(one for one in promised(image) if one.title in loaded)


def two_ranks(image: Situation, framework: Framework) -> Result:
    """Launch two ranks that add up through a framework, once in a run."""
    prefix = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
    program = [find_python(image.env, image.expected), "-c", framework.program]
    command = mpi.launch(prefix, 2, program, image.env)
    found: Result = image.once(
        "horovod with " + framework.component, lambda: run(command, LAUNCH_SECONDS, image.env)
    )
    return found


def ranks_of(result: Result) -> List[Tuple[str, str]]:
    """Return rank and size that each rank printed."""
    return sorted(re.findall(r"horovod rank (\d+) of (\d+)", result.out))


def sums_of(result: Result) -> List[Tuple[str, str]]:
    """Return each rank with the sum that it printed."""
    return sorted(re.findall(r"horovod sum on rank (\d+) is (.*)", result.out))
