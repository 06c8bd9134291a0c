"""Test devices and interfaces in /sys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unit.validate import trees
from validate.probes import sysfs

if TYPE_CHECKING:
    from pathlib import Path


def test_ports_and_verbs_are_read_from_sys(tmp_path: Path) -> None:
    trees.hca(tmp_path, state="1: DOWN")
    (port,) = sysfs.ports(str(tmp_path))
    assert (port.device, port.link_layer, port.active) == ("mlx5_0", "InfiniBand", False)
    (one,) = sysfs.verbs(str(tmp_path))
    assert (one.device, one.node, one.present) == ("mlx5_0", "/dev/infiniband/uverbs0", False)
    trees.device_nodes(tmp_path)
    assert sysfs.verbs(str(tmp_path))[0].present


def test_pci_functions_are_told_apart_by_vendor_and_class(tmp_path: Path) -> None:
    trees.pci_card(tmp_path, "0x15b3", "0x020000")
    trees.pci_card(tmp_path, "0x15b3", "0x020700", "0000:5e:00.0")
    found = sysfs.pci_functions(str(tmp_path), sysfs.MELLANOX, [sysfs.INFINIBAND_CLASS])
    assert found == ["0000:5e:00.0"]


def test_interfaces_that_are_down_do_not_count(tmp_path: Path) -> None:
    for name, state in (("lo", "unknown"), ("eth0", "up"), ("eth1", "down"), ("tun0", "unknown")):
        trees.write(tmp_path, f"/sys/class/net/{name}/operstate", state)
    assert sysfs.interfaces_up(str(tmp_path)) == ["eth0", "tun0"]


def test_no_sys_at_all_is_no_device(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert sysfs.rdma_devices(root) == []
    assert sysfs.ports(root) == []
    assert sysfs.verbs(root) == []
