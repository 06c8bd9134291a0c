"""Test launch commands: the flags of the guides, in their order, safe to paste."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from imagegen.catalog.reader import read_catalog
from imagegen.config.payload import Payload
from imagegen.errors import ConfigError
from imagegen.launcher.launch import LaunchRequest, command, render
from imagegen.model.launch import Launch, Variable
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from imagegen.model.catalog import Contract

CONTRACT: Contract = {
    "caps": ["IPC_LOCK"],
    "devices": ["/dev/infiniband"],
    "ulimits": {"memlock": -1, "stack": 67108864},
    "shm_bytes": 34359738368,
    "network": "host",
}
LAUNCHES = {
    name: component.launch
    for name, component in read_catalog(Payload((REPOSITORY,), (REPOSITORY,))).components.items()
}
GPU = LaunchRequest(
    image="imagegen/cu113:torch1.11",
    contract=CONTRACT,
    components={
        "openmpi": "4.1.4",
        "rdma": "5.4",
        "lightcc": "3.1.1",
        "horovod": "0.21.3",
        "torch": "1.11",
    },
    launches=LAUNCHES,
    device="gpu",
    form="mpirun",
    accel="horovod",
    gpus_per_node=8,
    model="resnet50",
    batch=256,
    script="/mnt/pytorch_synthetic_benchmark.py",
)
CPU = replace(
    GPU,
    image="imagegen/cpu:debian12",
    components={"openmpi": "4.1.4", "horovod": "0.28.1", "torch": "1.13.1"},
    device="cpu",
    gpus_per_node=2,
    contract={
        "caps": ["SYS_PTRACE"],
        "devices": [],
        "ulimits": {},
        "shm_bytes": 0,
        "network": "bridge",
    },
)


def line(request: LaunchRequest) -> str:
    return " ".join(command(request).argv)


def problems(request: LaunchRequest) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        command(request)
    assert all(problem.hint for problem in caught.value.problems)
    return [problem.text for problem in caught.value.problems]


def test_docker_of_a_gpu_image_without_privileged() -> None:
    assert line(replace(GPU, form="docker", transport="rdma")) == (
        "docker run -itd --rm --gpus all --shm-size=32g --ulimit memlock=-1"
        " --ulimit stack=67108864 --net=host --cap-add=IPC_LOCK --device=/dev/infiniband"
        " imagegen/cu113:torch1.11"
    )


def test_docker_over_sockets_asks_for_no_rdma_device() -> None:
    assert "--device" not in line(replace(GPU, form="docker"))


def test_docker_of_a_cpu_image() -> None:
    docker = replace(CPU, form="docker")
    assert line(docker) == "docker run -itd --rm --cap-add=SYS_PTRACE imagegen/cpu:debian12"
    assert "--net=host" in line(replace(docker, nodes=("a", "b")))


def test_docker_with_harp_needs_the_host() -> None:
    components = {**GPU.components, "harp": "1"}
    said = line(replace(GPU, form="docker", transport="harp", components=components))
    assert "--privileged -v /sys:/sys -v /dev/hugepages:/dev/hugepages" in said
    assert "-v /usr/local/tfabric/tools:/usr/local/tfabric/tools" in said
    assert "--cap-add" not in said


def test_shared_memory_that_is_no_whole_gibibyte() -> None:
    contract: Contract = {**CONTRACT, "shm_bytes": 1000}
    assert "--shm-size=1000" in line(replace(GPU, form="docker", contract=contract))


def test_one_gpu_over_sockets() -> None:
    request = replace(GPU, gpus_per_node=1, model="vgg16", batch=128, iface="eth0")
    assert line(request) == (
        "/usr/local/openmpi/bin/mpirun -np 1 --allow-run-as-root -bind-to none -map-by slot"
        " -x NCCL_DEBUG=INFO -x NCCL_SOCKET_IFNAME=eth0 -x LD_LIBRARY_PATH -x PATH"
        " -mca btl_tcp_if_include eth0"
        " python3 /mnt/pytorch_synthetic_benchmark.py --model=vgg16 --batch-size=128"
    )


@pytest.mark.parametrize(("transport", "level"), [("rdma", 0), ("rdma+gdr", 2)])
def test_two_nodes_over_rdma_with_lightcc(transport: str, level: int) -> None:
    request = replace(
        GPU, nodes=("gpu1", "gpu2"), transport=transport, accel="lightcc", iface="bond0"
    )
    assert line(request) == (
        "/usr/local/openmpi/bin/mpirun -np 16 -H gpu1:8,gpu2:8 --allow-run-as-root -bind-to none"
        " -map-by slot -x NCCL_DEBUG=INFO -x NCCL_IB_DISABLE=0 -x NCCL_SOCKET_IFNAME=bond0"
        f" -x NCCL_IB_GID_INDEX=3 -x NCCL_NET_GDR_LEVEL={level} -x HOROVOD_FUSION_THRESHOLD=0"
        " -x HOROVOD_CYCLE_TIME=0 -x LIGHT_INTRA_SIZE=8 -x LIGHT_2D_ALLREDUCE=1"
        " -x LIGHT_TOPK_ALLREDUCE=1 -x LIGHT_TOPK_THRESHOLD=2097152 -x LD_LIBRARY_PATH -x PATH"
        " -mca pml ob1 -mca btl_tcp_if_include bond0 -mca btl ^openib"
        " python3 /mnt/pytorch_synthetic_benchmark.py --model=resnet50 --batch-size=256"
    )


def test_horovod_goes_without_the_settings_of_lightcc() -> None:
    said = line(replace(GPU, nodes=("gpu1", "gpu2"), transport="rdma"))
    assert "LIGHT_" not in said
    assert "HOROVOD_" not in said


def test_four_nodes_over_harp() -> None:
    request = replace(
        GPU,
        nodes=tuple(f"taco-bench-worker-{i}" for i in range(4)),
        components={**GPU.components, "harp": "1"},
        transport="harp",
        accel="lightcc",
        iface="eth0",
    )
    said = line(request)
    assert "-np 32 -H taco-bench-worker-0:8,taco-bench-worker-1:8,taco-bench-worker-2:8" in said
    assert "-x NCCL_ALGO=RING -x NCCL_DEBUG=INFO" in said
    assert "-x HOROVOD_MPI_THREADS_DISABLE=1" in said
    assert "-mca btl_tcp_if_include eth0 python3" in said
    assert "NCCL_IB" not in said
    assert "pml" not in said


def test_cpu_image_has_no_nccl_and_slots_for_all_ranks() -> None:
    said = line(CPU)
    assert "NCCL" not in said
    assert "LD_LIBRARY_PATH" not in said
    assert "-np 2 -H localhost:2 --allow-run-as-root" in said
    assert said.endswith(
        "-x PATH -mca pml ob1 -mca btl ^openib"
        " python3 /mnt/pytorch_synthetic_benchmark.py --model=resnet50 --batch-size=256"
    )


def test_ddp_ranks_meet_on_the_first_node() -> None:
    said = line(replace(GPU, accel="ddp", nodes=("gpu1", "gpu2")))
    assert "-x MASTER_ADDR=gpu1 -x MASTER_PORT=29500" in said


def test_what_the_image_lacks_is_refused_all_at_once() -> None:
    found = problems(replace(GPU, components={"openmpi": "4.1.4"}, transport="rdma"))
    assert found == [
        "transport `rdma` needs component `rdma`, which the image does not have",
        "acceleration `horovod` needs component `horovod`, which the image does not have",
    ]
    assert problems(replace(GPU, form="docker", transport="harp")) == [
        "transport `harp` needs component `harp`, which the image does not have"
    ]


def test_a_new_component_brings_a_transport_with_its_data_alone() -> None:
    variables = (Variable("FABRIC_RANKS={gpus_per_node}", "why"), Variable("FABRIC={iface}", "why"))
    launches = {**LAUNCHES, "fabric": Launch(transports=("fabric",), variables=variables)}
    components = {**GPU.components, "fabric": "1"}
    request = replace(GPU, transport="fabric", launches=launches, components=components)
    said = line(request)
    assert "-x NCCL_DEBUG=INFO -x FABRIC_RANKS=8 -x LD_LIBRARY_PATH" in said
    assert "-x FABRIC=eth0" in line(replace(request, iface="eth0"))
    assert problems(replace(request, components=GPU.components)) == [
        "transport `fabric` needs component `fabric`, which the image does not have"
    ]


def test_acceleration_is_not_a_question_of_docker() -> None:
    components = {"openmpi": "5.0.7", "torch": "2.6.0"}
    assert line(replace(CPU, form="docker", components=components)).startswith("docker run")
    assert len(problems(replace(CPU, components=components))) == 1
    assert "python3" in line(replace(CPU, components=components, accel="none"))


def test_rdma_is_not_for_the_ranks_of_a_cpu_image() -> None:
    components = {**CPU.components, "rdma": "44.0"}
    (text,) = problems(replace(CPU, components=components, transport="rdma"))
    assert "a CPU image trains through MPI" in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpus_per_node": 0}, "ranks on a node: 0 is too few"),
        ({"batch": -1}, "batch: -1 is too few"),
        ({"nodes": ("gpu1", "gpu2;id")}, "node `gpu2;id` is not a host name"),
        ({"nodes": ("gpu1:4",)}, "node `gpu1:4` is not a host name"),
        ({"nodes": ("gpu1", "gpu1")}, "a node is named twice"),
        ({"model": "a\nid"}, "value 'a\\nid' has a control character"),
        ({"script": ""}, "there is no script to run"),
        ({"transport": "rmda"}, "there is no transport `rmda`"),
        ({"form": "docker", "accel": "hvd"}, "there is no acceleration `hvd`"),
        (
            {"components": {"horovod": "0.21.3"}},
            "the image has no `openmpi`, so no `mpirun` either",
        ),
    ],
)
def test_wrong_wishes(changes: dict[str, Any], words: str) -> None:
    assert problems(replace(GPU, **changes)) == [words]


def test_what_is_pasted_is_what_was_meant() -> None:
    request = replace(GPU, script="/mnt/it's $(id) `id`; a b.py", model='a"b', iface="eth0|x")
    made = command(request)
    asked = subprocess.run(
        ["sh", "-c", f"set -- {render(made)}\nprintf '%s\\0' \"$@\""],
        check=True,
        capture_output=True,
        text=True,
    )
    assert tuple(asked.stdout.split("\0")[:-1]) == made.argv


def test_render_is_one_command_over_lines() -> None:
    text = render(command(CPU))
    assert all(each.endswith(" \\") for each in text.splitlines()[:-1])
    assert not text.endswith("\\")


def test_explain_gives_each_flag_its_reason_and_stays_pasteable() -> None:
    made = command(replace(GPU, transport="rdma", iface="bond0"))
    text = render(made, explain=True)
    pasteable, table = text.split("\n\n")
    assert pasteable == render(made)
    rows = table.splitlines()
    assert len(rows) == len(made.flags)
    for row, flag in zip(rows, made.flags, strict=True):
        assert re.fullmatch(rf"# {re.escape(flag.text)} +# {re.escape(flag.why)}", row)
        assert flag.why
