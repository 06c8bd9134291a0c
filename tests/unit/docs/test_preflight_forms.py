"""Test the ready forms of a preflight: valid manifests, readable scripts, real options."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kubeflow_trainer_api import models as trainer
from kubernetes import client

from unit.conftest import REPOSITORY
from validate import arguments
from validate.preflight import ORDER, START
from validate.remedy import DRAIN
from validate.requirements import PROFILES, parse_required

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMS = REPOSITORY / "docs/preflight"
MANIFESTS = sorted(FORMS.glob("*.yaml"))
SCRIPTS = [FORMS / "cordon.sh", FORMS / "prolog.sh", FORMS / "step.sbatch"]


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def below(data: object) -> Iterator[dict[str, Any]]:
    """Yield every object of a manifest."""
    if isinstance(data, dict):
        yield data
        for value in data.values():
            yield from below(value)
    if isinstance(data, list):
        for value in data:
            yield from below(value)


def containers(path: Path) -> list[dict[str, Any]]:
    return [one for page in documents(path) for one in below(page) if "image" in one]


def same_after_reading(kind: str, data: dict[str, Any]) -> bool:
    """Return whether Kubernetes' own model of a kind keeps all that a manifest says."""

    class Answer:
        data = ""

    for one in below(data):  # a quantity is a string to Kubernetes, also one that is a number
        one.update({k: str(v) for k, v in one.items() if k in ("nvidia.com/gpu", "rdma/hca")})
    answer = Answer()
    answer.data = json.dumps(data)
    api = client.ApiClient()
    return bool(api.sanitize_for_serialization(api.deserialize(answer, kind)) == data)


def test_all_forms_are_there_and_on_the_page() -> None:
    page = (REPOSITORY / "docs/preflight.md").read_text()
    names = {path.name for path in FORMS.iterdir()}
    assert names == set(re.findall(r"\(preflight/([\w.-]+)\)", page))
    assert len(MANIFESTS) == 3


def test_the_job_over_all_nodes_is_one_of_kubernetes() -> None:
    (job,) = documents(FORMS / "every-node.yaml")
    assert same_after_reading("V1Job", job)
    spec = job["spec"]
    assert spec["completions"] == spec["parallelism"] == spec["maxFailedIndexes"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_every_pod_is_one_of_kubernetes(path: Path) -> None:
    pods = [one for page in documents(path) for one in below(page) if "containers" in one]
    assert pods
    for pod in pods:
        assert same_after_reading("V1PodSpec", pod)
        mounts = [m["name"] for one in containers(path) for m in one.get("volumeMounts", [])]
        if "volumes" in pod:
            assert set(mounts) == {one["name"] for one in pod["volumes"]}


def test_the_trainjob_and_its_runtime_are_those_of_kubeflow() -> None:
    runtime, job = documents(FORMS / "trainjob.yaml")
    read = trainer.TrainerV1alpha1ClusterTrainingRuntime.from_dict(runtime)
    assert read is not None
    assert read.to_dict()["spec"].keys() >= runtime["spec"].keys()
    assert (
        trainer.TrainerV1alpha1TrainJob.from_dict(job).spec.runtime_ref.name
        == (runtime["metadata"]["name"])
    )
    # Why the init container is in the runtime: a job may patch containers, not bring one.
    assert "image" not in trainer.TrainerV1alpha1ContainerPatch.model_fields


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_gate_has_what_the_job_has(path: Path) -> None:
    (gate,) = [one for one in containers(path) if one["name"] == "preflight"]
    assert "command" not in gate  # it would leave the entrypoint out
    assert gate["terminationMessagePolicy"] == "FallbackToLogsOnError"
    gpus = gate["resources"]["limits"]["nvidia.com/gpu"]
    assert f"gpu={gpus}" in gate["args"]
    works = [one for one in containers(path) if one["name"] in ("worker", "node")]
    for one in works:
        assert one["image"] == gate["image"]
        for name in ("resources", "securityContext", "volumeMounts"):
            assert one.get(name, gate.get(name)) == gate.get(name), name


def commands() -> Iterator[list[str]]:
    """Yield each command line of `validate` in the forms and on the page."""
    for path in MANIFESTS:
        yield from (one["args"] for one in containers(path) if "args" in one)
    for path in (*SCRIPTS, REPOSITORY / "docs/preflight.md"):
        text = path.read_text().replace("\\\n", " ")
        for line in re.findall(r"validate --preflight[^\n'`|]*", text):
            yield shlex.split(re.sub(r"2>&1.*|\|\|.*", "", line.rstrip(")")))


@pytest.mark.parametrize("words", [*commands()], ids=" ".join)
def test_the_commands_are_those_of_the_command_line(words: list[str]) -> None:
    assert words[0] == "validate"
    asked = arguments.parsed(words[1:])
    assert asked.preflight
    assert asked.profile in ("", *PROFILES)
    names, gpus = parse_required(asked.require)
    assert (names, gpus) in (([], 0), (["gpu"], 8))


def test_there_are_commands() -> None:
    assert len(list(commands())) >= 7


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_shell_reads_the_scripts(path: Path) -> None:
    shell = path.read_text().splitlines()[0].rpartition("/")[2]
    subprocess.run([shell, "-n", path], check=True)


@pytest.mark.parametrize("last", [START, *ORDER])
def test_the_prolog_drains_for_the_host_only(tmp_path: Path, last: str) -> None:
    for name, line in {
        "docker": f"echo first; echo '{last}: gpu.ecc: GPU 1: 4 errors'",
        "scontrol": f'echo "$@" > {tmp_path}/scontrol.log',
        "logger": "true",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURMD_NODENAME": "node-7"}
    ended = subprocess.run(["sh", FORMS / "prolog.sh"], env=env, check=False)
    assert ended.returncode == int(last == DRAIN)
    log = tmp_path / "scontrol.log"
    said = log.read_text() if log.exists() else ""
    wanted = "update NodeName=node-7 State=DRAIN Reason=drain: gpu.ecc: GPU 1: 4 errors\n"
    assert said == (wanted if last == DRAIN else "")


def test_the_nodes_to_drain_are_cordoned(tmp_path: Path) -> None:
    def pod(node: str, message: str) -> dict[str, Any]:
        ended = {"state": {"terminated": {"message": message}}}
        return {"spec": {"nodeName": node}, "status": {"containerStatuses": [ended]}}

    last = "FAIL  gpu.ecc\n\ndrain: gpu.ecc: GPU 1: 4 errors\n"
    running = {"spec": {"nodeName": "d"}, "status": {"containerStatuses": [{"state": {}}]}}
    pods = [pod("a", last), pod("b", "start: all\n"), pod("c", "relaunch: drain: no\n"), running]
    (tmp_path / "pods.json").write_text(json.dumps({"items": pods}))
    line = f'[ "$1" = get ] && cat {tmp_path}/pods.json || echo "$@" >> {tmp_path}/log'
    (tmp_path / "kubectl").write_text(f"#!/bin/sh\n{line}\n")
    (tmp_path / "kubectl").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin"}
    script = ["sh", str(FORMS / "cordon.sh")]
    ended = subprocess.run(script, env=env, check=True, capture_output=True, text=True)
    assert (tmp_path / "log").read_text() == "cordon a\n"
    assert ended.stdout == "a drain: gpu.ecc: GPU 1: 4 errors\n"
