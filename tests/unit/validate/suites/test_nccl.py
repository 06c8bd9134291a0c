"""Test NCCL on made-up machines: its version, its copies, and its settings in files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate.gpu_machines import LIB_DIR, Machine, compiled, version_function, write
from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import aside, nccl, sysfs

if TYPE_CHECKING:
    from pathlib import Path


def source(number: int, version: str, accepts: tuple[int, ...] = (4,)) -> str:
    """Return C source of an NCCL with its version function and the marks in its bytes."""
    symbols = " ".join(f"ncclNetPlugin_v{one}" for one in accepts)
    marks = f'const char marks[] = "NCCL version {version}\\0{symbols}";\n'
    return version_function("ncclGetVersion", number) + marks


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an image with NCCL 2.9.9 for CUDA 11.3."""
    one = Machine(tmp_path, monkeypatch)
    one.promise("cuda", "11.3.109", flavour="devel")
    one.promise("nccl", "2.9.9", cuda="11.3")
    one.lib("libnccl.so.2", source(20909, "2.9.9+cuda11.3"))
    monkeypatch.setenv("HOME", "/root")
    return one


def header(machine: Machine, major: int, minor: int, patch: int) -> None:
    text = f"#define NCCL_MAJOR {major}\n#define NCCL_MINOR {minor}\n#define NCCL_PATCH {patch}\n"
    write(machine.root, "/usr/include/nccl.h", text)


@pytest.mark.parametrize(
    ("number", "version"),
    [(2307, "2.3.7"), (2804, "2.8.4"), (20909, "2.9.9"), (21403, "2.14.3"), (22203, "2.22.3")],
)
def test_numbers_changed_their_shape_with_release_2_9(number: int, version: str) -> None:
    assert nccl.nccl_version(number) == version


def test_the_nccl_of_the_recipe_passes_by_its_own_word(machine: Machine) -> None:
    found = machine.findings("nccl", static=True)
    ids = ("nccl.version", "nccl.cuda-tag", "nccl.copies", "nccl.conf")
    assert [found[name].outcome for name in ids] == [PASSED] * 4
    assert found["nccl.version"].measured.startswith("2.9.9 from ")
    assert (found["nccl.header"].outcome, found["nccl.header"].reason) == (SKIPPED, "not-installed")


def test_another_nccl_fails_and_one_that_is_not_there_too(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.promise("nccl", "2.8.4")
    one = machine.findings("nccl", static=True)["nccl.version"]
    assert one.outcome == FAILED
    assert one.measured.endswith("the recipe says 2.8.4")
    assert one.remedy == "imagegen build   # brings libnccl.so.2 of release 2.8.4"
    compiled(machine.root, "stale/libnccl.so.2", source(20708, "2.7.8+cuda11.0"))
    monkeypatch.setenv("LD_LIBRARY_PATH", "/stale")
    one = machine.findings("nccl", static=True)["nccl.version"]
    assert one.cause == "LD_LIBRARY_PATH names /stale"
    monkeypatch.delenv("LD_LIBRARY_PATH")
    (machine.root / LIB_DIR.lstrip("/") / "libnccl.so.2").unlink()
    one = machine.findings("nccl", static=True)["nccl.version"]
    assert one.measured == "libnccl.so.2 is nowhere on the loader's path, nor in a wheel"


def test_an_old_nccl_that_cannot_be_asked_is_read(machine: Machine) -> None:
    machine.promise("nccl", "2.3.7", cuda="9.0")
    machine.lib("libnccl.so.2", 'const char marks[] = "NCCL version 2.3.7+cuda9.0";')
    found = machine.findings("nccl", static=True)
    assert (found["nccl.version"].outcome, found["nccl.cuda-tag"].outcome) == (PASSED, PASSED)


def test_an_nccl_for_another_cuda_warns(machine: Machine) -> None:
    machine.promise("nccl", "2.9.9", cuda="11.0")
    one = machine.findings("nccl", static=True)["nccl.cuda-tag"]
    assert (one.outcome, one.measured) == (WARNED, "built for CUDA 11.3, the recipe says 11.0")
    machine.promise("nccl", "2.9.9")
    machine.promise("cuda", "12.4.131")
    one = machine.findings("nccl", static=True)["nccl.cuda-tag"]
    assert (one.outcome, one.measured) == (WARNED, "built for CUDA 11.3, the recipe has 12.4.131")


def test_the_header_must_be_of_the_library_and_the_link_be_there(machine: Machine) -> None:
    header(machine, 2, 8, 4)
    one = machine.findings("nccl", static=True)["nccl.header"]
    assert one.measured.endswith("nccl.h says 2.8.4, the library 2.9.9")
    header(machine, 2, 9, 9)
    one = machine.findings("nccl", static=True)["nccl.header"]
    assert one.measured == "the header is there, the link libnccl.so is not"
    (machine.root / LIB_DIR.lstrip("/") / "libnccl.so").symlink_to("libnccl.so.2")
    assert machine.findings("nccl", static=True)["nccl.header"].outcome == PASSED


def test_every_copy_counts_also_one_inside_pytorch(machine: Machine) -> None:
    compiled(machine.site, "torch/lib/libtorch_cuda.so", source(0, "2.10.3+cuda11.3"))
    compiled(machine.site, "nvidia/nccl/lib/libnccl.so.2", source(21403, "2.14.3+cuda11.7"))
    one = machine.findings("nccl", static=True)["nccl.copies"]
    assert one.outcome == WARNED
    assert [text.partition(" in ")[0] for text in one.measured.split("; ")] == [
        "2.9.9+cuda11.3",
        "2.14.3+cuda11.7",
        "2.10.3+cuda11.3",
    ]


def test_two_that_the_recipe_names_are_no_surprise(machine: Machine) -> None:
    compiled(machine.site, "nvidia/nccl/lib/libnccl.so.2", source(21403, "2.14.3+cuda11.7"))
    assert machine.findings("nccl", static=True)["nccl.copies"].outcome == WARNED
    machine.promise("torch", "2.0.1+cu117", nccl="2.14.3")
    assert machine.findings("nccl", static=True)["nccl.copies"].outcome == PASSED


def test_a_wheel_that_only_pytorch_would_find_fails_with_the_line_that_shows_it(
    machine: Machine,
) -> None:
    (machine.root / LIB_DIR.lstrip("/") / "libnccl.so.2").unlink()
    path = compiled(machine.site, "nvidia/nccl/lib/libnccl.so.2", source(20909, "2.9.9+cuda11.3"))
    assert machine.findings("nccl", static=True)["nccl.version"].outcome == PASSED
    machine.components["nccl"]["variant"] = "pypi"
    one = machine.findings("nccl", static=True)["nccl.version"]
    assert (one.outcome, one.measured) == (FAILED, f"{path} is not on the loader's path")
    assert one.remedy == f"echo {path.parent} > /etc/ld.so.conf.d/imagegen-nccl.conf; ldconfig"


def test_the_abis_that_a_copy_accepts_are_in_its_bytes(tmp_path: Path) -> None:
    path = compiled(tmp_path, "libnccl.so.2", source(22105, "2.21.5+cuda12.4", (5, 6, 7, 8)))
    assert nccl.copy(str(path)) == nccl.Copy(str(path), "2.21.5", "12.4", (5, 6, 7, 8))


def test_settings_left_in_a_file_warn_with_the_line_that_removes_them(machine: Machine) -> None:
    write(machine.root, "/etc/nccl.conf", "# mine\nNCCL_P2P_DISABLE=1\nNCCL_DEBUG=WARN\n")
    one = machine.findings("nccl", static=True)["nccl.conf"]
    assert (one.outcome, one.measured) == (WARNED, "NCCL_P2P_DISABLE=1 in /etc/nccl.conf")
    assert one.remedy == "sed -i 's|^ *NCCL_P2P_DISABLE *=|# &|' /etc/nccl.conf"


def test_the_home_wins_over_etc_and_the_environment_over_both(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(machine.root, "/etc/nccl.conf", "NCCL_SHM_DISABLE=1\n")
    write(machine.root, "/root/.nccl.conf", "NCCL_SHM_DISABLE=0\n")
    assert machine.findings("nccl", static=True)["nccl.conf"].outcome == PASSED
    monkeypatch.setenv("NCCL_SHM_DISABLE", "1")
    one = machine.findings("nccl", static=True)["nccl.conf"]
    line = "unset NCCL_SHM_DISABLE; sed -i 's|^ *NCCL_SHM_DISABLE *=|# &|' /etc/environment   # "
    assert one.outcome == WARNED
    assert one.remedy.startswith(line)


def test_every_setting_is_in_the_line_to_paste(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(machine.root, "/etc/nccl.conf", "NCCL_P2P_DISABLE=1\n")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    one = machine.findings("nccl", static=True)["nccl.conf"]
    assert one.measured.endswith("NCCL_SOCKET_IFNAME=lo in the environment")
    first = "sed -i 's|^ *NCCL_P2P_DISABLE *=|# &|' /etc/nccl.conf; unset NCCL_SOCKET"
    assert one.remedy.startswith(first)
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "^lo,docker0")
    measured = machine.findings("nccl", static=True)["nccl.conf"].measured
    assert measured == "NCCL_P2P_DISABLE=1 in /etc/nccl.conf"


@pytest.mark.parametrize(
    ("device", "promised", "outcome"),
    [(True, False, WARNED), (False, True, WARNED), (False, False, PASSED)],
)
def test_infiniband_may_be_off_where_there_is_none_and_none_was_meant(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    device: bool,
    promised: bool,
    outcome: str,
) -> None:
    monkeypatch.setenv("NCCL_IB_DISABLE", "1")
    if promised:
        machine.promise("rdma", "56.1")
    if device:
        write(machine.root, "/sys/class/infiniband/mlx5_0/fw_ver", "1")
    assert machine.findings("nccl", static=True)["nccl.conf"].outcome == outcome


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("eth", ["eth0", "eth1"]),
        ("=eth0", ["eth0"]),
        ("^eth1,lo", ["eth0", "bond0"]),
        ("^=eth", ["eth0", "eth1", "bond0", "lo"]),
        ("bond0,ib", ["bond0"]),
        ("ens", []),
    ],
)
def test_interfaces_are_chosen_as_nccl_does(wanted: str, chosen: list[str]) -> None:
    assert nccl.chosen_interfaces(wanted, ["eth0", "eth1", "bond0", "lo"]) == chosen


@pytest.mark.parametrize(
    ("name", "value", "outcome"),
    [
        ("NCCL_SOCKET_IFNAME", "bond0", FAILED),
        ("NCCL_SOCKET_IFNAME", "eth", PASSED),
        ("OMPI_MCA_btl_tcp_if_include", "eth", FAILED),
        ("OMPI_MCA_btl_tcp_if_include", "eth0", PASSED),
        ("OMPI_MCA_oob_tcp_if_include", "10.0.0.0/8", PASSED),
    ],
)
def test_an_interface_that_is_named_must_be_there(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, name: str, value: str, outcome: str
) -> None:
    write(machine.root, "/sys/class/net/eth0/operstate", "up\n")
    monkeypatch.setenv(name, value)
    one = machine.findings("nccl")["nccl.ifname"]
    assert one.outcome == outcome
    assert one.remedy == ("" if outcome == PASSED else aside.export({name: "eth0"}))


ROUTES = "Iface\tDestination\tGateway\n{}\t000012AC\t00000000\n"
ADDRESS = "{:032x} 02 40 {} 80 {}\n"


@pytest.mark.parametrize(
    ("name", "six", "outcome"),
    [
        ("eth0", "", PASSED),
        ("eth", "", PASSED),
        ("eth1", "", FAILED),
        ("eth1", ADDRESS.format(1, "20", "eth1"), FAILED),
        ("eth1", ADDRESS.format(1, "00", "eth1"), PASSED),
    ],
)
@pytest.mark.parametrize("setting", ["NCCL_SOCKET_IFNAME", "OMPI_MCA_btl_tcp_if_include"])
def test_an_interface_that_is_named_must_have_an_address(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    name: str,
    six: str,
    outcome: str,
) -> None:
    for one in ("eth0", "eth1"):
        write(machine.root, f"/sys/class/net/{one}/operstate", "up\n")
    write(machine.root, "/proc/net/route", ROUTES.format("eth0"))
    write(machine.root, "/proc/net/if_inet6", six)
    name = "eth0" if (name, setting[:4]) == ("eth", "OMPI") else name
    monkeypatch.setenv(setting, name)
    found = machine.findings("nccl")["nccl.ifname"]
    assert found.outcome == outcome
    if outcome == FAILED:
        assert found.measured == f"{setting}=eth1: up, but without an IP address: eth1"
        assert found.remedy == aside.export({setting: "eth0"})


def test_the_kernel_says_whether_an_interface_has_an_address() -> None:
    assert sysfs.has_ipv4("lo")
    assert not sysfs.has_ipv4("none0")
    assert sysfs.with_address("/", ["lo", "none0"]) == ["lo"]


def test_without_a_named_interface_the_check_rests(machine: Machine) -> None:
    one = machine.findings("nccl")["nccl.ifname"]
    assert (one.outcome, one.reason) == (SKIPPED, "not-applicable")
