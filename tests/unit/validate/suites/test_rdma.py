"""Test RDMA on made-up machines: absent hardware is skipped, unusable hardware fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unit.validate import trees
from validate.check import FAILED, PASSED, SKIPPED, WARNED

if TYPE_CHECKING:
    from pathlib import Path

    from validate.check import CheckResult


def _outcomes(found: dict[str, CheckResult], *ids: str) -> list[tuple[str, str]]:
    return [(found[name].outcome, found[name].reason) for name in ids]


def test_a_whole_verbs_stack_without_a_card_rests_for_want_of_hardware(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    found = trees.findings(tmp_path, "rdma", trees.expected(tmp_path))
    static = _outcomes(found, "rdma.libs", "rdma.provider", "rdma.pabi", "rdma.tools")
    assert static == [(PASSED, "")] * 4
    live = _outcomes(found, "rdma.hw", "rdma.uverbs", "rdma.port")
    assert live == [(SKIPPED, "no-rdma-hw")] * 3


def test_an_infiniband_card_without_its_driver_fails(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    trees.pci_card(tmp_path, "0x15b3", "0x020700")
    found = trees.findings(tmp_path, "rdma", trees.expected(tmp_path))
    assert found["rdma.hw"].outcome == FAILED
    assert "0000:3b:00.0" in found["rdma.hw"].measured
    assert _outcomes(found, "rdma.uverbs") == [(SKIPPED, "blocked-by")]


def test_an_ethernet_card_of_the_same_maker_is_no_rdma_device(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    trees.pci_card(tmp_path, "0x15b3", "0x020000")
    found = trees.findings(tmp_path, "rdma", trees.expected(tmp_path))
    assert _outcomes(found, "rdma.hw") == [(SKIPPED, "no-rdma-hw")]


def test_a_device_that_was_not_passed_fails_with_the_line_that_passes_it(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    trees.hca(tmp_path)
    found = trees.findings(tmp_path, "rdma", trees.expected(tmp_path))
    one = found["rdma.uverbs"]
    assert (one.outcome, one.measured) == (
        FAILED,
        "none of the host's RDMA devices (1) is in /dev/infiniband",
    )
    assert "--device=/dev/infiniband" in one.remedy


def test_a_device_that_was_passed_and_has_a_link_passes(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    trees.hca(tmp_path)
    trees.device_nodes(tmp_path)
    found = trees.findings(tmp_path, "rdma", trees.expected(tmp_path))
    assert _outcomes(found, "rdma.hw", "rdma.uverbs", "rdma.port") == [(PASSED, "")] * 3


def test_no_port_with_a_link_fails_and_one_of_two_warns(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    trees.device_nodes(tmp_path, 2)
    trees.hca(tmp_path, state="1: DOWN")
    recipe = trees.expected(tmp_path)
    assert trees.findings(tmp_path, "rdma", recipe)["rdma.port"].outcome == FAILED
    trees.hca(tmp_path, "mlx5_1", number=1)
    one = trees.findings(tmp_path, "rdma", recipe)["rdma.port"]
    assert (one.outcome, one.measured[:46]) == (
        WARNED,
        "1 of 2 ports have no link: mlx5_0/1 DOWN 100 G",
    )


def test_a_missing_provider_blocks_the_check_of_its_abi(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    (tmp_path / trees.LIB_DIR.lstrip("/") / "libibverbs/libmlx5-rdmav34.so").unlink()
    found = trees.findings(tmp_path, "rdma", trees.expected(tmp_path), static=True)
    assert [one.check.id for one in found.values() if one.outcome == FAILED] == ["rdma.provider"]
    assert (found["rdma.pabi"].reason, found["rdma.pabi"].measured) == (
        "blocked-by",
        "rdma.provider",
    )


def test_a_provider_of_another_build_fails(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path, provider_abi="25")
    found = trees.findings(tmp_path, "rdma", trees.expected(tmp_path), static=True)
    assert [one.check.id for one in found.values() if one.outcome == FAILED] == ["rdma.pabi"]
    assert found["rdma.pabi"].measured == "libibverbs offers 34, others: mlx5 (rdmav25)"


def test_another_release_of_rdma_core_fails_by_its_own_name(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    rdma = {**trees.RECIPE["components"]["rdma"], "version": "50.0"}
    recipe = trees.expected(tmp_path, components={"rdma": rdma})
    found = trees.findings(tmp_path, "rdma", recipe, static=True)
    assert found["rdma.libs"].measured.startswith("rdma-core 44.0 at /")
