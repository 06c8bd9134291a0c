"""Write the TrainJob of Kubeflow Trainer v2, with a runtime of its own.

A runtime that comes with Trainer has no room for the rights, the devices and the folders of an
image, and how a job overrides it changed between releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.launcher import mpirun, pod, torchrun
from imagegen.launcher.description import Launched, around
from imagegen.launcher.mpijob import PORT, SSHD

if TYPE_CHECKING:
    from imagegen.launcher.description import Description
    from imagegen.launcher.pod import Manifest
    from imagegen.model.launch import Flag

API = "trainer.kubeflow.org/v1alpha1"
STEP: Manifest = {
    "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
}
"""What marks the job that gets the arguments of the TrainJob."""


def trainjob(description: Description) -> Launched:
    """Write the runtime and the job: ranks of DDP start by torchrun, others by mpirun."""
    by_mpi = not starts_itself(description)
    inner = _inner(description, by_mpi)
    documents = [_runtime(description, by_mpi), _job(description, inner, by_mpi)]
    flags = pod.reasons(documents, description.reasons)
    text = pod.as_yaml(documents)
    return Launched(flags, text, inner=inner, around=around(description, "trainjob"))


def starts_itself(description: Description) -> bool:
    """Say whether the acceleration has a program of its own that starts ranks without MPI."""
    given = description.accelerated
    return any(one.form == "torchrun" for one in given.starters)


def _inner(description: Description, by_mpi: bool) -> tuple[Flag, ...]:
    if by_mpi:
        return mpirun.flags(description, hostfile=True)
    return tuple(torchrun.bare(description))


def _job(description: Description, inner: tuple[Flag, ...], by_mpi: bool) -> Manifest:
    trainer: Manifest = {"numNodes": description.nodes}
    if not by_mpi:
        trainer["numProcPerNode"] = description.gpus_per_node
        env = [one.words[0].partition("=") for one in torchrun.settings(description)]
        if env:
            trainer["env"] = [{"name": name, "value": value} for name, _, value in env]
    trainer["args"] = [word for flag in inner for word in flag.words]
    reference = {"apiGroup": API.partition("/")[0], "kind": "TrainingRuntime"}
    spec = {"runtimeRef": {**reference, "name": description.name}, "trainer": trainer}
    head = {"apiVersion": API, "kind": "TrainJob", "metadata": pod.metadata(description)}
    return {**head, "spec": spec}


def _runtime(description: Description, by_mpi: bool) -> Manifest:
    policy: Manifest = {"numNodes": description.nodes}
    if by_mpi:
        home = description.user.home if description.user else "/root"
        policy["mpi"] = {
            "numProcPerNode": description.gpus_per_node,
            "mpiImplementation": "OpenMPI",
            "sshAuthMountPath": f"{home}/.ssh",
            "runLauncherAsNode": True,
        }
    else:
        policy["torch"] = {}
    spec: Manifest = {"mlPolicy": policy, "template": {"spec": _jobs(description, by_mpi)}}
    if description.cluster.gang:
        spec["podGroupPolicy"] = {"coscheduling": {"scheduleTimeoutSeconds": 600}}
    head = {"apiVersion": API, "kind": "TrainingRuntime", "metadata": {"name": description.name}}
    return {**head, "spec": spec}


def _jobs(description: Description, by_mpi: bool) -> Manifest:
    if not by_mpi:
        return {"replicatedJobs": [{"name": "node", "template": _template(description, STEP, {})}]}
    start: Manifest = {"args": [*SSHD], "readinessProbe": {"tcpSocket": {"port": PORT}}}
    return {
        "network": {"publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
        "replicatedJobs": [
            {"name": "launcher", "template": _template(description, STEP, {})},
            {"name": "node", "template": _template(description, {}, start)},
        ],
    }


def _template(description: Description, step: Manifest, start: Manifest) -> Manifest:
    node = pod.node(description, pod.container(description, "node", start))
    return {**step, "spec": {"template": pod.template(description, node)}}
