"""Test manifests against the models of the operators, and against the document's MPIJob."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import kubernetes.client
import pytest
import yaml
from kubeflow import training
from kubeflow_trainer_api import models as trainer

from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.conftest import Ended

BARE_METAL = "cu113/ubuntu20.04-5.4-3.1.0.0"
HARP = "cu113/ubuntu20.04-none-1.3"
OF_DOCUMENT = "cu112/ubuntu18.04-1.3-3.1.1"
CPU = "cpu/debian12-none"
DDP = "cpu/debian13-none"
TWO = ("--nodes", "2", "--gpus-per-node", "8", "--name", "bench")
SCHEMA = REPOSITORY / "tests" / "unit" / "launcher" / "mpijob_v2beta1.yaml"
"""What the CRD of mpi-operator takes; no package on PyPI has models of it."""

EVERYTHING = (
    *("--preflight", "--gang", "--queue", "team-a", "--rdma-network", "rdma-net"),
    *("--rdma-resource", "example.com/hca", "--memory", "200Gi"),
)


def manifests(run: Callable[..., Ended], *asked: str) -> list[dict[str, Any]]:
    made = json.loads(run("launch", *asked, "--format", "json").out)
    return list(yaml.safe_load_all(made["command"]))


def check(part: Any, kind: str, models: Any, where: str = "") -> None:
    """Compare a part of a manifest with a generated model: every key is known, of its kind."""
    if kind.startswith("list["):
        assert isinstance(part, list), where
        for one in part:
            check(one, kind[5:-1], models, f"{where}[]")
    elif kind.startswith("dict("):
        assert isinstance(part, dict), where
        for key, one in part.items():
            check(one, kind[5:-1].split(", ", 1)[1], models, f"{where}.{key}")
    elif ".resources." in where:
        assert isinstance(part, str | int), where  # a quantity
    elif kind in ("str", "int", "bool"):
        assert type(part).__name__ == kind, f"{where}: {part!r} is no {kind}"
    elif kind != "object":
        model = getattr(models, kind, None) or getattr(kubernetes.client, kind)
        names = {key: name for name, key in model.attribute_map.items()}
        assert isinstance(part, dict), where
        assert part.keys() <= names.keys(), f"{where}: {sorted(part.keys() - names.keys())}"
        for key, one in part.items():
            check(one, model.openapi_types[names[key]], models, f"{where}.{key}")


CASES = {
    "RDMA": (BARE_METAL, *TWO, "--iface", "bond0"),
    "RDMA with everything": (BARE_METAL, *TWO, *EVERYTHING),
    "HARP": (HARP, *TWO),
    "every right": (BARE_METAL, *TWO, "--privileged"),
    "a CPU": (CPU, "--nodes", "2", "--gpus-per-node", "1", "--name", "bench"),
}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("asked", CASES.values(), ids=CASES)
def test_mpijob_v1_is_one_for_the_training_operator(
    run: Callable[..., Ended], asked: tuple[str, ...]
) -> None:
    (job,) = manifests(run, *asked, "--as", "mpijob", "--api", "v1")
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "MPIJob")
    check(job, "KubeflowOrgV1MPIJob", training)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("asked", CASES.values(), ids=CASES)
def test_mpijob_v2beta1_is_one_for_mpi_operator(
    run: Callable[..., Ended], asked: tuple[str, ...]
) -> None:
    (job,) = manifests(run, *asked, "--as", "mpijob")
    jsonschema.validate(job, yaml.safe_load(SCHEMA.read_text(encoding="utf-8")))
    for replicas in job["spec"]["mpiReplicaSpecs"].values():
        check(replicas["template"], "V1PodTemplateSpec", kubernetes.client)
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert worker["args"] == ["/usr/sbin/sshd", "-De"]
    assert "command" not in worker
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert "command" not in launcher
    assert launcher["args"][0] == "/usr/local/openmpi/bin/mpirun"
    assert "-H" not in launcher["args"]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    "asked",
    [
        *CASES.values(),
        (DDP, "--nodes", "2", "--name", "bench"),
        (BARE_METAL, *TWO, "--accel", "ddp", *EVERYTHING),
    ],
    ids=[*CASES, "DDP on a CPU", "DDP"],
)
def test_trainjob_and_its_runtime_are_ones_for_trainer(
    run: Callable[..., Ended], asked: tuple[str, ...]
) -> None:
    runtime, job = manifests(run, *asked, "--as", "trainjob")
    assert trainer.TrainerV1alpha1TrainingRuntime.from_dict(runtime).to_dict() == runtime
    assert trainer.TrainerV1alpha1TrainJob.from_dict(job).to_dict() == job
    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    assert job["spec"]["trainer"]["numNodes"] == 2
    for one in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        check(one["template"], "V1JobTemplateSpec", kubernetes.client)


@pytest.mark.usefixtures("project")
def test_the_mpijob_of_the_document(run: Callable[..., Ended]) -> None:
    asked = (OF_DOCUMENT, "--form", "taco-tke", "--nodes", "4", "--gpus-per-node", "8")
    (job,) = manifests(run, *asked, "--name", "taco-bench", "--as", "mpijob")
    assert job == yaml.safe_load(TACO)
    check(job, "KubeflowOrgV1MPIJob", training)


@pytest.mark.usefixtures("project")
def test_the_lines_around_the_mpijob_of_the_document(run: Callable[..., Ended]) -> None:
    asked = (OF_DOCUMENT, "--form", "taco-tke", "--nodes", "4", "--gpus-per-node", "8")
    more = ("--name", "taco-bench", "--as", "mpijob", "--format", "json")
    around = json.loads(run("launch", *asked, *more).out)["around"]
    assert around[0] == "kubectl create -f taco-bench.yaml"
    assert "kubectl cp tensorflow_synthetic_benchmark.py $i:/mnt/" in around[2]
    assert around[3] == "kubectl exec -it taco-bench-launcher -- bash"


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("gpus", "pages"), [("1", "15Gi"), ("2", "20Gi"), ("4", "30Gi"), ("8", "50Gi")]
)
def test_huge_pages_go_by_the_number_of_gpus(
    run: Callable[..., Ended], gpus: str, pages: str
) -> None:
    asked = (HARP, "--nodes", "2", "--gpus-per-node", gpus, "--as", "mpijob")
    (job,) = manifests(run, *asked)
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert worker["resources"]["limits"]["hugepages-1Gi"] == pages
    assert worker["securityContext"] == {"privileged": True}


@pytest.mark.usefixtures("project")
def test_what_is_asked_of_the_cluster(run: Callable[..., Ended]) -> None:
    (job,) = manifests(run, BARE_METAL, *TWO, *EVERYTHING, "--as", "mpijob")
    assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "team-a"}
    assert job["spec"]["runPolicy"]["schedulingPolicy"] == {"minAvailable": 3}
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    networks = template["metadata"]["annotations"]
    assert networks == {"k8s.v1.cni.cncf.io/networks": "rdma-net"}
    assert "hostNetwork" not in template["spec"]
    (container,) = template["spec"]["containers"]
    assert container["resources"]["limits"] == {
        "memory": "200Gi",
        "nvidia.com/gpu": 8,
        "example.com/hca": 1,
    }
    (first,) = template["spec"]["initContainers"]
    assert first["args"] == ["validate", "--preflight"]
    assert first["resources"] == container["resources"]
    assert {"mountPath": "/dev/shm", "name": "shm"} in container["volumeMounts"]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("form", ["mpijob", "trainjob"])
@pytest.mark.parametrize("asked", CASES.values(), ids=CASES)
def test_every_value_of_a_manifest_is_explained(
    run: Callable[..., Ended], form: str, asked: tuple[str, ...]
) -> None:
    out = run("launch", *asked, "--as", form, "--explain").out
    rows = [line for line in out.splitlines() if line.startswith("# ")]
    assert len(rows) > 20
    bare = [row for row in rows if not all(f"{word}: " in row for word in ("without it", "source"))]
    assert bare == []
    assert [row for row in rows if "without it: ;" in row or row.endswith("source: ")] == []


TACO = """
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata:
  name: taco-bench
spec:
  slotsPerWorker: 1
  runPolicy:
    cleanPodPolicy: Running
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - image: ccr.ccs.tencentyun.com/qcloud/taco-training:cu112-cudnn81-py3-0.3.2
            name: mpi-launcher
            command: ["/bin/sh", "-ec", "sleep infinity"]
            resources:
              limits:
                cpu: 1
                memory: 2Gi
    Worker:
      replicas: 4
      template:
        spec:
          containers:
          - image: ccr.ccs.tencentyun.com/qcloud/taco-training:cu112-cudnn81-py3-0.3.2
            name: mpi-worker
            securityContext:
              privileged: true
            volumeMounts:
              - mountPath: /sys/
                name: sys
              - mountPath: /dev/hugepages
                name: dev-hge
              - mountPath: /usr/local/tfabric/tools
                name: tfabric
            resources:
              limits:
                hugepages-1Gi: "50Gi"
                memory: "100Gi"
                nvidia.com/gpu: 8 # requesting 1 GPU
          volumes:
            - name: sys
              hostPath:
                path: /sys/
            - name: dev-hge
              hostPath:
                path: /dev/hugepages/
            - name: tfabric
              hostPath:
                path: /usr/local/tfabric/tools/
"""
"""taco.yaml of the document."""
