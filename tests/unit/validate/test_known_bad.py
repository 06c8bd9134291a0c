"""Test which combinations that are known to fail an image has, from its packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from validate.expected import Expected
from validate.probes.known_bad import Packages, in_range, matching, packages_of, rows

if TYPE_CHECKING:
    from pathlib import Path


def expected(device: str = "cpu", **components: str) -> Expected:
    named: dict[str, Any] = {name: {"version": version} for name, version in components.items()}
    data = {"schema": 1, "device": device, "components": named, "os": {}, "suites": []}
    return Expected(data, "/etc/imagegen/image.json")


def packages(**kinds: dict[str, str]) -> Packages:
    return {"wheel": {}, "deb": {}, "conda": {}, **kinds}


def found(image: Expected, there: Packages, **env: str) -> list[str]:
    return [one.name for one in matching(rows(), image, there, env)]


@pytest.mark.parametrize(
    ("version", "wanted", "holds"),
    [
        ("2.17.1", "2.17", True),
        ("2.170", "2.17", False),
        ("2.4.5", ">=2.4,<2.4.6", True),
        ("2.4.6", ">=2.4,<2.4.6", False),
        ("2.4", ">=2.4.0", True),
        ("1.18.0", "1.18.*", True),
        ("2.0.0", ">=2", True),
        ("1.26.4", ">=2", False),
        ("2.3.0+cu121", "<2.3", False),
        ("anything", "any", True),
        ("unknown", ">=1", False),
        ("3.1.3", "!=3.1.*", False),
    ],
)
def test_a_version_is_in_a_range(version: str, wanted: str, holds: bool) -> None:
    assert in_range(version, wanted) is holds


def test_wheels_that_came_by_hand(tmp_path: Path) -> None:
    site = tmp_path / "opt/conda/lib/python3.10/site-packages"
    for name in ("nvidia_nccl_cu12-2.28.9", "nvidia_nccl_cu13-2.30.7", "numpy-2.0.1"):
        (site / f"{name}.dist-info").mkdir(parents=True)
    (tmp_path / "opt/conda/conda-meta").mkdir()
    (tmp_path / "opt/conda/conda-meta/mkl-2024.1.0-h123_4.json").write_text("{}")
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(
        "Package: libnccl-ofi\nStatus: install ok installed\nVersion: 1.18.0-1\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n"
    )
    there = packages_of(str(tmp_path), [str(site)])
    assert there == {
        "wheel": {"nvidia-nccl-cu12": "2.28.9", "nvidia-nccl-cu13": "2.30.7", "numpy": "2.0.1"},
        "conda": {"mkl": "2024.1.0"},
        "deb": {"libnccl-ofi": "1.18.0"},
    }
    names = found(expected(), there)
    assert {"two-nccl-wheels", "aws-ofi-nccl-1.18-broadcast"} == set(names)
    [two] = [one for one in matching(rows(), expected(), there, {}) if one.name == names[-1]]
    assert two.there == ("wheel nvidia-nccl-cu12 2.28.9", "wheel nvidia-nccl-cu13 2.30.7")


def test_one_wheel_is_not_several() -> None:
    assert found(expected(), packages(wheel={"nvidia-nccl-cu12": "2.28.9"})) == []


def test_a_promised_component_with_a_wheel() -> None:
    numpy = packages(wheel={"numpy": "2.1.0"})
    assert found(expected(torch="2.2.2+cu121"), numpy) == ["torch-numpy-2"]
    assert found(expected(torch="2.3.0"), numpy) == []
    assert found(expected(torch="2.2.2"), packages()) == []


def test_a_wheel_shows_a_component_that_is_promised_in_another_version() -> None:
    wheels = packages(wheel={"torch": "2.2.1", "numpy": "2.1.0"})
    assert found(expected(torch="2.6.0"), wheels) == ["torch-numpy-2"]


def test_a_gpu_is_no_fact_of_an_image() -> None:
    """An image for GPUs may run on such a machine, an image for CPUs does not compute there."""
    nccl = packages(deb={"libnccl2": "2.17.1"})
    assert found(expected("gpu"), nccl) == ["nccl-2.17-nvls"]
    assert found(expected("cpu"), nccl) == []


def test_a_variable_makes_it_good() -> None:
    nccl = packages(deb={"libnccl2": "2.17.1"})
    assert found(expected("gpu"), nccl, NCCL_NVLS_ENABLE="0") == []
    assert found(expected("gpu"), nccl, NCCL_NVLS_ENABLE="1") == ["nccl-2.17-nvls"]
