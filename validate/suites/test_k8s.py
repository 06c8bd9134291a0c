"""Check a pod of Kubernetes, as mpi-operator starts those of an MPIJob."""

import os

from validate.check import check, fail, skip
from validate.fixtures import Measure, Situation
from validate.probes import kubernetes, ssh
from validate.probes.limits import capabilities
from validate.probes.sshd import SSHD
from validate.remedy import Remedy, at_launch

PRIVILEGES = {"rdma": "IPC_LOCK", "harp": "SYS_ADMIN"}
"""Component -> the capability that it needs of the pod."""


def _in_pod(image: Situation) -> None:
    if not kubernetes.in_pod(image.root, image.env):
        skip("not-applicable", "this is no pod")


@check("k8s.detect", "whether this is a pod, and its part in an MPIJob", severity="info")
def test_detect(image: Situation, measure: Measure) -> None:
    """$KUBERNETES_SERVICE_HOST, /var/run/secrets/kubernetes.io, $K_MPI_JOB_ROLE, /etc/mpi/hostfile,
    $OMPI_MCA_orte_default_hostfile"""
    if not kubernetes.in_pod(image.root, image.env):
        measure("no pod")
        return
    hosts = kubernetes.hostfile(image.root, image.env)
    part = kubernetes.role(image.env) or "of no MPIJob"
    measure("a pod, {}{}".format(part, ", {} hosts".format(len(hosts)) if hosts else ""))


@check(
    "k8s.worker-cmd",
    "a worker runs sshd as its main process: the launcher reaches it",
    severity="warn",
    tier="live",
    cause="the job gives the workers a command or arguments: mpi-operator starts sshd only without",
)
def test_worker_cmd(image: Situation, measure: Measure) -> None:
    """/proc/1/cmdline of a container with K_MPI_JOB_ROLE=worker. The remedy makes host keys first,
    where the sshd of the image does not"""
    _in_pod(image)
    if kubernetes.role(image.env) != kubernetes.WORKER:
        skip("not-applicable", "this is no worker of an MPIJob")
    words = kubernetes.main_process(image.root)
    measure(" ".join(words))
    program = words[0].split()[0].rstrip(":") if words else ""
    if os.path.basename(program) != "sshd":
        fail("process 1 is `{}`".format(" ".join(words)), remedy=_with_sshd(image))


def _with_sshd(image: Situation) -> Remedy:
    """Return the command of a worker; sshd alone ends at once where there are no host keys."""
    if SSHD in image.expected.patched or ssh.host_keys(image.root):
        text = "remove `command` and `args` of the worker, or end them with: exec {} -De"
        return at_launch(text.format(SSHD))
    text = 'the worker: command: [sh, -c, "mkdir -p /run/sshd && ssh-keygen -A && exec {} -De"]'
    return at_launch(text.format(SSHD))


@check(
    "k8s.dns",
    "every host of the job's hostfile resolves",
    tier="live",
    cause="a worker is not ready, or the job's headless service is not there",
    remedy=at_launch(
        "wait until every worker runs, or create the job anew",
        look="kubectl get pods,services -l training.kubeflow.org/job-name=JOB",
    ),
)
def test_dns(image: Situation, measure: Measure) -> None:
    """getaddrinfo of each name in $OMPI_MCA_orte_default_hostfile, else /etc/mpi/hostfile"""
    _in_pod(image)
    hosts = kubernetes.hostfile(image.root, image.env)
    if not hosts:
        skip("needs-peer", "there is no hostfile")
    lost = [name for name in hosts if not kubernetes.resolves(name)]
    measure("{} hosts".format(len(hosts)))
    if lost:
        fail("{} of {} do not resolve: {}".format(len(lost), len(hosts), ", ".join(lost[:4])))


@check(
    "k8s.psp",
    "the pod has the privileges that the components of the image need",
    severity="warn",
    tier="live",
    cause="securityContext drops them, or the policy of the cluster does",
)
def test_psp(image: Situation, measure: Measure) -> None:
    """CapEff of /proc/self/status: IPC_LOCK for RDMA, SYS_ADMIN (privileged) for HARP"""
    _in_pod(image)
    if kubernetes.launches_only(image.env):
        skip("not-applicable", "the launcher of an MPIJob moves no data itself")
    here = capabilities(image.root)
    wanted = [cap for name, cap in PRIVILEGES.items() if image.expected.has(name)]
    measure(", ".join(here) or "none of note")
    lost = [cap for cap in wanted if cap not in here]
    if lost:
        remedy = at_launch(
            "securityContext: {{capabilities: {{add: [{}]}}}}".format(", ".join(lost))
        )
        fail("without {}".format(", ".join(lost)), remedy=remedy)
