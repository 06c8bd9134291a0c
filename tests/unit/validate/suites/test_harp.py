"""Test HARP on made-up machines: the plugin with every NCCL, and what the host has to bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate.gpu_machines import (
    LIB_DIR,
    Machine,
    compiled,
    gpu_on_bus,
    version_function,
    write,
)
from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import harp_host, net_plugin

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN = f"{LIB_DIR}/libnccl-net.so"
STATIC = ("plugin.present", "plugin.abi", "plugin.deps", "plugin.load", "plugin.one")
LIVE = ("config", "inactive-installed", "hugepages-host", "hugepages-mount", "hugepages-cgroup")


NETWORK = "HARP"


def plugin(*abis: int) -> str:
    """Return C source of a plugin that exports some ABIs."""
    return "".join(f"int ncclNetPlugin_v{abi} = 1;\n" for abi in abis)


def nccl(version: str, number: int, accepts: tuple[int, ...]) -> str:
    """Return an NCCL that opens its plugin as the real one does, and logs the same."""
    symbols = " ".join(f"ncclNetPlugin_v{one}" for one in accepts)
    lookups = " ".join(f'if (dlsym(h, "ncclNetPlugin_v{one}")) return 0;' for one in accepts)
    return f"""
        #include <dlfcn.h>
        #include <stdio.h>
        const char marks[] = "NCCL version {version}+cuda11.3\\0{symbols}";
        int ncclGetUniqueId(void *id) {{
            void *h = dlopen("libnccl-net.so", RTLD_NOW | RTLD_LOCAL);
            if (!h)
                return printf("NCCL INFO NET/Plugin : No plugin found (libnccl-net.so)\\n") < 0;
            {lookups}
            printf("NCCL INFO NET/Plugin: Failed to find ncclNetPlugin symbol (v4 or v5).\\n");
            dlclose(h);
            return 0;
        }}
        typedef struct {{ char bytes[128]; }} Id;
        int ncclCommInitRank(void **comm, int ranks, Id id, int rank) {{
            return printf("NCCL INFO Using network {NETWORK}\\n") < 0;
        }}
        const char *ncclGetErrorString(int code) {{ return "no error"; }}
        int ncclCommDestroy(void *comm) {{ return 0; }}
        """ + version_function("ncclGetVersion", number)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an image with HARP 1.3, which exports v4, and NCCL 2.9.9, which accepts v4."""
    one = Machine(tmp_path, monkeypatch)
    one.promise("harp", "1.3", path=PLUGIN, plugin_abi="4")
    one.promise("nccl", "2.9.9", cuda="11.3")
    one.lib("libnccl-net.so", plugin(4), "-nostdlib")
    one.lib("libnccl.so.2", nccl("2.9.9", 20909, (4,)), "-ldl")
    return one


def prepared(root: Path, pages: int = 15) -> None:
    """Set HARP up on a host with one GPU, and pass all of it to the container."""
    gpu_on_bus(root)
    write(root, "/usr/local/tfabric/tools/config/ztcp1.conf", "x")
    top = "/sys/kernel/mm/hugepages/hugepages-1048576kB"
    write(root, f"{top}/nr_hugepages", str(pages))
    write(root, f"{top}/free_hugepages", str(pages))
    write(root, "/proc/meminfo", "HugePages_Total: 15\nHugepagesize:    1048576 kB\n")
    write(root, "/proc/mounts", "none /dev/hugepages hugetlbfs rw,relatime,pagesize=1024M 0 0\n")
    (root / "dev/hugepages").mkdir(parents=True)
    write(root, "/proc/self/status", "CapEff:\t000001ffffffffff\n")
    for number in range(2):
        address = f"/sys/bus/pci/devices/0000:00:0{number}.0"
        write(root, f"{address}/vendor", "0x1af4\n")
        write(root, f"{address}/class", "0x020000\n")


def test_a_plugin_that_nccl_accepts_is_opened_and_kept(machine: Machine) -> None:
    found = machine.findings("harp", "plugin", static=True)
    assert [found[name].outcome for name in ("harp.lib", *STATIC)] == [PASSED] * 6
    assert found["plugin.load"].measured == f"NCCL 2.9.9 keeps {machine.root}{PLUGIN}"
    assert found["plugin.abi"].measured == "exports v4; NCCL 2.9.9 accepts v4"


def test_a_newer_nccl_ignores_the_plugin_and_the_check_says_which_would_not(
    machine: Machine,
) -> None:
    machine.lib("libnccl.so.2", nccl("2.20.5", 22005, (5, 6, 7, 8)), "-ldl")
    found = machine.findings("harp", "plugin", static=True)
    one = found["plugin.abi"]
    assert one.outcome == FAILED
    assert one.measured.startswith("the plugin exports v4; NCCL 2.20.5 in ")
    assert one.measured.endswith(" accepts v5-v8")
    assert "nccl='>=2.8.3,<=2.18.6'" in one.remedy
    assert found["plugin.load"].reason == "blocked-by"


def test_every_copy_of_nccl_must_accept_it(machine: Machine) -> None:
    source = nccl("2.20.5", 22005, (5, 6, 7, 8))
    compiled(machine.site, "nvidia/nccl/lib/libnccl.so.2", source, "-ldl")
    one = machine.findings("harp", "plugin", static=True)["plugin.abi"]
    assert one.outcome == FAILED
    assert "NCCL 2.20.5 in " in one.measured
    assert "NCCL 2.9.9 in " not in one.measured


def test_another_plugin_than_promised_fails(machine: Machine) -> None:
    machine.lib("libnccl-net.so", plugin(6), "-nostdlib")
    one = machine.findings("harp", "plugin", static=True)["plugin.abi"]
    assert one.measured == "exports v6; NCCL 2.9.9 accepts v4; the recipe says v4"


def test_an_image_without_nccl_does_not_pass_in_silence(machine: Machine) -> None:
    (machine.root / LIB_DIR.lstrip("/") / "libnccl.so.2").unlink()
    found = machine.findings("harp", "plugin", static=True)
    outcomes = [found[name].outcome for name in ("plugin.present", "plugin.abi")]
    assert outcomes == [FAILED, FAILED]


def test_a_renamed_plugin_is_found_under_its_other_name(machine: Machine) -> None:
    path = machine.root / PLUGIN.lstrip("/")
    other = path.with_name("libncc-net.so")
    path.rename(other)
    found = machine.findings("harp", "plugin", static=True)
    assert (found["harp.lib"].outcome, found["plugin.abi"].reason) == (FAILED, "blocked-by")
    one = machine.findings("nccl", static=True)["plugin.nearmiss"]
    assert (one.outcome, one.remedy) == (WARNED, f"mv {other} {path}; ldconfig")


def test_a_renamed_plugin_comes_back_by_the_remedy(machine: Machine) -> None:
    path = machine.root / PLUGIN.lstrip("/")
    path.rename(path.with_name("bak.libnccl-net.so"))
    one = machine.findings("harp", "plugin", static=True)["harp.lib"]
    assert one.remedy == f"mv {path.with_name('bak.libnccl-net.so')} {path}; ldconfig"


def test_a_plugin_beside_the_loaders_path_is_not_opened(machine: Machine) -> None:
    machine.promise("harp", "1.3", path="/opt/harp/libnccl-net.so")
    path = machine.root / PLUGIN.lstrip("/")
    (machine.root / "opt/harp").mkdir(parents=True)
    path.rename(machine.root / "opt/harp/libnccl-net.so")
    one = machine.findings("harp", "plugin", static=True)["plugin.present"]
    assert one.measured == "NCCL 2.9.9 looks for libnccl-net.so: not found"
    assert "ldconfig" in one.remedy


def test_a_rival_that_comes_first_fails_and_one_that_comes_later_warns(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(machine.root, "/opt/hpcx/lib/libnccl-net.so", plugin(4))
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/hpcx/lib")
    found = machine.findings("harp", "plugin", static=True)
    assert found["plugin.present"].outcome == FAILED
    assert "/opt/hpcx/lib/libnccl-net.so, HARP is " in found["plugin.present"].measured
    monkeypatch.delenv("LD_LIBRARY_PATH")
    write(machine.root, "/etc/ld.so.conf", f"{LIB_DIR}\n/opt/hpcx/lib\n")
    found = machine.findings("harp", "plugin", static=True)
    assert (found["plugin.present"].outcome, found["plugin.one"].outcome) == (PASSED, WARNED)


def test_a_library_that_the_plugin_needs_in_vain_is_named(machine: Machine) -> None:
    gone = machine.lib("libgone.so.1", "int gone;", "-nostdlib", "-Wl,-soname,libgone.so.1")
    machine.lib("libnccl-net.so", plugin(4), "-nostdlib", "-Wl,--no-as-needed", str(gone))
    gone.unlink()
    found = machine.findings("harp", "plugin", static=True)
    assert found["plugin.deps"].measured == "it needs libgone.so.1"
    assert found["plugin.load"].reason == "blocked-by"


def test_an_nccl_that_keeps_no_plugin_fails_with_the_loaders_reason(machine: Machine) -> None:
    source = plugin(4) + "extern int nowhere; int *f(void) { return &nowhere; }"
    machine.lib("libnccl-net.so", source, "-nostdlib")
    one = machine.findings("harp", "plugin", static=True)["plugin.load"]
    assert one.outcome == FAILED
    assert one.measured.endswith("libnccl-net.so: undefined symbol: nowhere")


def test_an_nccl_that_opens_plugins_on_a_gpu_only_rests(machine: Machine) -> None:
    machine.lib("libnccl.so.2", nccl("2.22.3", 22203, (4, 5)), "-ldl")
    one = machine.findings("harp", "plugin", static=True)["plugin.load"]
    assert (one.outcome, one.reason) == (SKIPPED, "not-applicable")


@pytest.mark.parametrize(
    ("asked", "version", "names"),
    [
        ("", "2.27.3", ["libnccl-net.so"]),
        ("foo", "2.10.3", ["libnccl-net.so"]),
        ("foo", "2.18.1", ["libnccl-net-foo.so"]),
        ("foo", "2.21.5", ["foo", "libnccl-net-foo.so"]),
        ("/a/b.so", "2.26.2", ["/a/b.so"]),
        ("foo", "2.26.2", ["foo", "libnccl-net-foo.so"]),
        ("none", "2.28.3", []),
        ("none", "2.18.1", ["libnccl-net-none.so"]),
        ("a,libb.so", "2.28.3", ["a", "libnccl-net-a.so", "libb.so"]),
    ],
)
def test_the_name_that_nccl_opens_depends_on_its_release(
    asked: str, version: str, names: list[str]
) -> None:
    assert net_plugin.wanted_names(asked, version) == names


@pytest.mark.parametrize(
    ("line", "accepts", "why"),
    [
        ("NET/Plugin : Plugin load (x.so) returned 2 : x.so: no y", (4, 6), "x.so: no y"),
        ("NET/Plugin: Failed to find ncclNetPlugin symbol (v4 or v5).", (4, 6), "no symbol"),
        ("NET/Plugin: Failed to find ncclNetPlugin_v4 symbol.", (4,), "no symbol"),
        ("NET/Plugin: Failed to find ncclNetPlugin_v6 symbol.", (4, 6), "says nothing"),
        ("NET/Plugin: Failed to find ncclCollNetPlugin symbol (v4).", (4, 6), "says nothing"),
        ("NET/Plugin: No plugin found (libnccl-net.so)", (5, 8), "cannot load"),
    ],
)
def test_only_the_decisive_line_of_the_log_counts(
    line: str, accepts: tuple[int, ...], why: str
) -> None:
    assert why in net_plugin.reason(f"vm:1:1 [0] NCCL INFO {line}\n", accepts)


def test_without_a_gpu_the_host_is_not_judged(machine: Machine) -> None:
    found = machine.findings("harp")
    live = [found[f"harp.{name}"] for name in (*LIVE, "privileged", "enis")]
    assert {(one.outcome, one.reason) for one in live} == {(SKIPPED, "no-gpu-hw")}


def test_a_prepared_host_passes(machine: Machine) -> None:
    prepared(machine.root)
    found = machine.findings("harp", "plugin")
    assert {one.outcome for one in found.values()} == {PASSED}
    assert found["plugin.used"].measured == "NCCL uses HARP"
    assert list((machine.root / "dev/hugepages").iterdir()) == []


def test_a_fallback_to_sockets_on_a_gpu_fails(machine: Machine) -> None:
    prepared(machine.root)
    source = nccl("2.9.9", 20909, (4,)).replace("Using network HARP", "Using network Socket")
    machine.lib("libnccl.so.2", source, "-ldl")
    found = machine.findings("harp", "plugin")
    assert [name for name, one in found.items() if one.outcome == FAILED] == ["plugin.used"]
    assert found["plugin.used"].measured.startswith("NCCL uses Socket, not /")


@pytest.mark.silent("E3")
def test_a_host_that_is_not_prepared_is_the_one_cause(machine: Machine) -> None:
    gpu_on_bus(machine.root)
    found = machine.findings("harp")
    assert found["harp.config"].outcome == FAILED
    assert "harp_setup.sh" in found["harp.config"].remedy
    for name in ("harp.inactive-installed", "harp.hugepages-host"):
        assert (found[name].reason, found[name].measured) == ("blocked-by", "harp.config")


@pytest.mark.silent("E3")
def test_where_harp_is_not_wanted_the_active_plugin_fails(machine: Machine) -> None:
    machine.profile = "rdma"
    gpu_on_bus(machine.root)
    found = machine.findings("harp")
    assert found["harp.config"].reason == "not-applicable"
    assert found["harp.inactive-installed"].outcome == FAILED
    assert found["harp.inactive-installed"].kind == "host"


def test_too_few_pages_fail_with_the_number_for_this_machine(machine: Machine) -> None:
    prepared(machine.root, pages=10)
    one = machine.findings("harp")["harp.hugepages-host"]
    assert one.measured == "10 pages of 1 GiB, 10 free, 15 needed"
    assert "hugepages=15" in one.remedy


@pytest.mark.silent("E22")
def test_small_pages_and_no_mount_and_a_small_quota_fail(machine: Machine) -> None:
    prepared(machine.root)
    write(machine.root, "/proc/meminfo", "Hugepagesize:    2048 kB\n")
    assert machine.findings("harp")["harp.hugepages-host"].outcome == FAILED
    prepared_meminfo = "Hugepagesize:    1048576 kB\n"
    write(machine.root, "/proc/meminfo", prepared_meminfo)
    write(machine.root, "/proc/mounts", "")
    write(machine.root, "/sys/fs/cgroup/hugetlb.1GB.max", str(2 << 30))
    write(machine.root, "/proc/self/status", "CapEff:\t00000000a80425fb\n")
    found = machine.findings("harp")
    assert found["harp.hugepages-mount"].measured == "nothing is mounted"
    assert found["harp.hugepages-cgroup"].measured == "2 pages, 15 are needed"
    assert found["harp.privileged"].outcome == WARNED


@pytest.mark.parametrize(("gpus", "pages"), [(8, 50), (1, 15)])
def test_eight_gpus_need_fifty_pages_as_the_vendor_says(gpus: int, pages: int) -> None:
    assert harp_host.pages_needed(gpus) == pages
