"""Write the script for Slurm: containers by pyxis and enroot, by apptainer, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.launcher import mpirun, torchrun
from imagegen.launcher.description import Launched, around, plainly
from imagegen.launcher.trainjob import starts_itself
from imagegen.launcher.variables import variables
from imagegen.model.constraint import matches
from imagegen.model.launch import Flag, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.launcher.description import Description

FIRST = "$first"
"""The first node of the job, in the script."""


def sbatch(description: Description) -> Launched:
    """Write the script: Slurm starts the ranks, or one torchrun on each node."""
    parts = [*_head(description), *_settings(description), *_steps(description)]
    flags = tuple(parts)
    text = "\n".join(["#!/bin/bash", *(flag.text for flag in flags if flag.shown)])
    srun = [flag for flag in flags if not flag.shown]
    text += "\n" + " \\\n  ".join(_quoted(flag) for flag in srun)
    return Launched(flags, text, around=around(description, "sbatch"))


def _quoted(flag: Flag) -> str:
    text = plainly(flag.words)
    return text.replace(f"'{FIRST}", f'"{FIRST}"').replace("'", "") if FIRST in text else text


def _head(description: Description) -> Iterator[Flag]:
    say, tasks = _line, description.gpus_per_node
    yield say(description, "name", f"#SBATCH --job-name={description.name}")
    yield say(description, "nodes", f"#SBATCH --nodes={description.nodes}")
    if description.hosts:
        hosts = ",".join(description.hosts)
        yield say(description, "hosts", f"#SBATCH --nodelist={hosts}")
    per_node = 1 if one_step_a_node(description) else tasks
    yield say(description, "tasks", f"#SBATCH --ntasks-per-node={per_node}")
    if description.device == "gpu":
        yield say(description, "gpus", f"#SBATCH --gpus-per-node={tasks}")
    yield say(description, "exclusive", "#SBATCH --exclusive")
    yield say(description, "strict", "set -eu")


def _line(description: Description, key: str, text: str) -> Flag:
    return Flag((), description.why(f"sbatch.{key}"), shown=text)


def _settings(description: Description) -> Iterator[Flag]:
    by_node = one_step_a_node(description)
    own = torchrun.settings(description) if by_node else variables(description)
    for flag in own:
        yield Flag((), flag.reason, shown=f"export {plainly(flag.words)}")
    for flag in () if by_node else mpirun.of_mpi(description):
        # Without mpirun, Open MPI reads its settings from variables.
        name, value = flag.words[1:]
        yield Flag((), flag.reason, shown=f"export OMPI_MCA_{name}={plainly([value])}")
    if description.cluster.runtime == "pyxis" and description.given.devices:
        yield _line(description, "devices", "export MELLANOX_VISIBLE_DEVICES=all")
    if one_step_a_node(description) and description.nodes > 1:
        text = 'first="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"'
        yield _line(description, "first", text)


def interface(description: Description) -> str:
    """Return the interface between Slurm and the ranks; empty where the image has none."""
    for name, version in description.components.items():
        for constraint, pmi in description.launches[name].pmi.items():
            if matches(constraint, version):
                return pmi
    return ""


def one_step_a_node(description: Description) -> bool:
    """Say whether one program on each node starts the ranks there."""
    return starts_itself(description)


def _steps(description: Description) -> Iterator[Flag]:
    say = description.flag
    yield say("sbatch.srun", "srun")
    if one_step_a_node(description):
        yield say("sbatch.no-mpi", "--mpi=none")
    else:
        yield say("sbatch.mpi", f"--mpi={interface(description)}")
    yield from _container(description)
    if one_step_a_node(description):
        yield from torchrun.flags(description, first=FIRST, with_settings=False)
    else:
        yield from mpirun.script(description)


def _container(description: Description) -> Iterator[Flag]:
    say, mounts = description.flag, description.given.mounts
    if description.cluster.runtime == "none":
        return
    pairs = [(f"{one.host.rstrip('/')}:{one.path.rstrip('/')}", one.reason) for one in mounts]
    if description.cluster.runtime == "apptainer":
        yield say("sbatch.apptainer", "apptainer", "exec")
        if description.device == "gpu":
            yield say("sbatch.nv", "--nv")
        for pair, reason in pairs:
            yield Flag(("--bind", pair), reason)
        yield say("sbatch.image", f"docker://{description.image}")
        return
    registry, slash, rest = description.image.partition("/")
    named = slash and ("." in registry or ":" in registry)
    image = f"{registry}#{rest}" if named else description.image
    yield say("sbatch.pyxis", f"--container-image={image}")
    if pairs:
        joined = ",".join(pair for pair, _ in pairs)
        why = [reason for _, reason in pairs]
        texts = ("; ".join(dict.fromkeys(getattr(one, key) for one in why)) for key in FIELDS)
        yield Flag((f"--container-mounts={joined}",), Reason(*texts))


FIELDS = ("why", "without", "source")
