"""Test every form over cells of all matrices: what comes out, and that all of it is explained."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from imagegen.catalog.documents import read_documents, read_reasons
from imagegen.cli.launch import FORMS as CHOICES
from imagegen.cli.launch import SETTINGS
from imagegen.config.payload import Payload
from imagegen.launcher.launch import FORMS
from imagegen.launcher.mpirun import PARTS
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.conftest import Ended

PAYLOAD = Payload((REPOSITORY,), (REPOSITORY,))
CELLS = (
    *("cpu/debian12-rdma-core", "cpu/debian13-none", "cu113/ubuntu20.04-5.4-3.1.0.0"),
    *("cu113/ubuntu20.04-none-1.3", "cu101/ubuntu18.04", "cu126/ubuntu24.04-3.3.0"),
    "debian-cu118/debian12-runtime",
)
NO_MPI_PROGRAM = {("horovodrun", cell) for cell in ("cpu/debian13-none", "cu126/ubuntu24.04-3.3.0")}
NOT_OF_ARENA = {("arena", "cu113/ubuntu20.04-none-1.3")}


def test_every_form_is_a_choice() -> None:
    assert {*FORMS} == {*CHOICES}


def test_every_part_of_a_document_is_known() -> None:
    documents = read_documents(PAYLOAD)
    assert {*documents} == {"taco-bare-metal", "ack-arena", "taco-tke", "lab"}
    for one in documents.values():
        assert {*one.order} <= {*PARTS}, one.name
        assert one.source


def test_every_setting_of_the_table_is_an_option() -> None:
    data = (REPOSITORY / "dockerfiles/components/lightcc/component.yaml").read_text()
    table = yaml.safe_load(data)["launch"]["settings"]
    assert [one["option"] for one in table] == [name for name, _ in SETTINGS]


def test_every_reason_has_three_texts() -> None:
    for key, one in read_reasons(PAYLOAD).items():
        assert all((one.why, one.without, one.source)), key


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("form", CHOICES)
@pytest.mark.parametrize("cell", CELLS)
def test_two_nodes_of_every_image(run: Callable[..., Ended], cell: str, form: str) -> None:
    hosts = ("--hosts", "node-1,node-2") if form in ("mpirun", "torchrun", "horovodrun") else ()
    asked = ("launch", cell, "--as", form, "--nodes", "2", "--gpus-per-node", "2", *hosts)
    if (form, cell) in NO_MPI_PROGRAM | NOT_OF_ARENA:
        ended = run(*asked)
        assert "hint: " in ended.err
        return
    out = run(*asked, "--explain").out
    made = json.loads(run(*asked, "--format", "json").out)["command"]
    rows = [line for line in out.removeprefix(made).splitlines() if line.startswith("# ")]
    assert rows
    for row in rows:
        assert re.search(r"# .+ # .+; without it: .+; source: .+", row), row
    if form != "docker":
        alone = not any(word in made for word in ("--via", "MASTER_ADDR"))
        assert not alone, made


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("runtime", ["pyxis", "apptainer", "none"])
def test_a_script_for_slurm_is_one_for_bash(
    run: Callable[..., Ended], cell: str, runtime: str
) -> None:
    asked = ("launch", cell, "--as", "sbatch", "--nodes", "2", "--gpus-per-node", "2")
    text = json.loads(run(*asked, "--runtime", runtime, "--format", "json").out)["command"]
    assert text.startswith("#!/bin/bash\n#SBATCH --job-name=")
    assert "#SBATCH --nodes=2\n" in text
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    if runtime == "pyxis":
        assert "--container-image=" in text
    else:
        assert ("apptainer exec" in text) == (runtime == "apptainer")
        assert "--container-image=" not in text


@pytest.mark.usefixtures("project")
def test_slurm_starts_the_ranks_of_mpi_through_pmix(run: Callable[..., Ended]) -> None:
    asked = ("launch", "cu113/ubuntu20.04-none-1.3", "--as", "sbatch", "--nodes", "2")
    text = json.loads(run(*asked, "--gpus-per-node", "8", "--format", "json").out)["command"]
    assert "#SBATCH --ntasks-per-node=8\n#SBATCH --gpus-per-node=8\n" in text
    assert "--mpi=pmix" in text
    assert "--container-mounts=/sys:/sys,/dev/hugepages:/dev/hugepages,/usr/local/tfabric" in text
    ended = run("launch", "lab/ubuntu18.04", "--as", "sbatch", "--nodes", "2")
    assert "no MPI that Slurm can start ranks of" in ended.err


@pytest.mark.usefixtures("project")
def test_slurm_meets_on_the_first_node_of_the_job(run: Callable[..., Ended]) -> None:
    asked = ("launch", "cpu/debian13-none", "--as", "sbatch", "--nodes", "2", "--format", "json")
    text = json.loads(run(*asked).out)["command"]
    shown = text.replace('$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)', "n1")
    function = 'srun() { printf "%s\\n" "$@"; }\n'
    body = shown.replace("set -eu\n", f"set -eu\n{function}")
    done = subprocess.run(["bash"], input=body, text=True, capture_output=True, check=True)
    assert "--rdzv_endpoint=n1:29500" in done.stdout.splitlines()
    assert "#SBATCH --ntasks-per-node=1\n" in text


@pytest.mark.usefixtures("project")
def test_names_of_nodes_are_for_those_who_choose_them(run: Callable[..., Ended]) -> None:
    asked = ("launch", "cpu/debian13-none", "--hosts", "gpu1,gpu2", "--name", "bench")
    assert "#SBATCH --nodelist=gpu1,gpu2\n" in run(*asked, "--as", "sbatch").out
    job = run(*asked, "--as", "mpijob").out
    assert "gpu1" not in job
    assert "MASTER_ADDR=bench-worker-0.bench" in job


@pytest.mark.usefixtures("project")
def test_arguments_after_two_dashes_are_the_scripts(run: Callable[..., Ended]) -> None:
    asked = ("launch", "cpu/debian12-none", "--as", "mpirun", "--gpus-per-node", "2")
    out = run(*asked, "--", "/mine/train.py", "--lr", "0.1").out
    assert out.endswith("python3 /mine/train.py \\\n  --lr \\\n  0.1\n")
    assert "--via" not in out


@pytest.mark.usefixtures("project")
def test_an_image_by_its_name_in_a_registry(run: Callable[..., Ended]) -> None:
    name = "registry.example.com:5000/team/imagegen/cpu:debian12-torch1.13.1-none"
    assert run("launch", name).out.endswith(f"{name}\n")


@pytest.mark.usefixtures("project")
def test_defaults_are_what_the_image_is_made_for(run: Callable[..., Ended]) -> None:
    rdma = run("launch", "cu113/ubuntu20.04-5.4-3.1.0.0").out
    assert "--device=/dev/infiniband" in rdma
    harp = run("launch", "cu113/ubuntu20.04-none-1.3").out
    assert "-v /dev/hugepages:/dev/hugepages" in harp
    two = ("--hosts", "a,b", "--gpus-per-node", "8")
    ranks = run("launch", "cu113/ubuntu20.04-5.4-3.1.0.0", "--as", "mpirun", *two).out
    assert "LIGHT_2D_ALLREDUCE=1" in ranks
    assert "NCCL_NET_GDR_LEVEL=0" in ranks


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--nodes", "3", "--hosts", "a,b"), "--nodes 3 with 2 hosts"),
        (("--form", "taco"), "there is no document `taco`"),
        (("--set", "topk"), "`--set topk` has no value"),
        (("--name", "Bad_Name"), "cannot be the name of a job"),
        (("--as", "mpirun", "--nodes", "2"), "mpirun has to know the names of the 2 nodes"),
        (("--as", "torchrun", "--accel", "horovod"), "`torchrun` starts no ranks of acceleration"),
    ],
)
def test_what_is_refused(run: Callable[..., Ended], asked: tuple[str, ...], words: str) -> None:
    ended = run("launch", "cpu/debian12-none", *asked)
    assert ended.code == 2
    assert words in ended.err
    assert "hint: " in ended.err
