"""Write the MPIJob of Kubeflow: v1 of the training operator, v2beta1 of mpi-operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.launcher import mpirun, pod
from imagegen.launcher.description import Launched, around

if TYPE_CHECKING:
    from imagegen.launcher.description import Description
    from imagegen.launcher.pod import Manifest
    from imagegen.model.launch import Flag

SSHD = ["/usr/sbin/sshd", "-De"]
"""What mpi-operator starts in workers, handed to the image's own entrypoint."""
SLEEP = ["sleep", "infinity"]
"""What a worker of v1 does: the operator starts programs in it by `kubectl exec`."""


def mpijob(description: Description) -> Launched:
    """Write the manifest; the launcher starts the ranks by the hostfile of the operator."""
    inner = () if description.habits.launcher else mpirun.flags(description, hostfile=True)
    job = _of_document(description) if description.habits.launcher else _job(description, inner)
    flags = pod.reasons([job], description.reasons)
    lines = around(
        description,
        f"mpijob-{description.cluster.api}",
        file=(description.script[0].rpartition("/")[2] if description.script else ""),
    )
    return Launched(flags, pod.as_yaml([job]), inner=inner, around=lines)


def _head(description: Description) -> Manifest:
    version = f"kubeflow.org/{description.cluster.api}"
    return {"apiVersion": version, "kind": "MPIJob", "metadata": pod.metadata(description)}


def _job(description: Description, inner: tuple[Flag, ...]) -> Manifest:
    """Make the job: the launcher and the workers start through the entrypoint of the image."""
    new = description.cluster.api == "v2beta1"
    policy: Manifest = {"cleanPodPolicy": "Running"}
    if description.cluster.gang:
        policy["schedulingPolicy"] = {"minAvailable": description.nodes + 1}
    spec: Manifest = {"slotsPerWorker": description.gpus_per_node, "runPolicy": policy}
    if new and not description.cluster.gang:
        # Pods that wait for each other may not wait for the launcher too.
        spec["launcherCreationPolicy"] = "WaitForWorkersReady"
    if new:
        spec["mpiImplementation"] = "OpenMPI"
    if new and description.user:
        spec["sshAuthMountPath"] = f"{description.user.home}/.ssh"
    words = [word for flag in inner for word in flag.words]
    launcher: Manifest = {"image": description.image, "name": "mpi-launcher", "args": words}
    start: Manifest = {"args": [*(SSHD if new else SLEEP)]}
    if new:
        start["readinessProbe"] = {"tcpSocket": {"port": PORT}}
    node = pod.node(description, pod.container(description, "mpi-worker", start))
    spec["mpiReplicaSpecs"] = {
        "Launcher": _replicas(1, {"spec": {"containers": [launcher], **pod.user(description)}}),
        "Worker": _replicas(description.nodes, pod.template(description, node)),
    }
    return {**_head(description), "spec": spec}


PORT = 2222
"""The port of sshd in images."""


def _replicas(count: int, template: Manifest) -> Manifest:
    return {"replicas": count, "template": template}


def _of_document(description: Description) -> Manifest:
    """Make the job as a document has it: a launcher that waits, and workers without a command."""
    said = description.habits.manifest
    cpu, memory = int(said["launcher_cpu"]), said["launcher_memory"]
    launcher = {
        "image": description.image,
        "name": "mpi-launcher",
        "command": [*description.habits.launcher],
        "resources": {"limits": {"cpu": cpu, "memory": memory}},
    }
    # It has no shared memory of its own, and its pods are in the network of the cluster.
    node = {
        "containers": [pod.container(description, "mpi-worker", {}, shm=False)],
        "volumes": pod.volumes(description, shm=False),
    }
    return {
        **_head(description),
        "spec": {
            "slotsPerWorker": int(said["slots"]),
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": {
                "Launcher": _replicas(1, {"spec": {"containers": [launcher]}}),
                "Worker": _replicas(description.nodes, {"spec": node}),
            },
        },
    }
