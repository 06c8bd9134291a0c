"""Check that HARP is installed and that the host is prepared for it."""

import os
from shlex import quote

from validate.check import check, fail, skip
from validate.fixtures import Measure, Situation
from validate.probes import cuda, harp_host, kubernetes, net_plugin
from validate.probes.files import under
from validate.probes.libraries import libraries
from validate.remedy import at_launch, in_image, in_shell, on_host

LAUNCH = at_launch(
    "docker run --gpus all --privileged --network host -v /sys:/sys "
    "-v /dev/hugepages:/dev/hugepages -v /usr/local/tfabric/tools:/usr/local/tfabric/tools IMAGE"
)


def _path(image: Situation) -> str:
    return under(image.root, str(image.expected.fact("harp", "path", net_plugin.HARP_PATH)))


@check(
    "harp.lib",
    "the plugin lies where the recipe says",
    cause="it was renamed to switch HARP off, or the layer that brings it is missing",
)
def test_lib(image: Situation, measure: Measure) -> None:
    """the path of the recipe is a file"""
    path = _path(image)
    measure(path)
    if os.path.isfile(path):
        return
    renamed = net_plugin.disabled([os.path.dirname(path)])
    back = "mv {} {}; ldconfig".format(quote(renamed[0]), quote(path)) if renamed else ""
    remedy = in_shell(back) if back else in_image("imagegen build")
    fail("{} is not there".format(path), remedy=remedy)


def _gpus(image: Situation) -> int:
    """Return how many GPUs the host has; skip the check if none: HARP is not used without."""
    count = len(cuda.gpus(image.root))
    if kubernetes.launches_only(image.env):
        skip("not-applicable", "the launcher of an MPIJob moves no data itself")
    if not count:
        skip("no-gpu-hw", "the host has no NVIDIA GPU")
    return count


def _wanted(image: Situation) -> bool:
    """Return whether the container has to train over HARP.

    If so, a missing set-up means that the host has to be prepared; if not, that the plugin has to
    be disabled.
    """
    return bool(image.expected.data.get("profile", "harp") == "harp")


@check(
    "harp.config",
    "the host was prepared for HARP, and the container sees it",
    tier="live",
    cause="HARP was not set up on the host, or its folder was not mounted: NCCL stops at its start",
    remedy=on_host("{}   # then reboot it; {}".format(harp_host.SETUP, LAUNCH)),
)
def test_config(image: Situation, measure: Measure) -> None:
    """/usr/local/tfabric/tools/config/ztcp*.conf, not empty"""
    _gpus(image)
    found = harp_host.config_files(image.root)
    measure("{} files such as {}".format(len(found), found[0]) if found else "")
    if found:
        return
    if not _wanted(image):
        skip("not-applicable", "this host is not prepared for HARP; see harp.inactive-installed")
    fail("there is no {}".format(harp_host.CONFIG))


@check(
    "harp.inactive-installed",
    "on a host that is not prepared for HARP the plugin is not active",
    tier="live",
    cause="NCCL opens the plugin, which stops at its start for want of its configuration",
)
def test_inactive_installed(image: Situation, measure: Measure) -> None:
    """libnccl-net.so as dlopen finds it, on a host without ztcp*.conf. In profile harp the plugin
    has to be active: harp.config then says what the host lacks"""
    _gpus(image)
    measure("prepared")
    if harp_host.config_files(image.root):
        return
    if _wanted(image):
        skip("blocked-by", "harp.config")
    active = libraries(image).loader.first(net_plugin.DEFAULT)
    measure("no plugin is active")
    if active:
        remedy = "{}   # then reboot it; or build an image without HARP".format(harp_host.SETUP)
        text = "{} is active, {} is not there".format(active, harp_host.CONFIG)
        fail(text, remedy=on_host(remedy))


@check(
    "harp.hugepages-host",
    "the host has enough huge pages of 1 GiB: 5 for each GPU, and 10",
    tier="live",
    cause="the kernel of the host was started without them, or with too few",
    needs=("harp.config",),
)
def test_hugepages_host(image: Situation, measure: Measure) -> None:
    """/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages and free_hugepages, Hugepagesize in
    /proc/meminfo"""
    need, have = harp_host.pages_needed(_gpus(image)), harp_host.pages(image.root)
    text = "{} pages of 1 GiB, {} free, {} needed".format(have.total, have.free, need)
    measure(text)
    boot = "default_hugepagesz=1GB hugepagesz=1GB hugepages={}".format(need)
    remedy = "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{} /' /etc/default/grub && update-grub2 && reboot"
    if have.total < need:
        fail(text, remedy=on_host(remedy.format(boot)))
    if have.default_kib != harp_host.GIB >> 10:
        text = "huge pages have {} KiB by default, HARP takes 1 GiB"
        fail(text.format(have.default_kib), remedy=on_host(remedy.format(boot)))


@check(
    "harp.hugepages-mount",
    "the container can map huge pages of 1 GiB",
    tier="live",
    cause="/dev/hugepages was not passed to the container, or others use all pages",
    remedy=LAUNCH,
    needs=("harp.config", "harp.hugepages-host"),
)
def test_hugepages_mount(image: Situation, measure: Measure) -> None:
    """the hugetlbfs at /dev/hugepages in /proc/mounts, and a page of 1 GiB mapped from a file on
    it"""
    size = harp_host.mounted_page_size(image.root)
    measure("{} with pages of {}".format(harp_host.MOUNT, size))
    if size not in ("1024M", "1G"):
        fail("pages of {} at {}".format(size, harp_host.MOUNT) if size else "nothing is mounted")
    why = harp_host.map_one_page(image.root)
    if why:
        fail(why)


@check(
    "harp.hugepages-cgroup",
    "the container may use as many huge pages as HARP takes",
    tier="live",
    cause="the pod asks for fewer huge pages",
    needs=("harp.config",),
)
def test_hugepages_cgroup(image: Situation, measure: Measure) -> None:
    """hugetlb.1GB.max (cgroup v2) or hugetlb.1GB.limit_in_bytes (v1)"""
    need, limit = harp_host.pages_needed(_gpus(image)), harp_host.cgroup_pages(image.root)
    measure("no limit" if limit is None else "{} pages".format(limit))
    if limit is not None and limit < need:
        remedy = "resources: {{limits: {{hugepages-1Gi: {}Gi, memory: 100Gi}}}}".format(need)
        fail("{} pages, {} are needed".format(limit, need), remedy=at_launch(remedy))


@check(
    "harp.privileged",
    "the container is privileged: HARP cannot read its configuration otherwise",
    severity="warn",
    tier="live",
    cause="the container was started without --privileged",
    remedy=LAUNCH,
    needs=("harp.config",),
)
def test_privileged(image: Situation, measure: Measure) -> None:
    """SYS_ADMIN and SYS_RAWIO in CapEff of /proc/self/status"""
    measure("privileged")
    if not harp_host.privileged(image.root):
        fail("the process has not the capabilities of --privileged")


@check(
    "harp.enis",
    "there is a network interface for each GPU, beside the host's own",
    severity="warn",
    tier="live",
    cause="fewer elastic network interfaces are bound to the machine than it has GPUs",
    remedy=on_host("bind one more for each GPU in the cloud's console, then set HARP up again"),
    needs=("harp.config",),
)
def test_enis(image: Situation, measure: Measure) -> None:
    """the number of virtio network functions (vendor 0x1af4, class 0x0200) on the PCI bus: at least
    one more than there are GPUs"""
    gpus, found = _gpus(image), harp_host.network_cards(image.root)
    text = "{} interfaces, {} GPUs".format(len(found), gpus)
    measure(text)
    if len(found) < gpus + 1:
        fail("{}: {} are needed".format(text, gpus + 1))


@check(
    "harp.single-node",
    "HARP and LightCC help between machines: numbers of one machine say nothing about them",
    severity="info",
    tier="live",
)
def test_single_node(measure: Measure) -> None:
    """nothing is measured: this is a note"""
    measure("judge it by a job on two machines or more")
