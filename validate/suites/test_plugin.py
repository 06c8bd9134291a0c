"""Check the net plugin that NCCL opens: found, accepted and kept, tried without a GPU.

With HARP in the recipe that is HARP's. In any other image a plugin on the loader's path is a fact,
or a stray: every NCCL of every job opens it.
"""

import os
from typing import List, NoReturn, Tuple

from validate.check import check, fail, skip, warn
from validate.fixtures import Measure, Situation
from validate.probes import cuda, gpu, nccl, net_plugin
from validate.probes.aside import one_line
from validate.probes.chosen_plugin import asked_for, is_wanted, nccls, opened_by, plugin_path
from validate.probes.dpkg import lost_library, package_of
from validate.probes.libraries import (
    environment,
    libraries,
    nccl_copies,
    on_the_path,
    out_of_the_way,
)
from validate.probes.native import call_functions
from validate.remedy import Remedy, in_image, in_shell

REQUEST = ("imagegen request harp=… nccl=…", "validate --only nccl,plugin")


def _judge(image: Situation, measured: str, cause: str, remedy: Remedy) -> NoReturn:
    """Fail where somebody relies on the plugin. Elsewhere NCCL goes on without it: a warning."""
    if is_wanted(image):
        fail(measured, cause, remedy)
    warn(measured, cause, remedy if image.expected.has("harp") else _away(image))


def _away(image: Situation) -> Remedy:
    return out_of_the_way(image, plugin_path(image))[1]


@check(
    "plugin.present",
    "the plugin is what NCCL opens: the loader finds it by the name that NCCL asks for",
    cause="its folder is not on the loader's path, or NCCL_NET_PLUGIN asks for another name",
    needs=("harp.lib",),
)
def test_present(image: Situation, measure: Measure) -> None:
    """libnccl-net.so, or what NCCL_NET_PLUGIN means to the image's NCCL, as dlopen finds it:
    LD_LIBRARY_PATH, cache, default folders; by real path. Without HARP, only what NCCL_NET_PLUGIN
    asks for has to be there"""
    asked, place = asked_for(image)
    if not asked or asked == "none":
        plugin_path(image)  # skips the check where nothing is wanted and nothing there
    for copy in nccls(image):
        wanted = net_plugin.wanted_names(asked, copy.version)
        found = opened_by(image, copy)
        path = plugin_path(image) if found or image.expected.has("harp") else ""
        measure("{} is {}".format(" or ".join(wanted), found))
        if not found:
            names = " or ".join(wanted) or "no plugin (NCCL_NET_PLUGIN=none)"
            remedy = in_shell(nccl.removal("NCCL_NET_PLUGIN", place))
            remedy = remedy if asked else on_the_path(os.path.dirname(path), "harp")
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
    exports, copies = net_plugin.abis(plugin_path(image)), nccls(image)
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
        text = "the plugin exports {}; {}".format(net_plugin.ranges(exports), "; ".join(seen))
        cause = "{} was made for other releases of NCCL".format(plugin_path(image))
        _judge(image, text, cause, _newer(image, exports))


def _newer(image: Situation, exports: Tuple[int, ...]) -> Remedy:
    """Return what brings HARP and NCCL together; a plugin of others goes off the path."""
    if not image.expected.has("harp"):
        return _away(image)
    accepted = net_plugin.ACCEPTED_BY.get(max(exports or (4,)), "")
    line = "imagegen request harp={} nccl='{}'   # or a newer HARP"
    return in_image(line.format(image.expected.version("harp"), accepted))


@check(
    "plugin.deps",
    "the plugin finds every library that it needs",
    cause="a library that the plugin is linked against is not in the image: NCCL ignores it then",
    needs=("harp.lib",),
)
def test_deps(image: Situation, measure: Measure) -> None:
    """DT_NEEDED of the plugin and of all that it loads, as ld.so(8) resolves them"""
    missing = libraries(image).loader.missing(plugin_path(image))
    lost = [name for name in missing if name not in gpu.DRIVER_LIBRARIES]
    measure("all there")
    if lost:
        cause = "a library that {} is linked against is not in the image: NCCL ignores it then"
        text = "it needs {}".format(", ".join(lost))
        _judge(image, text, cause.format(plugin_path(image)), lost_library(image.root, *lost))


@check(
    "plugin.load",
    "NCCL opens the plugin and keeps it: tried without a GPU",
    cause="the plugin does not load into NCCL",
    remedy=in_image(*REQUEST),
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
        why = (
            call_functions(plugin_path(image), {}, environment(image, library)).problem
            or opened.why
        )
        remedy = in_image(*REQUEST) if image.expected.has("harp") else _away(image)
        text = "NCCL {} keeps no plugin: {}".format(copy.version, why)
        if "crashed" in opened.why:
            fail(text, "{} ends each program that opens NCCL".format(plugin_path(image)), remedy)
        _judge(image, text, "{} does not load into NCCL".format(plugin_path(image)), remedy)


@check(
    "plugin.one",
    "no plugin is on the loader's path but the one that the image is made for",
    severity="warn",
    cause="HPC-X, aws-ofi-nccl, nccl-rdma-sharp-plugins and TCCL bring a file of the same name",
    needs=("harp.lib",),
)
def test_one(image: Situation, measure: Measure) -> None:
    """every libnccl-net*.so* on the loader's path; without HARP, also who brought the one that NCCL
    opens: a package, a setting of NCCL that asks for it, or nobody"""
    found = libraries(image).loader.starting_with("libnccl-net")
    measure(", ".join(found) or "none")
    if not image.expected.has("harp"):
        _stray(image, found, measure)
        return
    if len(found) > 1:
        others = [p for p in found if os.path.realpath(p) != os.path.realpath(plugin_path(image))]
        lines = [out_of_the_way(image, path)[1] for path in others]
        text = "{} candidates: {}".format(len(found), ", ".join(found))
        fail(text, remedy=in_shell(one_line(lines)))


def _stray(image: Situation, found: List[str], measure: Measure) -> None:
    """Warn of plugins that nobody asked for and no package brought."""
    if not nccls(image) or not found:
        return
    owners = {path: package_of(image.root, _inside(image, path))[0] for path in found}
    seen = ["{} ({})".format(path, owner or "of no package") for path, owner in owners.items()]
    measure(", ".join(seen))
    strays = [path for path in found if not owners[path]]
    if not strays or (is_wanted(image) and len(found) == 1):
        return
    cause = "{} was left on everyone's path: each NCCL opens it, and may lose its network by it"
    lines = [out_of_the_way(image, path)[1] for path in strays]
    warn(", ".join(seen), cause.format(", ".join(strays)), in_shell(one_line(lines)))


def _inside(image: Situation, path: str) -> str:
    return path if image.root == "/" else "/" + os.path.relpath(path, image.root)
