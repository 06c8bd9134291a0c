"""Test pods, rarely used settings of NCCL, kernels of PyTorch for a GPU, and profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate import nodes, trees
from unit.validate.gpu_machines import Machine, write
from validate import catalogue
from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import kubernetes
from validate.pytest_run import run_suites
from validate.requirements import not_run, required_by_profile
from validate.run_options import RunOptions
from validate.suites.test_torch_gpu import runs_on

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name in ("KUBERNETES_SERVICE_HOST", "K_MPI_JOB_ROLE", "OMPI_MCA_orte_default_hostfile"):
        monkeypatch.delenv(name, raising=False)
    return Machine(tmp_path, monkeypatch)


def test_a_container_that_is_no_pod_rests(machine: Machine) -> None:
    found = machine.findings("k8s")
    assert (found["k8s.detect"].outcome, found["k8s.detect"].measured) == (PASSED, "no pod")
    others = [one for name, one in found.items() if name != "k8s.detect"]
    assert {(one.outcome, one.reason) for one in others} == {(SKIPPED, "not-applicable")}


def test_a_worker_whose_main_process_is_no_sshd_warns(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("K_MPI_JOB_ROLE", "worker")
    write(machine.root, "/proc/1/cmdline", "sleep\0infinity\0")
    one = machine.findings("k8s")["k8s.worker-cmd"]
    assert (one.outcome, one.measured) == (WARNED, "process 1 is `sleep infinity`")
    # sshd alone would end with "no hostkeys available" here.
    assert 'ssh-keygen -A && exec /usr/sbin/sshd -De"]' in one.remedy
    write(machine.root, "/etc/ssh/ssh_host_rsa_key", "-----BEGIN OPENSSH PRIVATE KEY-----\n")
    one = machine.findings("k8s")["k8s.worker-cmd"]
    assert one.remedy.endswith("or end them with: exec /usr/sbin/sshd -De")
    write(machine.root, "/proc/1/cmdline", "sshd: /usr/sbin/sshd -De [listener]\0")
    assert machine.findings("k8s")["k8s.worker-cmd"].outcome == PASSED


def test_hosts_that_do_not_resolve_fail(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert machine.findings("k8s")["k8s.dns"].reason == "needs-peer"
    write(machine.root, "/etc/mpi/hostfile", "job-worker-0.job slots=8\njob-worker-1.job:8\n")
    monkeypatch.setattr(kubernetes, "resolves", lambda name: name.startswith("job-worker-0"))
    found = machine.findings("k8s")
    assert found["k8s.detect"].measured == "a pod, of no MPIJob, 2 hosts"
    assert found["k8s.dns"].measured == "1 of 2 do not resolve: job-worker-1.job"


def test_privileges_that_a_recipe_needs(machine: Machine) -> None:
    machine.promise("rdma", "44.0")
    nodes.pod_without_devices(machine.root)
    one = machine.findings("k8s")["k8s.psp"]
    assert (one.outcome, one.measured) == (WARNED, "without IPC_LOCK")
    assert one.remedy == "securityContext: {capabilities: {add: [IPC_LOCK]}}"
    nodes.capabilities(machine.root, nodes.ALL_CAPABILITIES)
    assert machine.findings("k8s")["k8s.psp"].outcome == PASSED


@pytest.mark.parametrize(
    ("version", "driver", "bits", "env", "outcome"),
    [
        ("2.24.3", "560.28.03", nodes.PLAIN_CAPABILITIES, "", WARNED),
        ("2.24.3", "560.28.03", nodes.ALL_CAPABILITIES, "", PASSED),
        ("2.24.3", "560.28.03", nodes.PLAIN_CAPABILITIES, "0", PASSED),
        ("2.24.3", "550.54.14", nodes.PLAIN_CAPABILITIES, "", PASSED),
        ("2.26.5", "560.28.03", nodes.PLAIN_CAPABILITIES, "", SKIPPED),
    ],
)
def test_memory_on_a_numa_node(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    driver: str,
    bits: str,
    env: str,
    outcome: str,
) -> None:
    machine.promise("nccl", version)
    machine.lib("libnccl.so.2", f'const char *v = "NCCL version {version}+cuda12.6";\n')
    nodes.gpus(machine.root, 1, nodes.H100, driver)
    nodes.capabilities(machine.root, bits)
    if env:
        monkeypatch.setenv("NCCL_CUMEM_HOST_ENABLE", env)
    assert machine.findings("nccl")["nccl.shm-numa"].outcome == outcome


def test_a_network_that_is_not_there_warns(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.promise("nccl", "2.21.5")
    assert machine.findings("nccl")["nccl.netname"].measured == "not forced"
    monkeypatch.setenv("NCCL_NET", "AWS Libfabric")
    one = machine.findings("nccl")["nccl.netname"]
    assert (one.outcome, one.measured) == (
        WARNED,
        "NCCL_NET=AWS Libfabric, and no net plugin is there",
    )
    machine.promise("rdma", "44.0")
    monkeypatch.setenv("NCCL_NET", "Socket")
    assert (
        machine.findings("nccl")["nccl.netname"].measured == "NCCL_NET=Socket keeps NCCL off RDMA"
    )


@pytest.mark.parametrize(
    ("arches", "gpu", "runs"),
    [
        ("sm_37 sm_70 sm_86", (8, 6), True),
        ("sm_37 sm_70 sm_80", (8, 6), True),
        ("sm_37 sm_70 sm_86", (8, 0), False),
        ("sm_37 sm_70 sm_86", (9, 0), False),
        ("sm_80 compute_80", (9, 0), True),
        ("sm_90a", (9, 0), True),
        ("", (9, 0), False),
    ],
)
def test_kernels_for_a_gpu(arches: str, gpu: tuple[int, int], runs: bool) -> None:
    assert runs_on(arches.split(), *gpu) == runs


@pytest.mark.parametrize(
    ("profile", "reason"), [("", "no-rdma-hw"), ("rdma", "no-rdma-hw"), ("cpu", "not-in-profile")]
)
def test_a_profile_leaves_live_checks_of_other_hardware_out(
    tmp_path: Path, profile: str, reason: str
) -> None:
    trees.verbs_stack(tmp_path)
    recipe = trees.expected(tmp_path)
    found, _ = run_suites(["rdma"], recipe, str(tmp_path), RunOptions(profile=profile))
    outcomes = {one.check.id: one for one in found}
    assert outcomes["rdma.provider"].outcome == PASSED
    assert outcomes["rdma.hw"].reason == reason
    demanded = required_by_profile(profile, recipe)
    assert demanded == (["rdma"] if profile == "rdma" else [])
    assert not_run(demanded, found) == demanded


def test_the_profile_of_gpus_requires_one_of_a_cpu_image_too(tmp_path: Path) -> None:
    recipe = trees.expected(tmp_path, device="cpu")
    assert required_by_profile("gpu", recipe) == ["gpu"]
    assert required_by_profile("rdma", recipe) == ["rdma"]


def test_a_lightcc_image_runs_the_checks_of_horovod(tmp_path: Path) -> None:
    components = {"validate": {"version": "0.1.0"}, "lightcc": {"version": "3.1.1"}}
    recipe = trees.expected(tmp_path, components=components, suites=["lightcc"])
    assert catalogue.not_applicable("horovod", recipe) == ""
    assert "horovod" in catalogue.chosen_by_default(recipe, pod=False, peers=False)


def test_harp_on_a_prepared_node_and_the_wrong_cgroup(machine: Machine) -> None:
    machine.promise("harp", "1.3", path="/usr/lib/x86_64-linux-gnu/libnccl-net.so")
    nodes.v100_harp(machine.root)
    found = machine.findings("harp")
    ids = ("harp.config", "harp.hugepages-host", "harp.hugepages-cgroup", "harp.privileged")
    assert [found[name].outcome for name in (*ids, "harp.enis")] == [PASSED] * 5
    write(machine.root, "/sys/fs/cgroup/hugetlb.1GB.max", "0\n")
    one = machine.findings("harp")["harp.hugepages-cgroup"]
    assert (one.outcome, one.measured) == (FAILED, "0 pages, 50 are needed")


def test_fewer_interfaces_than_gpus_warn(machine: Machine) -> None:
    machine.promise("harp", "1.3", path="/usr/lib/x86_64-linux-gnu/libnccl-net.so")
    nodes.v100_harp(machine.root)
    one = machine.findings("harp")["harp.enis"]
    assert (one.outcome, one.measured) == (PASSED, "9 interfaces, 8 GPUs")
    write(machine.root, "/sys/bus/pci/devices/0000:00:0d.0/class", "0x010000\n")  # a disk
    found = machine.findings("harp")
    one = found["harp.enis"]
    assert (one.outcome, one.measured) == (WARNED, "8 interfaces, 8 GPUs: 9 are needed")
    assert one.remedy.startswith("bind one more for each GPU in the cloud's console")
    assert found["harp.single-node"].measured == "judge it by a job on two machines or more"


@pytest.mark.parametrize(
    ("given", "outcome", "measured"),
    [
        ((), PASSED, "with `mpirun --allow-run-as-root`"),
        (("", "_CONFIRM"), PASSED, "allowed by the environment"),
        (("",), WARNED, "OMPI_ALLOW_RUN_AS_ROOT alone is 1"),
        (("_CONFIRM",), WARNED, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM alone is 1"),
    ],
)
def test_root_is_allowed_by_both_variables_or_by_the_option(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: tuple[str, ...],
    outcome: str,
    measured: str,
) -> None:
    for name in ("", "_CONFIRM"):
        monkeypatch.delenv(f"OMPI_ALLOW_RUN_AS_ROOT{name}", raising=False)
    for name in given:
        monkeypatch.setenv(f"OMPI_ALLOW_RUN_AS_ROOT{name}", "1")
    recipe = trees.expected(
        tmp_path, components={"openmpi": {"version": "4.1.4", "facts": {"prefix": str(tmp_path)}}}
    )
    one = trees.findings(tmp_path, "openmpi", recipe, static=True)["mpi.root"]
    assert (one.outcome, one.measured) == (outcome, measured)
