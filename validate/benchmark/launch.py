"""Choose what joins the ranks of the benchmark, and build the command that starts them."""

import os
from typing import Any, Dict, List, Tuple

from validate.expected import Expected
from validate.probes import lightcc
from validate.probes.interpreter import find_python
from validate.probes.mpi import launch
from validate.probes.process_group import free_port, has_torchrun, own_job

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = {"torch": "synthetic.py", "tensorflow": "synthetic_tensorflow.py"}
"""Framework -> the script that trains with it. `auto` takes PyTorch, if the image has both."""
TITLES = {"torch": "PyTorch", "tensorflow": "TensorFlow"}
FORWARDED = ("NCCL_", "HOROVOD_", "GLOO_", "MASTER_", lightcc.PREFIX)
"""mpirun passes variables with these prefixes to the ranks: they change what is measured."""

NAMES = {"lightcc": "LightCC", "horovod": "Horovod", "ddp": "DDP"}
WITHOUT = "the image has no {}"


def choose(asked: str, expected: Expected) -> str:
    """Return what joins the ranks. LightCC is a Horovod, and goes first where it is there."""
    if asked != "auto":
        return asked
    return next((one for one in ("lightcc", "horovod") if expected.has(one)), "ddp")


def choose_framework(asked: str, expected: Expected) -> str:
    """Return the framework that trains; PyTorch, if the image has none."""
    if asked != "auto":
        return asked
    return next((one for one in sorted(SCRIPTS, reverse=True) if expected.has(one)), "torch")


def obstacle(via: str, ranks: int, expected: Expected, framework: str = "torch") -> str:
    """Say why ranks cannot be started and joined so in this image; empty if they can."""
    if not expected.has(framework):
        return expected.omission(framework) or WITHOUT.format(TITLES[framework])
    if via == "ddp" and framework != "torch" and ranks > 1:
        return "DDP joins ranks of PyTorch: those of {} need Horovod".format(TITLES[framework])
    needed = {"horovod": ("horovod", "lightcc"), "lightcc": ("lightcc",)}.get(via, ())
    if needed and not any(expected.has(one) for one in needed):
        return expected.omission(needed[0]) or WITHOUT.format(NAMES[via])
    if expected.has("openmpi") or ranks == 1:
        return ""
    if needed:
        return "the image has no Open MPI, which starts the ranks of {}".format(NAMES[via])
    if not has_torchrun(expected.version("torch")):
        return "the image has no Open MPI, and its PyTorch has no torchrun"
    return ""


def rank_environment(env: Dict[str, str], via: str, expected: Expected) -> Dict[str, str]:
    """Return the environment of the ranks: a job of their own, on this machine.

    Horovod is what LightCC is without its settings.
    """
    found = own_job(env, threads="")
    if via == "horovod":
        found = {name: value for name, value in found.items() if not _of_lightcc(name)}
    if via == "ddp":
        found.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    if expected.device == "gpu":
        found.setdefault("NCCL_DEBUG", "INFO")
    return found


def _of_lightcc(name: str) -> bool:
    return name.startswith(lightcc.PREFIX)


def command(
    arguments: Any, via: str, expected: Expected, env: Dict[str, str], framework: str = "torch"
) -> List[str]:
    """Build the command line: what starts the ranks, the image's own Python, the script.

    That is mpirun where the image has Open MPI, else torchrun; one rank needs neither.
    """
    python = find_python(env, expected)
    joined = "alone" if framework != "torch" and via == "ddp" else via
    script = [os.path.join(HERE, SCRIPTS[framework]), *_options(arguments, joined, expected)]
    if expected.has("openmpi"):
        names = sorted(name for name in env if name.startswith(FORWARDED))
        prefix = str(expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
        return launch(prefix, arguments.ranks, [python, "-u", *script], env, names)
    if arguments.ranks == 1:
        return [python, "-u", *script]
    own = ["--nproc_per_node", str(arguments.ranks), "--master_port", env["MASTER_PORT"]]
    return [python, "-u", "-m", "torch.distributed.run", *own, *script]


def _options(arguments: Any, via: str, expected: Expected) -> Tuple[str, ...]:
    """Return the options of the script. Without Horovod one rank is alone."""
    found = ["--model", arguments.model, "--batch-size", str(arguments.batch_size)]
    found += ["--length", arguments.length, "--via", via]
    found += ["--num-iters", str(arguments.num_iters)] if arguments.num_iters else []
    found += ["--allreduce"] if arguments.ranks > 1 else []
    return (*found, *(["--no-cuda"] if expected.device == "cpu" else []))
