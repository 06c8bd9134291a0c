"""Test that `imagegen launch --form` writes the lines of the documents, argument for argument."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.conftest import Ended

BARE_METAL = ("cu113/ubuntu20.04-5.4-3.1.0.0", "--form", "taco-bare-metal")
TKE = ("cu112/ubuntu18.04-1.3-3.1.1", "--form", "taco-tke", "--name", "taco-bench")
ARENA = ("cu101/ubuntu18.04", "--form", "ack-arena", "--as", "arena", "--nodes", "4")
LAB = ("lab/ubuntu18.04", "--form", "lab", "--gpus-per-node", "2")
TWO_NODES = ("--nodes", "2", "--gpus-per-node", "8", "--batch-size", "256")

RANKS = """/usr/local/openmpi/bin/mpirun -np 16 -H gpu1:8,gpu2:8 --allow-run-as-root -bind-to none
 -map-by slot -x NCCL_DEBUG=INFO -x NCCL_IB_DISABLE=0 -x NCCL_SOCKET_IFNAME=bond0
 -x NCCL_IB_GID_INDEX=3 -x NCCL_NET_GDR_LEVEL={level} {accel} -x LD_LIBRARY_PATH -x PATH
 -mca pml ob1 -mca btl_tcp_if_include bond0 -mca btl ^openib
 python3 /mnt/pytorch_synthetic_benchmark.py --model resnet50 --batch-size=256"""
LIGHT = """-x HOROVOD_FUSION_THRESHOLD=0 -x HOROVOD_CYCLE_TIME=0 -x LIGHT_INTRA_SIZE=8
 -x LIGHT_2D_ALLREDUCE=1 -x LIGHT_TOPK_ALLREDUCE=1 -x LIGHT_TOPK_THRESHOLD=2097152"""
SUBMIT = """arena submit mpi --name={name} --gpus=1 --workers=4 {topology}
 --image=registry.cn-hangzhou.aliyuncs.com/kubernetes-image-hub/pytorch-benchmark:torch1.6.0-py3.7-cuda10.1
 "mpirun --allow-run-as-root -np "4" -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x
 NCCL_SOCKET_IFNAME=eth0 -x LD_LIBRARY_PATH -x PATH --mca pml ob1 --mca btl_tcp_if_include eth0
 --mca oob_tcp_if_include eth0 --mca orte_keep_fqdn_hostnames t --mca btl ^openib python
 /examples/pytorch_synthetic_benchmark.py --model={model} --batch-size=64\""""

CASES = {
    "docker on bare metal": (
        (*BARE_METAL, "--privileged"),
        """docker run -itd --rm --gpus all --shm-size=32g --ulimit memlock=-1
 --ulimit stack=67108864 --net=host --privileged
 ccr.ccs.tencentyun.com/qcloud/taco-train:torch111-cu113-bm-0.4.1""",
    ),
    "one GPU": (
        (*BARE_METAL, "--as", "mpirun", "--model", "vgg16", "--batch-size", "128"),
        """/usr/local/openmpi/bin/mpirun -np 1 --allow-run-as-root -bind-to none -map-by slot
 -x NCCL_DEBUG=INFO -x NCCL_SOCKET_IFNAME=eth0 -x LD_LIBRARY_PATH -x PATH
 -mca btl_tcp_if_include eth0 python3 /mnt/pytorch_synthetic_benchmark.py
 --model=vgg16 --batch-size=128""",
    ),
    "eight GPUs": (
        (*BARE_METAL, "--as", "mpirun", "--gpus-per-node", "8", "--batch-size", "256"),
        """/usr/local/openmpi/bin/mpirun -np 8 --allow-run-as-root -bind-to none -map-by slot
 -x NCCL_DEBUG=INFO -x NCCL_IB_DISABLE=0 -x NCCL_SOCKET_IFNAME=bond0 -x NCCL_IB_GID_INDEX=3
 -x NCCL_NET_GDR_LEVEL=0 -x LD_LIBRARY_PATH -x PATH -mca pml ob1 -mca btl_tcp_if_include bond0
 -mca btl ^openib python3 /mnt/pytorch_synthetic_benchmark.py --model resnet50
 --batch-size=256""",
    ),
    "two machines with LightCC": (
        (*BARE_METAL, "--as", "mpirun", *TWO_NODES),
        RANKS.format(level=0, accel=LIGHT),
    ),
    "two machines without": (
        (*BARE_METAL, "--as", "mpirun", *TWO_NODES, "--accel", "horovod"),
        RANKS.format(level=0, accel=""),
    ),
    "two machines with GDR": (
        (*BARE_METAL, "--as", "mpirun", *TWO_NODES, "--transport", "rdma+gdr"),
        RANKS.format(level=2, accel=LIGHT),
    ),
    "four workers with HARP": (
        (
            *TKE,
            *("--as", "mpirun", "--nodes", "4", "--gpus-per-node", "8"),
            *("--model", "VGG16", "--batch-size", "128"),
        ),
        """/usr/local/openmpi/bin/mpirun -np 32 -H
 taco-bench-worker-0:8,taco-bench-worker-1:8,taco-bench-worker-2:8,taco-bench-worker-3:8
 --allow-run-as-root -bind-to none -map-by slot -x NCCL_ALGO=RING -x NCCL_DEBUG=INFO
 -x HOROVOD_MPI_THREADS_DISABLE=1 -x HOROVOD_FUSION_THRESHOLD=0 -x HOROVOD_CYCLE_TIME=0
 -x LIGHT_2D_ALLREDUCE=1 -x LIGHT_TOPK_ALLREDUCE=1 -x LIGHT_TOPK_THRESHOLD=2097152
 -x LIGHT_INTRA_SIZE=8 -x LD_LIBRARY_PATH -x PATH -mca btl_tcp_if_include eth0
 python3 /mnt/tensorflow_synthetic_benchmark.py --model=VGG16 --batch-size=128""",
    ),
    "horovodrun of the lab": (
        (*LAB, "--as", "horovodrun"),
        "horovodrun -n 2 python3 pytorch_mnist_horovod.py --hvd True",
    ),
    "mpirun of the lab": (
        (*LAB, "--as", "mpirun"),
        "mpirun -n 2 python pytorch_mnist_compress.py --bit8-allreduce",
    ),
    "16 bits in the lab": (
        (*LAB, "--as", "mpirun", "--", "pytorch_mnist_compress.py", "--bit16-allreduce"),
        "mpirun -n 2 python pytorch_mnist_compress.py --bit16-allreduce",
    ),
    **{
        f"arena {'by topology' if topology else 'plainly'} {model}": (
            (*ARENA, "--name", name, "--model", model, *(["--gputopology"] if topology else [])),
            SUBMIT.format(name=name, topology=topology, model=model),
        )
        for name, topology, model in (
            ("pytorch-topo-4-vgg16", "--gputopology=true", "vgg16"),
            ("pytorch-4-vgg16", "", "vgg16"),
            ("pytorch-topo-4-resnet50", "--gputopology=true", "resnet50"),
            ("pytorch-4-resnet50", "", "resnet50"),
        )
    },
}
"""What is asked for, and the line of the document as it stands there (the spaces aside)."""


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("asked", "line"), CASES.values(), ids=CASES)
def test_a_line_of_a_document(run: Callable[..., Ended], asked: tuple[str, ...], line: str) -> None:
    arguments = [*asked]
    place = arguments.index("--") if "--" in arguments else len(arguments)
    arguments[place:place] = ["--format", "json"]
    made = json.loads(run("launch", *arguments).out)
    expected = shlex.split(" ".join(line.split()))
    assert made["argv"] == expected
    assert shlex.split(made["command"].replace("\\\n", " ")) == expected


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("asked", [asked for asked, _ in CASES.values()], ids=CASES)
def test_every_argument_of_a_document_is_explained(
    run: Callable[..., Ended], asked: tuple[str, ...]
) -> None:
    arguments = [*asked]
    place = arguments.index("--") if "--" in arguments else len(arguments)
    pasted = run("launch", *arguments).out
    arguments[place:place] = ["--explain"]
    out = run("launch", *arguments).out
    rows = [line for line in out.splitlines() if line.startswith("# ")]
    made = json.loads(run("launch", *asked[:place], "--format", "json", *asked[place:]).out)
    for line in made["command"].split(" \\\n  "):
        (row,) = [row for row in rows if row.startswith(f"# {line} ")][:1] or [""]
        assert "without it: " in row, line
        assert "; source: " in row, line
    assert made["command"] in pasted


@pytest.mark.usefixtures("project")
def test_the_lines_around_a_submission(run: Callable[..., Ended]) -> None:
    asked = (*ARENA, "--name", "pytorch-topo-4-vgg16", "--gputopology", "--format", "json")
    assert json.loads(run("launch", *asked).out)["around"] == [
        "kubectl label node NODE ack.node.gpu.schedule=topology",
        "arena get pytorch-topo-4-vgg16 --type mpijob",
        "arena logs -f pytorch-topo-4-vgg16",
        "kubectl label node NODE ack.node.gpu.schedule=default --overwrite",
    ]
