"""Check that NCCL finds HARP's net plugin, accepts it and keeps it, without a GPU."""

import os
from typing import List

from validate.check import check, fail, skip
from validate.fixtures import Measure, Situation
from validate.probes import cuda, gpu, nccl, net_plugin
from validate.probes.aside import one_line
from validate.probes.dpkg import lost_library
from validate.probes.files import under
from validate.probes.libraries import (
    environment,
    libraries,
    nccl_copies,
    on_the_path,
    out_of_the_way,
)
from validate.probes.native import call_functions
from validate.remedy import in_image, in_shell


def _path(image: Situation) -> str:
    return under(image.root, str(image.expected.fact("harp", "path", net_plugin.HARP_PATH)))


def _nccls(image: Situation) -> List[nccl.Copy]:
    found = nccl_copies(image)
    if not found:
        cause = "the layer that brings NCCL is missing"
        fail("there is no NCCL that could open it", cause, in_image("imagegen build"))
    return found


@check(
    "plugin.present",
    "the plugin is what NCCL opens: the loader finds it by the name that NCCL asks for",
    cause="its folder is not on the loader's path, or NCCL_NET_PLUGIN asks for another name",
    needs=("harp.lib",),
)
def test_present(image: Situation, measure: Measure) -> None:
    """libnccl-net.so, or what NCCL_NET_PLUGIN means to the image's NCCL, as dlopen finds it:
    LD_LIBRARY_PATH, cache, default folders; by real path"""
    path, settings = _path(image), nccl.settings(image.root, image.env)
    asked, place = settings.get("NCCL_NET_PLUGIN", ("", ""))
    for copy in _nccls(image):
        wanted = net_plugin.wanted_names(asked, copy.version)
        found = next(filter(None, map(libraries(image).loader.first, wanted)), "")
        measure("{} is {}".format(" or ".join(wanted), found))
        if not found:
            names = " or ".join(wanted) or "no plugin (NCCL_NET_PLUGIN=none)"
            remedy = on_the_path(os.path.dirname(path), "harp")
            remedy = in_shell(nccl.removal("NCCL_NET_PLUGIN", place)) if asked else remedy
            fail("NCCL {} looks for {}: not found".format(copy.version, names), remedy=remedy)
        if os.path.realpath(found) != os.path.realpath(path):
            text = "NCCL {} opens {}, HARP is {}"
            fail(
                text.format(copy.version, found, path),
                "another package brings a plugin of the same name, and it comes first",
                out_of_the_way(image, found)[1],
            )


@check(
    "plugin.abi",
    "every NCCL of the image accepts the plugin; one that does not uses sockets, in silence",
    cause="the plugin was made for other releases of NCCL",
    needs=("harp.lib",),
)
def test_abi(image: Situation, measure: Measure) -> None:
    """ncclNetPlugin_vN in .dynsym of the plugin, against ncclNetPlugin_vN in the bytes of every
    NCCL of the image"""
    exports, copies = net_plugin.abis(_path(image)), _nccls(image)
    text = "exports {}; NCCL {}".format(
        net_plugin.ranges(exports),
        ", ".join("{} accepts {}".format(c.version, net_plugin.ranges(c.accepts)) for c in copies),
    )
    measure(text)
    promised = str(image.expected.fact("harp", "plugin_abi") or "")
    if promised and promised not in map(str, exports):
        fail(
            "{}; the recipe says v{}".format(text, promised),
            "this is another plugin",
            in_image("imagegen build"),
        )
    deaf = [copy for copy in copies if not set(copy.accepts) & set(exports)]
    if deaf:
        seen = [
            "NCCL {} in {} accepts {}".format(c.version, c.path, net_plugin.ranges(c.accepts))
            for c in deaf
        ]
        fail(
            "the plugin exports {}; {}".format(net_plugin.ranges(exports), "; ".join(seen)),
            remedy=in_image(
                "imagegen request harp={} nccl='{}'   # or a newer HARP".format(
                    image.expected.version("harp"),
                    net_plugin.ACCEPTED_BY.get(max(exports or (4,)), ""),
                )
            ),
        )


@check(
    "plugin.deps",
    "the plugin finds every library that it needs",
    cause="a library that the plugin is linked against is not in the image: NCCL ignores it then",
    needs=("harp.lib",),
)
def test_deps(image: Situation, measure: Measure) -> None:
    """DT_NEEDED of the plugin and of all that it loads, as ld.so(8) resolves them"""
    missing = libraries(image).loader.missing(_path(image))
    lost = [name for name in missing if name not in gpu.DRIVER_LIBRARIES]
    measure("all there")
    if lost:
        fail("it needs {}".format(", ".join(lost)), remedy=lost_library(image.root, *lost))


@check(
    "plugin.load",
    "NCCL opens the plugin and keeps it: tried without a GPU",
    cause="the plugin does not load into NCCL",
    remedy=in_image("imagegen request harp=… nccl=…", look="validate --only nccl,harp"),
    needs=("plugin.present", "plugin.abi", "plugin.deps"),
)
def test_load(image: Situation, measure: Measure) -> None:
    """ncclGetUniqueId in a process of its own with NCCL_DEBUG=INFO, and /proc/self/maps after it;
    only for NCCL before 2.22"""
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
        why = call_functions(_path(image), {}, environment(image, library)).problem or opened.why
        fail("NCCL {} keeps no plugin: {}".format(copy.version, why))


@check(
    "plugin.one",
    "no other plugin is on the loader's path",
    severity="warn",
    cause="HPC-X, aws-ofi-nccl, nccl-rdma-sharp-plugins and TCCL bring a file of the same name",
    needs=("harp.lib",),
)
def test_one(image: Situation, measure: Measure) -> None:
    """every libnccl-net*.so* on the loader's path"""
    found = libraries(image).loader.starting_with("libnccl-net")
    measure(", ".join(found))
    if len(found) > 1:
        others = [p for p in found if os.path.realpath(p) != os.path.realpath(_path(image))]
        lines = [out_of_the_way(image, path)[1] for path in others]
        text = "{} candidates: {}".format(len(found), ", ".join(found))
        fail(text, remedy=in_shell(one_line(lines)))
