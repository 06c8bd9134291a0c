"""Test which settings are a finding, and which the recipe, a launch or a check accounts for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.check import CheckWarned
from validate.fixtures import Measure, Situation
from validate.suites import test_validate_settings

if TYPE_CHECKING:
    from pathlib import Path

NCCL = {"nccl": {"version": "2.21.5"}, "validate": {"version": "0.1.0"}}


def _look(root: Path, components: object = None, **env: str) -> str:
    changes = {"components": components} if components else {}
    recipe = trees.expected(root, env={"UCX_TLS": "tcp"}, **changes)
    image, measure = Situation(recipe, {"HOME": "/root", **env}, str(root), {}), Measure()
    test_validate_settings.test_settings(image, measure)
    return measure.text


def test_what_the_recipe_and_the_launch_set_is_no_finding(tmp_path: Path) -> None:
    assert _look(tmp_path, UCX_TLS="tcp") == "none besides the recipe's"
    said = _look(tmp_path, NCCL_SOCKET_IFNAME="eth0", NCCL_DEBUG="INFO")
    assert said == "NCCL_DEBUG=INFO in the environment; NCCL_SOCKET_IFNAME=eth0 in the environment"


def test_a_setting_is_named_with_value_place_effect_and_remedy(tmp_path: Path) -> None:
    trees.write(tmp_path, "/etc/nccl.conf", "NCCL_ALGO=Tree\n")
    with pytest.raises(CheckWarned) as warned:
        _look(tmp_path, UCX_TLS="rc_x", NCCL_DEBUG="INFO")
    assert warned.value.measured == (
        "UCX_TLS=rc_x in the environment (UCX uses these transports alone); "
        "NCCL_ALGO=Tree in /etc/nccl.conf (NCCL does not choose by itself any more)"
    )
    assert warned.value.remedy.startswith("unset UCX_TLS; sed -i ")
    assert " /etc/environment   # at launch: env -u UCX_TLS " in warned.value.remedy


@pytest.mark.parametrize("name", ["NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_NET"])
def test_what_a_check_of_nccl_judges_is_named_by_that_one_alone(tmp_path: Path, name: str) -> None:
    rdma = {**NCCL, "rdma": trees.RECIPE["components"]["rdma"]}
    assert _look(tmp_path, rdma, **{name: "1"}) == "none besides the recipe's"
    with pytest.raises(CheckWarned, match=f"^{name}=1 in the environment"):
        _look(tmp_path, **{name: "1"})
