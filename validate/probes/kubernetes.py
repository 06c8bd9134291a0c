"""Find out whether this is a pod of Kubernetes, and what mpi-operator has set in it.

kubeflow/mpi-operator, v2 controller: the launcher finds its hosts in /etc/mpi/hostfile; workers run
`/usr/sbin/sshd -De` if the job gives neither command nor arguments.
"""

import os
import re
import socket
from typing import Dict, List

from validate.probes.files import read, under

SECRETS = "/var/run/secrets/kubernetes.io"
HOSTFILE = "/etc/mpi/hostfile"
LAUNCHER, WORKER = "launcher", "worker"


def in_pod(root: str, env: Dict[str, str]) -> bool:
    """Return whether this container belongs to a pod."""
    return bool(env.get("KUBERNETES_SERVICE_HOST")) or os.path.isdir(under(root, SECRETS))


def role(env: Dict[str, str]) -> str:
    """Return `launcher` or `worker`; empty if this is no MPIJob."""
    return env.get("K_MPI_JOB_ROLE", "")


def launches_only(env: Dict[str, str]) -> bool:
    """Return whether this is the launcher of an MPIJob, which has no device and runs no rank."""
    return role(env) == LAUNCHER


def hostfile(root: str, env: Dict[str, str]) -> List[str]:
    """Return the names in the hostfile of the job, in its order."""
    path = env.get("OMPI_MCA_orte_default_hostfile", HOSTFILE)
    lines = [line.partition("#")[0].split() for line in read(under(root, path)).splitlines()]
    return [re.sub(r":\d+$", "", words[0]) for words in lines if words]


def main_process(root: str) -> List[str]:
    """Return the command line of process 1."""
    return [word for word in read(under(root, "/proc/1/cmdline")).split("\0") if word]


def resolves(name: str) -> bool:
    """Return whether a name has an address."""
    try:
        return bool(socket.getaddrinfo(name, None))
    except OSError:
        return False
