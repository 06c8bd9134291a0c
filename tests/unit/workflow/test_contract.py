"""Test `imagegen contract` and `imagegen doctor IMAGE`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from imagegen.workflow import contract, doctor

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.conftest import Ended

HARP = "cu112/ubuntu18.04-1.3-3.1.1"


@pytest.mark.usefixtures("project")
def test_the_contract_of_a_cell_says_all_that_a_launch_gives(run: Callable[..., Ended]) -> None:
    found = json.loads(run("contract", HARP, "--format", "json").out)["contract"]
    assert found["driver"] == ">=450.80.02"
    assert found["hugepages"] == {"size": "1Gi", "per_gpu": 5, "more": 10}
    assert found["privileged"] is True
    assert [one["host"] for one in found["mounts"]] == [
        "/sys/",
        "/dev/hugepages/",
        "/usr/local/tfabric/tools/",
    ]
    assert found["env"] == {"NCCL_ALGO": "RING"}
    assert found["network"] == "host"
    said = run("contract", "cu113/ubuntu20.04-5.4-3.1.0.0").out
    for words in (
        *("driver     >=450.80.02", "devices    /dev/infiniband", "caps       IPC_LOCK"),
        *("memlock    unlimited", "shm        32 GiB", "env        NCCL_IB_DISABLE=0"),
        *("network    host",),
    ):
        assert words in said


@pytest.mark.usefixtures("project")
def test_a_cpu_image_asks_nothing_of_a_driver(run: Callable[..., Ended]) -> None:
    found = json.loads(run("contract", "cpu/debian12-rdma-core", "--format", "json").out)
    assert found["contract"].keys() == {"caps", "devices", "ulimits", "shm_bytes", "network"}


@pytest.mark.usefixtures("project")
def test_an_image_with_a_label_says_its_contract_itself(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled = {"shm_bytes": 1 << 30, "network": "bridge", "ulimits": {"memlock": -1}}
    monkeypatch.setattr(contract, "_labelled", lambda *_: labelled)
    said = run("contract", "somebody/image:1").out
    assert (
        said
        == "somebody/image:1\n  memlock    unlimited\n  shm        1 GiB\n  network    bridge\n"
    )


@pytest.mark.usefixtures("project")
def test_doctor_of_an_image_prints_flags_and_commands(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_runtimes", lambda: None)
    ended = run("doctor", HARP, "--gpus", "4")
    assert "30 needed for 4 GPUs" in ended.err
    assert "hugepages=30" in ended.err
    assert "harp_setup.sh" in ended.err
    for flag in ("--shm-size=32g", "--privileged", "-v /sys:/sys", "--net=host", "--gpus all"):
        assert f"flag  {flag}\n" in ended.out
    ended = run("doctor", "cpu/debian12-none")
    assert ended.out.splitlines() == [
        "flag  --shm-size=32g",
        "flag  --ulimit stack=67108864",
        "flag  --cap-add=SYS_PTRACE",
    ]
