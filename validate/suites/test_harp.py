"""HARP: NCCL finds its plugin and accepts it, and the host is prepared for it."""

import os
from typing import List

from validate.check import check, fail, skip
from validate.plugin import Measure, Situation
from validate.probes import cuda, harp_host, nccl, net_plugin
from validate.probes.files import under
from validate.probes.libraries import environment, libraries, nccl_copies
from validate.probes.native import call

DEFAULT_PATH = "/usr/lib/x86_64-linux-gnu/libnccl-net.so"
DRIVER_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
LAUNCH = (
    "docker run --gpus all --privileged --network host -v /sys:/sys "
    "-v /dev/hugepages:/dev/hugepages -v /usr/local/tfabric/tools:/usr/local/tfabric/tools IMAGE"
)


def _path(image: Situation) -> str:
    return under(image.root, str(image.expected.fact("harp", "path", DEFAULT_PATH)))


def _nccls(image: Situation) -> List[nccl.Copy]:
    found = nccl_copies(image)
    if not found:
        fail("there is no NCCL that could open it", "the layer that brings NCCL is missing")
    return found


@check(
    "harp.lib",
    "the plugin lies where the recipe says",
    cause="it was renamed to switch HARP off, or the layer that brings it is missing",
)
def test_lib(image: Situation, measure: Measure) -> None:
    path = _path(image)
    measure(path)
    if os.path.isfile(path):
        return
    renamed = net_plugin.disabled([os.path.dirname(path)])
    remedy = "mv {} {}".format(renamed[0], path) if renamed else "imagegen build"
    fail("{} is not there".format(path), remedy=remedy)


@check(
    "plugin.present",
    "the plugin is what NCCL opens: the loader finds it by the name that NCCL asks for",
    cause="its folder is not on the loader's path, or NCCL_NET_PLUGIN asks for another name",
    needs=("harp.lib",),
)
def test_present(image: Situation, measure: Measure) -> None:
    path, settings = _path(image), nccl.settings(image.root, image.env)
    asked = settings.get("NCCL_NET_PLUGIN", ("", ""))[0]
    for copy in _nccls(image):
        wanted = net_plugin.wanted_names(asked, copy.version)
        found = next(filter(None, map(libraries(image).loader.first, wanted)), "")
        measure("{} is {}".format(" or ".join(wanted), found))
        if not found:
            names = " or ".join(wanted) or "no plugin (NCCL_NET_PLUGIN=none)"
            remedy = "echo {} > /etc/ld.so.conf.d/harp.conf; ldconfig".format(os.path.dirname(path))
            remedy = "unset NCCL_NET_PLUGIN" if asked else remedy
            fail("NCCL {} looks for {}: not found".format(copy.version, names), remedy=remedy)
        if os.path.realpath(found) != os.path.realpath(path):
            text = "NCCL {} opens {}, HARP is {}"
            fail(
                text.format(copy.version, found, path),
                "another package brings a plugin of the same name, and it comes first",
                "mv {0} {0}.off; ldconfig".format(found),
            )


@check(
    "plugin.abi",
    "every NCCL of the image accepts the plugin; one that does not uses sockets, in silence",
    cause="the plugin was made for other releases of NCCL",
    needs=("harp.lib",),
)
def test_abi(image: Situation, measure: Measure) -> None:
    exports, copies = net_plugin.abis(_path(image)), _nccls(image)
    text = "exports {}; NCCL {}".format(
        net_plugin.ranges(exports),
        ", ".join("{} accepts {}".format(c.version, net_plugin.ranges(c.accepts)) for c in copies),
    )
    measure(text)
    promised = str(image.expected.fact("harp", "plugin_abi") or "")
    if promised and promised not in map(str, exports):
        fail("{}; the recipe says v{}".format(text, promised), "this is another plugin")
    deaf = [copy for copy in copies if not set(copy.accepts) & set(exports)]
    if deaf:
        seen = [
            "NCCL {} in {} accepts {}".format(c.version, c.path, net_plugin.ranges(c.accepts))
            for c in deaf
        ]
        fail(
            "the plugin exports {}; {}".format(net_plugin.ranges(exports), "; ".join(seen)),
            remedy="imagegen request harp={} nccl='{}'   # or a newer HARP".format(
                image.expected.version("harp"), net_plugin.ACCEPTED_BY.get(max(exports or (4,)), "")
            ),
        )


@check(
    "plugin.deps",
    "the plugin finds every library that it needs",
    cause="a library that the plugin is linked against is not in the image: NCCL ignores it then",
    needs=("harp.lib",),
)
def test_deps(image: Situation, measure: Measure) -> None:
    missing = libraries(image).loader.missing(_path(image))
    lost = [name for name in missing if name not in DRIVER_LIBRARIES]
    measure("all there")
    if lost:
        remedy = "apt-file search {}   # names the package".format(lost[0])
        fail("it needs {}".format(", ".join(lost)), remedy=remedy)


@check(
    "plugin.load",
    "NCCL opens the plugin and keeps it: tried without a GPU",
    cause="the plugin does not load into NCCL",
    remedy="mpirun -x NCCL_DEBUG=INFO … | grep NET/Plugin   # says why",
    needs=("plugin.present", "plugin.abi", "plugin.deps"),
)
def test_load(image: Situation, measure: Measure) -> None:
    library = libraries(image).first(nccl.LIBRARY)
    if not library:
        skip("not-installed", "there is no {}".format(nccl.LIBRARY))
    copy = next(one for one in nccl_copies(image) if one.path == library)
    if cuda.numbers(copy.version) >= net_plugin.LAST_THAT_LOADS_EARLY:
        skip("not-applicable", "NCCL {} opens plugins with a GPU only".format(copy.version))
    opened = net_plugin.open_with(library, copy.accepts, environment(image, library))
    used = "; it uses {}".format(opened.network) if opened.network else ""
    measure("NCCL {} keeps {}{}".format(copy.version, ", ".join(opened.paths), used))
    if not opened.paths:
        why = call(_path(image), {}, environment(image, library)).problem or opened.why
        fail("NCCL {} keeps no plugin: {}".format(copy.version, why))


@check(
    "plugin.one",
    "no other plugin is on the loader's path",
    severity="warn",
    cause="HPC-X, aws-ofi-nccl, nccl-rdma-sharp-plugins and TCCL bring a file of the same name",
    needs=("harp.lib",),
)
def test_one(image: Situation, measure: Measure) -> None:
    found = libraries(image).loader.named("libnccl-net")
    measure(", ".join(found))
    if len(found) > 1:
        others = [p for p in found if os.path.realpath(p) != os.path.realpath(_path(image))]
        remedy = "dpkg -S {}   # and remove that package".format(" ".join(others))
        fail("{} candidates: {}".format(len(found), ", ".join(found)), remedy=remedy)


def _gpus(image: Situation) -> int:
    """How many GPUs the host has. Without one HARP has nothing to do."""
    count = len(cuda.gpus(image.root))
    if not count:
        skip("no-gpu-hw", "the host has no NVIDIA GPU")
    return count


@check(
    "harp.config",
    "the host was prepared for HARP, and the container sees it",
    tier="live",
    cause="HARP was not set up on the host, or its folder was not mounted: NCCL stops at its start",
    remedy="{}   # on the host, then reboot it; {}".format(harp_host.SETUP, LAUNCH),
)
def test_config(image: Situation, measure: Measure) -> None:
    _gpus(image)
    found = harp_host.config_files(image.root)
    measure(", ".join(found))
    if found:
        return
    if image.expected.data.get("profile", "harp") != "harp":
        skip("not-applicable", "this host is not prepared for HARP; see harp.inactive-installed")
    fail("there is no {}".format(harp_host.CONFIG))


@check(
    "harp.inactive-installed",
    "on a host that is not prepared for HARP the plugin is not active",
    tier="live",
    cause="NCCL opens the plugin, which stops at its start for want of its configuration",
)
def test_inactive_installed(image: Situation, measure: Measure) -> None:
    _gpus(image)
    measure("prepared")
    if harp_host.config_files(image.root):
        return
    active = libraries(image).loader.first(net_plugin.DEFAULT)
    measure("no plugin is active")
    if active:
        remedy = "mv {0} {0}.off   # back once the host is prepared".format(active)
        fail("{} is active, {} is not there".format(active, harp_host.CONFIG), remedy=remedy)


@check(
    "harp.hugepages-host",
    "the host has enough huge pages of 1 GiB: 5 for each GPU, and 10",
    tier="live",
    cause="the kernel of the host was started without them, or with too few",
    needs=("harp.config",),
)
def test_hugepages_host(image: Situation, measure: Measure) -> None:
    need, have = harp_host.pages_needed(_gpus(image)), harp_host.pages(image.root)
    text = "{} pages of 1 GiB, {} free, {} needed".format(have.total, have.free, need)
    measure(text)
    boot = "default_hugepagesz=1GB hugepagesz=1GB hugepages={}".format(need)
    remedy = "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{} /' /etc/default/grub && update-grub2 && reboot"
    if have.total < need:
        fail(text, remedy=remedy.format(boot) + "   # on the host")
    if have.default_kib != harp_host.GIB >> 10:
        text = "huge pages have {} KiB by default, HARP takes 1 GiB"
        fail(text.format(have.default_kib), remedy=remedy.format(boot) + "   # on the host")


@check(
    "harp.hugepages-mount",
    "the container can map huge pages of 1 GiB",
    tier="live",
    cause="/dev/hugepages was not passed to the container, or others use all pages",
    remedy="docker run -v /dev/hugepages:/dev/hugepages IMAGE   # with the rest of the launch",
    needs=("harp.config", "harp.hugepages-host"),
)
def test_hugepages_mount(image: Situation, measure: Measure) -> None:
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
    need, limit = harp_host.pages_needed(_gpus(image)), harp_host.cgroup_pages(image.root)
    measure("no limit" if limit is None else "{} pages".format(limit))
    if limit is not None and limit < need:
        remedy = "resources: {{limits: {{hugepages-1Gi: {}Gi, memory: 100Gi}}}}".format(need)
        fail("{} pages, {} are needed".format(limit, need), remedy=remedy)


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
    measure("privileged")
    if not harp_host.privileged(image.root):
        fail("the process has not the capabilities of --privileged")


@check(
    "harp.enis",
    "there is a network interface for each GPU, beside the host's own",
    severity="warn",
    tier="live",
    cause="fewer elastic network interfaces are bound to the machine than it has GPUs",
    remedy="bind one more for each GPU in the console of the cloud, then set HARP up again",
    needs=("harp.config",),
)
def test_enis(image: Situation, measure: Measure) -> None:
    gpus, found = _gpus(image), harp_host.interfaces(image.root)
    measure("{} interfaces, {} GPUs".format(len(found), gpus))
    if len(found) < gpus + 1:
        fail("{} interfaces, {} GPUs".format(len(found), gpus))


@check(
    "harp.single-node",
    "HARP and LightCC help between machines: numbers of one machine say nothing about them",
    severity="info",
    tier="live",
)
def test_single_node(measure: Measure) -> None:
    measure("judge it by a job on two machines or more")
