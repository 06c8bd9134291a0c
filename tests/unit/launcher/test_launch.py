"""Test launch commands: the flags of the guides, in their order, safe to paste."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from imagegen.catalog.documents import read_reasons
from imagegen.catalog.reader import read_catalog
from imagegen.config.payload import Payload
from imagegen.errors import ConfigError
from imagegen.launcher.description import Cluster, Description
from imagegen.launcher.launch import explained, launched
from imagegen.model.cell import User
from imagegen.model.launch import Launch, Reason, Variable
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from imagegen.model.launch import Contract

CONTRACT: Contract = {
    "caps": ["IPC_LOCK"],
    "devices": ["/dev/infiniband"],
    "ulimits": {"memlock": -1, "stack": 67108864},
    "shm_bytes": 34359738368,
    "network": "host",
}
PAYLOAD = Payload((REPOSITORY,), (REPOSITORY,))
LAUNCHES = {name: component.launch for name, component in read_catalog(PAYLOAD).components.items()}
GPU = Description(
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
    reasons=read_reasons(PAYLOAD),
    form="mpirun",
    accel="horovod",
    gpus_per_node=8,
    model="resnet50",
    batch=256,
    script=("/mnt/pytorch_synthetic_benchmark.py",),
)
WHY = Reason("why", "what else", "where")
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


def line(request: Description) -> str:
    return " ".join(launched(request).argv)


def problems(request: Description) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        launched(request)
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
    assert "--net=host" in line(replace(docker, nodes=2, hosts=("a", "b")))


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
    request = replace(GPU, gpus_per_node=1, model="vgg16", batch=128, interface="eth0")
    assert line(request) == (
        "/usr/local/openmpi/bin/mpirun -np 1 --allow-run-as-root -bind-to none -map-by slot"
        " -x NCCL_DEBUG=INFO -x NCCL_SOCKET_IFNAME=eth0 -x LD_LIBRARY_PATH -x PATH"
        " -mca btl_tcp_if_include eth0"
        " python3 /mnt/pytorch_synthetic_benchmark.py --model=vgg16 --batch-size=128"
    )


@pytest.mark.parametrize(("transport", "level"), [("rdma", 0), ("rdma+gdr", 2)])
def test_two_nodes_over_rdma_with_lightcc(transport: str, level: int) -> None:
    request = replace(
        GPU,
        nodes=2,
        hosts=("gpu1", "gpu2"),
        transport=transport,
        accel="lightcc",
        interface="bond0",
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
    said = line(replace(GPU, nodes=2, hosts=("gpu1", "gpu2"), transport="rdma"))
    assert "LIGHT_" not in said
    assert "HOROVOD_" not in said


def test_four_nodes_over_harp() -> None:
    request = replace(
        GPU,
        nodes=4,
        hosts=tuple(f"taco-bench-worker-{i}" for i in range(4)),
        components={**GPU.components, "harp": "1"},
        transport="harp",
        accel="lightcc",
        interface="eth0",
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
    said = line(replace(GPU, accel="ddp", nodes=2, hosts=("gpu1", "gpu2")))
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
    variables = (Variable("FABRIC_RANKS={gpus_per_node}", WHY), Variable("FABRIC={iface}", WHY))
    launches = {**LAUNCHES, "fabric": Launch(transports=("fabric",), variables=variables)}
    components = {**GPU.components, "fabric": "1"}
    request = replace(GPU, transport="fabric", launches=launches, components=components)
    said = line(request)
    assert "-x NCCL_DEBUG=INFO -x FABRIC_RANKS=8 -x LD_LIBRARY_PATH" in said
    assert "-x FABRIC=eth0" in line(replace(request, interface="eth0"))
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
        ({"nodes": 2, "hosts": ("gpu1", "gpu2;id")}, "node `gpu2;id` is not a host name"),
        ({"hosts": ("gpu1:4",)}, "node `gpu1:4` is not a host name"),
        ({"nodes": 2, "hosts": ("gpu1", "gpu1")}, "a node is named twice"),
        ({"model": "a\nid"}, "value 'a\\nid' has a control character"),
        ({"script": ()}, "the image has no benchmark, and there is no script to run"),
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
    script = ("/mnt/it's $(id) `id`; a b.py",)
    made = launched(replace(GPU, script=script, model='a"b', interface="eth0|x"))
    asked = subprocess.run(
        ["sh", "-c", f"set -- {made.text}\nprintf '%s\\0' \"$@\""],
        check=True,
        capture_output=True,
        text=True,
    )
    assert tuple(asked.stdout.split("\0")[:-1]) == made.argv


def test_a_command_goes_over_lines() -> None:
    text = launched(CPU).text
    assert all(each.endswith(" \\") for each in text.splitlines()[:-1])
    assert not text.endswith("\\")


def test_explain_gives_each_flag_its_reason() -> None:
    made = launched(replace(GPU, transport="rdma", interface="bond0"))
    rows = explained(made)
    assert len(rows) == len(made.flags)
    for row, flag in zip(rows, made.flags, strict=True):
        why = flag.reason
        assert row.startswith(f"# {flag.text}")
        assert row.endswith(f"# {why.why}; without it: {why.without}; source: {why.source}")
        assert why.why
        assert why.without
        assert why.source


def test_nothing_is_set_that_the_nccl_of_the_image_ignores() -> None:
    rdma = replace(GPU, transport="rdma")
    old, new = ({"nccl": ("2.20.5",)}, {"nccl": ("2.21.5",)})
    assert "NCCL_IB_GID_INDEX=3" in line(replace(rdma, versions=old))
    assert "NCCL_IB_GID_INDEX" not in line(replace(rdma, versions=new))
    both = {"nccl": ("2.21.5", "2.18.1")}
    assert "NCCL_IB_GID_INDEX=3" in line(replace(rdma, versions=both))
    assert "NCCL_NET_GDR_LEVEL" not in line(replace(rdma, versions={"nccl": ("2.2.13",)}))


def test_two_nodes_never_train_alone() -> None:
    two = replace(GPU, nodes=2, hosts=("gpu1", "gpu2"), accel="none")
    assert problems(two) == ["ranks on 2 nodes would train alone: there is no acceleration"]
    assert "python3" in line(replace(GPU, accel="none"))
    for form, accel in (("mpirun", "horovod"), ("torchrun", "ddp"), ("horovodrun", "horovod")):
        (text,) = problems(replace(two, accel=accel, hosts=(), form=form))
        assert text == f"{form} has to know the names of the 2 nodes"


def test_lightcc_without_its_settings_is_horovod() -> None:
    components = {name: one for name, one in GPU.components.items() if name != "horovod"}
    two = replace(GPU, nodes=2, hosts=("gpu1", "gpu2"), components=components)
    assert "LIGHT_" in line(replace(two, accel="lightcc"))
    benchmark = (LAUNCHES["torch"].script,)
    said = line(replace(two, accel="horovod", script=benchmark))
    assert "LIGHT_" not in said
    assert said.endswith("--via horovod")


LIGHT = replace(GPU, nodes=2, hosts=("gpu1", "gpu2"), accel="lightcc")


@pytest.mark.parametrize(
    ("settings", "there", "gone"),
    [
        ({"topk-threshold": "4096"}, "LIGHT_TOPK_THRESHOLD=4096", "LIGHT_TOPK_THRESHOLD=2097152"),
        ({"topk-ratio": "0.05"}, "LIGHT_TOPK_RATIO=0.05", "LIGHT_TOPK_RATIO=0.01"),
        ({"topk": "off"}, "LIGHT_TOPK_ALLREDUCE=0", "LIGHT_TOPK_THRESHOLD"),
        ({"2d-allreduce": "0"}, "LIGHT_2D_ALLREDUCE=0", "LIGHT_INTRA_SIZE"),
        ({"intra-size": "4"}, "LIGHT_INTRA_SIZE=4", "LIGHT_INTRA_SIZE=8"),
        ({"topk-fp16": "1"}, "LIGHT_TOPK_FP16=1", "LIGHT_TOPK_FP16=0"),
        ({"hierarchical-threshold": "1"}, "LIGHT_HIERARCHICAL_THRESHOLD=1", "THRESHOLD=10"),
    ],
)
def test_settings_of_lightcc(settings: dict[str, str], there: str, gone: str) -> None:
    said = line(replace(LIGHT, settings=settings))
    assert f"-x {there} " in said
    assert gone not in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"topk": "2"}, "`--topk 2` (LIGHT_TOPK_ALLREDUCE) takes 0 or 1"),
        ({"topk-ratio": "1.5"}, "takes a number from 0.000001 to 1"),
        ({"topk-ratio": "0"}, "takes a number from 0.000001 to 1"),
        ({"topk-threshold": "-1"}, "takes a whole number from 0"),
        ({"topk-threshold": "1e6"}, "takes a whole number from 0"),
        ({"intra-size": "0"}, "takes a whole number from 1"),
        ({"intra-size": "3"}, "does not divide the 8 GPUs of a node"),
        ({"topk": "0", "topk-ratio": "0.1"}, "does nothing without LIGHT_TOPK_ALLREDUCE=1"),
    ],
)
def test_nonsense_for_lightcc_is_refused(changes: dict[str, str], words: str) -> None:
    (text,) = problems(replace(LIGHT, settings=changes))
    assert words in text


def test_settings_are_of_their_acceleration() -> None:
    (text,) = problems(replace(GPU, settings={"topk": "1"}))
    assert text == "`--topk` is a setting of lightcc"


def test_docker_with_every_right_or_with_cdi() -> None:
    said = line(replace(GPU, form="docker", transport="rdma", privileged=True))
    assert "--net=host --privileged imagegen" in said
    assert "--cap-add" not in said
    said = line(replace(GPU, form="docker", cdi=True))
    assert "--device nvidia.com/gpu=all" in said
    assert "--gpus" not in said


def test_harp_says_what_the_host_needs() -> None:
    components = {**GPU.components, "harp": "1"}
    made = launched(replace(GPU, form="docker", transport="harp", components=components))
    (host,) = made.around
    assert "50 huge pages of 1Gi, 5 x 8 GPUs + 10" in host.text


def test_ranks_of_ddp_meet_where_an_operator_puts_the_first_worker() -> None:
    two = replace(GPU, form="mpijob", accel="ddp", nodes=2, name="bench")
    assert "MASTER_ADDR=bench-worker-0.bench" in launched(two).text
    v1 = replace(two, cluster=Cluster(api="v1"))
    assert "MASTER_ADDR" not in launched(v1).text
    (text,) = problems(replace(v1, script=("/mine.py",), own_script=True))
    assert text == "nobody knows the first node of this job, where ranks of ddp meet"


def test_open_mpi_5_is_told_what_an_operator_says_in_variables() -> None:
    two = replace(GPU, form="mpijob", nodes=2, facts={"runtime": "prrte"})
    words = " ".join(flag.text for flag in launched(two).inner)
    assert "--hostfile /etc/mpi/hostfile --prtemca prte_keep_fqdn_hostnames 1" in words
    assert "kubexec" not in words
    v1 = replace(two, cluster=Cluster(api="v1"))
    words = " ".join(flag.text for flag in launched(v1).inner)
    assert "--prtemca plm_ssh_agent /etc/mpi/kubexec.sh" in words
    four = replace(two, facts={"runtime": "orte"})
    assert "--hostfile" not in launched(four).text


def test_torchrun_meets_on_the_first_node() -> None:
    two = replace(GPU, form="torchrun", accel="ddp", nodes=2, hosts=("gpu1", "gpu2"))
    assert line(two) == (
        "env NCCL_DEBUG=INFO torchrun --nnodes=2 --nproc_per_node=8 --rdzv_id=training"
        " --rdzv_backend=c10d --rdzv_endpoint=gpu1:29500"
        " /mnt/pytorch_synthetic_benchmark.py --model=resnet50 --batch-size=256"
    )
    assert "rdzv" not in line(replace(two, nodes=1, hosts=()))
    own = replace(two, script=("/opt/train", "--lr", "1"), own_script=True)
    assert line(own).endswith("--no_python /opt/train --lr 1")


def test_torchrun_of_an_old_torch_has_a_line_for_each_node() -> None:
    components = {**GPU.components, "torch": "1.6.0"}
    hosts = ("gpu1", "gpu2")
    two = replace(GPU, form="torchrun", accel="ddp", nodes=2, hosts=hosts, components=components)
    first, second = launched(two).text.split("\n\n")
    assert first.startswith("# on gpu1\n")
    assert "python3 -m torch.distributed.launch --use_env" in first
    assert "--node_rank=0" in first
    assert "--master_addr=gpu1" in first
    assert second.startswith("# on gpu2\n")
    assert "--node_rank=1" in second


def test_horovodrun_hands_its_variables_on() -> None:
    two = replace(LIGHT, form="horovodrun", transport="rdma", interface="bond0")
    said = line(two)
    assert said.startswith("env NCCL_DEBUG=INFO NCCL_IB_DISABLE=0 NCCL_SOCKET_IFNAME=bond0 ")
    assert " LIGHT_TOPK_ALLREDUCE=1 " in said
    assert "horovodrun -np 16 -H gpu1:8,gpu2:8 python3 /mnt/" in said


@pytest.mark.parametrize(
    ("form", "components", "words"),
    [
        ("torchrun", {"openmpi": "4.1.4", "horovod": "0.21"}, "comes with torch"),
        ("horovodrun", {"openmpi": "4.1.4", "torch": "1.11"}, "comes with horovod or lightcc"),
    ],
)
def test_a_program_that_the_image_lacks(form: str, components: dict[str, str], words: str) -> None:
    found = problems(replace(GPU, form=form, components=components))
    assert any(words in text for text in found)


def test_arena_cannot_give_harp_its_rights() -> None:
    components = {**GPU.components, "harp": "1"}
    (text,) = problems(replace(GPU, form="arena", transport="harp", components=components))
    assert "arena gives no pod the rights" in text


def test_the_lines_of_an_image_for_a_user_say_that_user() -> None:
    user = User("mpiuser", 1000)
    assert "--user 1000" in launched(replace(CPU, form="docker", user=user)).text
    assert "--user" not in launched(replace(CPU, form="docker")).text
    assert "--allow-run-as-root" in launched(replace(CPU, form="mpirun", accel="none")).text
    other = launched(replace(CPU, form="mpirun", accel="none", user=user))
    assert "--allow-run-as-root" not in other.text
