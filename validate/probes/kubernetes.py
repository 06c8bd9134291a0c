"""A pod of Kubernetes, and what mpi-operator sets in those of an MPIJob.

kubeflow/mpi-operator, v2 controller: the launcher finds its hosts in /etc/mpi/hostfile; workers run
`/usr/sbin/sshd -De` where the job gives neither command nor arguments.
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
    """Whether this container is one of a pod."""
    return bool(env.get("KUBERNETES_SERVICE_HOST")) or os.path.isdir(under(root, SECRETS))


def role(env: Dict[str, str]) -> str:
    """`launcher`, `worker`, or empty where this is no MPIJob."""
    return env.get("K_MPI_JOB_ROLE", "")


def launches_only(env: Dict[str, str]) -> bool:
    """Whether this is the launcher of an MPIJob: it starts ranks elsewhere, and has no device."""
    return role(env) == LAUNCHER


def hostfile(root: str, env: Dict[str, str]) -> List[str]:
    """The names in the hostfile of the job, in its order."""
    path = env.get("OMPI_MCA_orte_default_hostfile", HOSTFILE)
    lines = [line.partition("#")[0].split() for line in read(under(root, path)).splitlines()]
    return [re.sub(r":\d+$", "", words[0]) for words in lines if words]


def main_process(root: str) -> List[str]:
    """The command line of process 1."""
    return [word for word in read(under(root, "/proc/1/cmdline")).split("\0") if word]


def resolves(name: str) -> bool:
    """Whether a name leads to an address."""
    try:
        return bool(socket.getaddrinfo(name, None))
    except OSError:
        return False
