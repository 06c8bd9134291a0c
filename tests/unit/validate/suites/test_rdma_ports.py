"""Test RDMA ports on made-up nodes: RoCE, InfiniBand, a pod without devices, ports without link."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from unit.validate import nodes
from unit.validate.gpu_machines import Machine, write
from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import aside, fabric, limits
from validate.probes.sysfs import Port

if TYPE_CHECKING:
    from pathlib import Path

    from validate.check import CheckResult

LIVE = (
    "rdma.hw", "rdma.uverbs", "rdma.port", "rdma.kabi", "rdma.devinfo", "rdma.netns", "rdma.gid",
    "rdma.mtu", "rdma.gdr", "rdma.numa",
)  # fmt: skip


def verbs_library(count: int, text: str = "") -> str:
    """Return C source of a libibverbs.so.1 that lists `count` devices and warns with `text`."""
    return f"""
#include <stdio.h>
#include <stdlib.h>
const char *abi = "IBVERBS_PRIVATE_34";
void *ibv_get_device_list(int *n) {{ *n = {count};
  if (getenv("IBV_SHOW_WARNINGS") && *"{text}") fprintf(stderr, "libibverbs: {text}\\n");
  return 0; }}
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an image with rdma-core and NCCL 2.9.9, with all limits raised."""
    monkeypatch.setattr(limits, "soft_limit", lambda _: -1)
    one = Machine(tmp_path, monkeypatch)
    one.components["rdma"] = {
        "version": "44.0",
        "variant": "rdma-core",
        "facts": {"pabi": "34", "providers": ["mlx5"], "tools": []},
    }
    stack(one, 8)
    nccl(one, "2.9.9")
    return one


def stack(machine: Machine, count: int, text: str = "") -> None:
    machine.lib("libibverbs.so.1", verbs_library(count, text))
    machine.lib("librdmacm.so.1")
    machine.lib("libibverbs/libmlx5-rdmav34.so", 'const char *abi = "IBVERBS_PRIVATE_34";\n')
    write(machine.root, "/etc/libibverbs.d/mlx5.driver", "driver mlx5\n")


def nccl(machine: Machine, version: str) -> None:
    machine.lib("libnccl.so.2", f'const char *v = "NCCL version {version}+cuda11.3";\n')


def live(machine: Machine) -> dict[str, CheckResult]:
    found = machine.findings("rdma")
    return {name: found[name] for name in LIVE}


def outcomes(found: dict[str, CheckResult], outcome: str) -> list[str]:
    return [name for name, one in found.items() if one.outcome == outcome]


def test_a_roce_node_passes_where_the_index_is_set(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_IB_GID_INDEX", "3")
    nodes.a100_roce(machine.root)
    found = live(machine)
    assert outcomes(found, PASSED) == list(LIVE)
    assert found["rdma.devinfo"].measured == "8 devices"
    assert found["rdma.kabi"].measured == "kernel 6, mlx5 1"
    assert found["rdma.gid"].measured.startswith("RoCE v2 with IPv4: mlx5_0 3, mlx5_1 3, ")
    assert found["rdma.mtu"].measured.startswith("eth0 4200, ")
    assert found["rdma.numa"].measured.startswith("mlx5_0 node 0, ")


def test_an_old_nccl_without_the_index_warns_and_a_new_one_does_not(machine: Machine) -> None:
    nodes.a100_roce(machine.root)
    one = live(machine)["rdma.gid"]
    assert one.outcome == WARNED
    assert one.measured.startswith("NCCL 2.9.9 takes row 0, RoCE v2 is in mlx5_0 3, ")
    assert one.remedy == aside.export({"NCCL_IB_GID_INDEX": "3"})
    nccl(machine, "2.21.5")
    assert live(machine)["rdma.gid"].outcome == PASSED


@pytest.mark.parametrize(("index", "row"), [("0", "IB/RoCE v1"), ("9", "empty")])
@pytest.mark.silent("E18")
def test_a_wrong_index_fails(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, index: str, row: str
) -> None:
    monkeypatch.setenv("NCCL_IB_GID_INDEX", index)
    nodes.a100_roce(machine.root)
    one = live(machine)["rdma.gid"]
    assert (one.outcome, one.measured, one.remedy) == (
        FAILED,
        f"NCCL_IB_GID_INDEX={index}: that row of mlx5_0 is {row}",
        aside.export({"NCCL_IB_GID_INDEX": "3"}),
    )


@pytest.mark.silent("E19")
def test_addresses_of_another_namespace_fail_once(machine: Machine) -> None:
    for hca in nodes.a100_roce(machine.root):
        for index in range(4):
            (machine.root / f"{hca.port}/gid_attrs/types/{index}".lstrip("/")).unlink()
    found = live(machine)
    assert outcomes(found, FAILED) == ["rdma.netns"]
    assert found["rdma.gid"].reason == "blocked-by"
    assert "hostNetwork" in found["rdma.netns"].remedy


def test_infiniband_needs_no_address_table(machine: Machine) -> None:
    nodes.h100_infiniband(machine.root)
    nccl(machine, "2.23.4")
    found = live(machine)
    assert outcomes(found, SKIPPED) == ["rdma.netns", "rdma.gid", "rdma.mtu"]
    assert found["rdma.netns"].reason == "not-applicable"
    assert outcomes(found, FAILED) == outcomes(found, WARNED) == []
    assert found["rdma.gdr"].measured == "/sys/module/nvidia_peermem/version, nvidia_peermem"


@pytest.mark.silent("E16")
def test_a_pod_without_devices_fails_once_with_the_line(machine: Machine) -> None:
    nodes.pod_without_devices(machine.root)
    found = live(machine)
    assert outcomes(found, FAILED) == ["rdma.uverbs"]
    said = "none of the host's RDMA devices (8) is in /dev/infiniband"
    assert found["rdma.uverbs"].measured == said
    assert "--device=/dev/infiniband" in found["rdma.uverbs"].remedy
    assert found["rdma.devinfo"].reason == "blocked-by"


@pytest.mark.parametrize(
    ("wanted", "outcome"), [("mlx5", PASSED), ("=mlx5_0:1", PASSED), ("ibp9s0", FAILED)]
)
def test_a_device_that_is_named_has_to_be_here(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, wanted: str, outcome: str
) -> None:
    nodes.h100_infiniband(machine.root)
    assert machine.findings("rdma")["rdma.hca"].outcome == SKIPPED
    monkeypatch.setenv("NCCL_IB_HCA", wanted)
    one = machine.findings("rdma")["rdma.hca"]
    assert one.outcome == outcome
    if outcome == FAILED:
        assert one.measured.startswith("NCCL_IB_HCA=ibp9s0, but there is mlx5_0, mlx5_1")
        assert one.remedy.startswith("unset NCCL_IB_HCA; ")


def test_a_host_without_a_card_rests(machine: Machine) -> None:
    found = live(machine)
    assert {(one.outcome, one.reason) for one in found.values()} == {(SKIPPED, "no-rdma-hw")}


def test_one_port_down_warns_and_all_down_fail(machine: Machine) -> None:
    nccl(machine, "2.23.4")
    nodes.port_down(machine.root)
    one = live(machine)["rdma.port"]
    assert (one.outcome, one.measured) == (
        WARNED,
        "1 of 8 ports have no link: mlx5_3/1 DOWN Polling 10 Gb/sec (4X SDR) InfiniBand",
    )
    assert one.look == "mlxlink -d mlx5_3 -m"
    nodes.all_ports_down(machine.root)
    found = live(machine)
    assert outcomes(found, FAILED) == ["rdma.port"]
    assert found["rdma.port"].measured.startswith("8 of 8 ports have no link: mlx5_0/1 DOWN ")


@pytest.mark.parametrize(
    ("layer", "state", "physical", "cause", "remedy"),
    [
        ("InfiniBand", "2: INIT", "5: LinkUp", "no subnet manager has set", "sminfo -C mlx5_0 "),
        ("InfiniBand", "1: DOWN", "3: Disabled", "is switched off", "mlxlink -d mlx5_0 --port_"),
        ("Ethernet", "1: DOWN", "3: Disabled", "is switched off", "ip link set $(ls /sys/class/"),
        ("Ethernet", "1: DOWN", "5: LinkUp", "interface is down", "ip link set $(ls /sys/class/"),
        ("Ethernet", "1: DOWN", "2: Polling", "cable, transceiver", "mlxlink -d mlx5_0 -m "),
    ],
)
def test_why_a_port_has_no_link(
    layer: str, state: str, physical: str, cause: str, remedy: str
) -> None:
    port = Port("mlx5_0", "1", state, "10 Gb/sec (4X SDR)", layer, physical)
    found = fabric.why_down(port)
    assert cause in found[0]
    assert f"{found[1]}|{found[1].look}".find(remedy.strip()) >= 0


def test_a_port_that_came_up_slower_than_its_like_warns(machine: Machine) -> None:
    nccl(machine, "2.23.4")
    hcas = nodes.h100_infiniband(machine.root)
    hcas[5].state("4: ACTIVE", "5: LinkUp", "100 Gb/sec (1X NDR)")
    one = live(machine)["rdma.port"]
    assert (one.outcome, one.measured) == (
        WARNED,
        "slower than others of their kind: mlx5_5/1 ACTIVE 100 Gb/sec (1X NDR) InfiniBand",
    )
    write(machine.root, f"{hcas[5].top}/board_id", "MT_0000000001\n")  # a card for storage
    assert live(machine)["rdma.port"].outcome == PASSED


def test_devices_that_were_mounted_and_cannot_be_opened_are_told_apart(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.h100_infiniband(machine.root)
    real = os.open

    def refuse(path: str, *more: int) -> int:
        if "uverbs" in str(path):
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return real(path, *more)

    monkeypatch.setattr(os, "open", refuse)
    one = machine.findings("rdma")["rdma.uverbs"]
    assert one.measured.endswith("uverbs0: operation not permitted")
    assert one.cause == "the node was mounted, but the device is not allowed to the container"


def test_a_card_of_ethernet_without_its_rdma_driver_is_named(machine: Machine) -> None:
    nodes.pci(machine.root, "0000:3b:00.0", "0x15b3", "0x101b", "0x020000")
    one = machine.findings("rdma")["rdma.hw"]
    assert (one.outcome, one.reason) == (SKIPPED, "no-rdma-hw")
    assert "0000:3b:00.0 may carry RoCE once mlx5_ib is loaded" in one.measured


def test_the_launcher_of_a_job_needs_no_device(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K_MPI_JOB_ROLE", "launcher")
    nodes.pod_without_devices(machine.root)
    assert {one.reason for one in live(machine).values()} == {"not-applicable"}


def test_a_device_that_libibverbs_leaves_out_fails_with_its_words(machine: Machine) -> None:
    nodes.h100_infiniband(machine.root)
    stack(machine, 6, "Warning: couldn't load driver mlx5")
    one = live(machine)["rdma.devinfo"]
    assert one.outcome == FAILED
    assert one.measured == (
        "libibverbs lists 6 devices, 8 were passed; libibverbs: Warning: couldn't load driver mlx5"
    )


@pytest.mark.silent("E17")
def test_a_kernel_of_another_age_fails(machine: Machine) -> None:
    nodes.h100_infiniband(machine.root)
    write(machine.root, "/sys/class/infiniband_verbs/abi_version", "7\n")
    found = live(machine)
    assert outcomes(found, FAILED) == ["rdma.kabi"]
    assert found["rdma.kabi"].measured == "the kernel speaks ABI 7, libibverbs 3 to 6"


@pytest.mark.silent("E29")
def test_no_module_for_peer_memory_warns(machine: Machine) -> None:
    nodes.a100_roce(machine.root)
    (machine.root / "sys/kernel/mm/memory_peers/nv_mem/version").unlink()
    one = live(machine)["rdma.gdr"]
    assert (one.outcome, one.measured) == (
        WARNED,
        "nvidia_peermem is loaded, NCCL 2.9.9 does not see it",
    )
    (machine.root / "proc/modules").unlink()
    one = live(machine)["rdma.gdr"]
    assert one.measured == "neither nvidia_peermem nor nv_peer_mem is loaded, and no DMA-BUF"


def test_a_small_mtu_warns(machine: Machine) -> None:
    nodes.a100_roce(machine.root)
    write(machine.root, "/sys/class/net/eth5/mtu", "1500\n")
    one = live(machine)["rdma.mtu"]
    assert (one.outcome, one.measured) == (WARNED, "eth5 1500")
