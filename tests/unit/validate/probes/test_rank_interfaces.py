"""Test which interfaces the settings of gloo and NCCL choose, in every way of writing them."""

from __future__ import annotations

import pytest

from validate.probes import process_group
from validate.probes.rank_interfaces import GLOO, NCCL, Named

THERE = ["bond0", "docker0", "eth0", "eth01", "lo"]


@pytest.mark.parametrize(
    ("name", "value", "chosen", "absent"),
    [
        (GLOO, "eth0", ["eth0"], []),
        (GLOO, "eth", [], ["eth"]),
        (GLOO, "eth0,bond0", ["bond0", "eth0"], []),
        (GLOO, "eth0,ib0", ["eth0"], ["ib0"]),
        (NCCL, "eth", ["eth0", "eth01"], []),
        (NCCL, "eth0", ["eth0", "eth01"], []),
        (NCCL, "=eth0", ["eth0"], []),
        (NCCL, "=eth", [], ["eth"]),
        (NCCL, "=eth0,bond0", ["bond0", "eth0"], []),
        (NCCL, "ib,bond", ["bond0"], []),
        (NCCL, "ib,mlx", [], ["ib", "mlx"]),
        (NCCL, "^docker,lo", ["bond0", "eth0", "eth01"], []),
        (NCCL, "^=eth0,lo", ["bond0", "docker0", "eth01"], []),
        (NCCL, "^docker,lo,eth,bond", [], ["docker", "lo", "eth", "bond"]),
        (NCCL, "eth0:1", ["eth0", "eth01"], []),
    ],
)
def test_what_a_setting_chooses(
    name: str, value: str, chosen: list[str], absent: list[str]
) -> None:
    one = Named(name, value, "the environment")
    assert one.choose(THERE) == chosen
    assert one.absent(THERE) == absent


@pytest.mark.parametrize(
    ("endpoint", "host"),
    [
        ("worker-0", "worker-0"),
        ("worker-0:29400", "worker-0"),
        ("10.0.0.1:29400", "10.0.0.1"),
        ("[fd00::1]:29400", "fd00::1"),
        ("fd00::1", "fd00::1"),
        ("", ""),
    ],
)
def test_the_host_of_an_endpoint(endpoint: str, host: str) -> None:
    assert process_group._host(endpoint) == host


def test_a_host_of_the_rendezvous_that_leads_to_no_address() -> None:
    good = {"MASTER_ADDR": "127.0.0.1", "PET_RDZV_ENDPOINT": "localhost:29400"}
    assert process_group.unresolved(good) == []
    bad = {"PET_RDZV_ENDPOINT": "worker-0.job.invalid:29400"}
    assert process_group.unresolved(bad) == [("PET_RDZV_ENDPOINT", "worker-0.job.invalid")]
