"""Suites on made-up machines: hardware that is absent rests, hardware that cannot be used fails."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.found import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import limits

if TYPE_CHECKING:
    from pathlib import Path

    from validate.found import Found


def _outcomes(found: dict[str, Found], *ids: str) -> list[tuple[str, str]]:
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


def test_a_component_that_is_left_out_rests_with_the_reason_of_the_recipe(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    found = trees.findings(tmp_path, "horovod", trees.expected(tmp_path))
    assert {(one.reason, one.measured) for one in found.values()} == {
        ("not-in-recipe", "it does not compile here")
    }


@pytest.mark.parametrize(
    ("limit", "card", "outcome"),
    [(-1, True, PASSED), (65536, True, FAILED), (65536, False, WARNED)],
)
@pytest.mark.silent("E20")
def test_little_memory_to_pin_fails_only_where_there_is_a_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, card: bool, outcome: str
) -> None:
    monkeypatch.setattr(limits, "soft_limit", lambda _: limit)
    trees.write(tmp_path, "/proc/self/status", "CapEff:\t0000000000000000\n")
    if card:
        trees.hca(tmp_path)
    found = trees.findings(tmp_path, "limits", trees.expected(tmp_path))
    assert found["lim.memlock"].outcome == outcome


@pytest.mark.parametrize(
    ("size", "device", "outcome"),
    [
        (64 << 20, "gpu", FAILED),
        (64 << 20, "cpu", WARNED),
        (1 << 30, "gpu", WARNED),
        (8 << 30, "gpu", PASSED),
    ],
)
def test_shared_memory_is_judged_by_its_size_and_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, device: str, outcome: str
) -> None:
    monkeypatch.setattr(limits, "shm_bytes", lambda _: size)
    components = {"validate": {"version": "0.1.0"}}
    recipe = trees.expected(tmp_path, device=device, components=components)
    assert trees.findings(tmp_path, "limits", recipe)["lim.shm"].outcome == outcome


def test_a_path_may_be_added_to_but_not_taken_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = trees.expected(tmp_path, env={"PATH": "/opt/mpi/bin:/bin", "LANG": "C.UTF-8"})
    monkeypatch.setenv("LANG", "C.UTF-8")
    base = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"/conda/bin:/opt/mpi/bin:{base}:/bin")
    assert trees.findings(tmp_path, "validate", recipe)["env.contract"].outcome == PASSED
    monkeypatch.setenv("PATH", f"{base}:/bin")
    one = trees.findings(tmp_path, "validate", recipe)["env.contract"]
    assert one.outcome == FAILED
    assert one.remedy == "export PATH='/opt/mpi/bin:/bin'"


def test_an_expectation_file_that_anyone_may_write_fails(tmp_path: Path) -> None:
    recipe = trees.expected(tmp_path)
    assert trees.findings(tmp_path, "validate", recipe)["env.manifest"].outcome == PASSED
    (tmp_path / "image.json").chmod(0o666)
    one = trees.findings(tmp_path, "validate", recipe)["env.manifest"]
    assert one.measured == f"{tmp_path}/image.json can be written by others (0666)"


def test_the_expectations_of_another_tool_fail(tmp_path: Path) -> None:
    recipe = trees.expected(tmp_path, components={"validate": {"version": "0.0.9"}})
    one = trees.findings(tmp_path, "validate", recipe)["env.manifest"]
    assert one.measured == "this is validate 0.1.0, the image was made with 0.0.9"
