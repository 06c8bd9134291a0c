"""Find the net plugin that the NCCLs of an image open, and whether somebody relies on it."""

from typing import List, Tuple

from validate.check import fail, skip
from validate.fixtures import Situation
from validate.probes import nccl, net_plugin
from validate.probes.files import under
from validate.probes.libraries import libraries, nccl_copies
from validate.remedy import in_image


def nccls(image: Situation) -> List[nccl.Copy]:
    """Return every NCCL of the image; skip the check, or fail it with HARP, if there is none."""
    found = nccl_copies(image)
    if not found and not image.expected.has("harp"):
        skip("not-installed", "there is no NCCL")
    if not found:
        cause = "the layer that brings NCCL is missing"
        fail("there is no NCCL that could open it", cause, in_image("imagegen build"))
    return found


def plugin_path(image: Situation) -> str:
    """Return HARP's plugin, or the one that NCCL opens; skip the check if there is none."""
    if image.expected.has("harp"):
        return under(image.root, str(image.expected.fact("harp", "path", net_plugin.HARP_PATH)))
    copies = nccls(image)
    found = next(filter(None, (opened_by(image, copy) for copy in copies)), "")
    if not found:
        skip("not-applicable", "no net plugin is on the loader's path: NCCL uses its own networks")
    return found


def opened_by(image: Situation, copy: nccl.Copy) -> str:
    """Return the plugin that an NCCL opens; empty if it finds none."""
    wanted = net_plugin.wanted_names(asked_for(image)[0], copy.version)
    return next(filter(None, map(libraries(image).loader.first, wanted)), "")


def asked_for(image: Situation) -> Tuple[str, str]:
    """Return the value of NCCL_NET_PLUGIN, and what sets it."""
    return nccl.settings(image.root, image.env).get("NCCL_NET_PLUGIN", ("", ""))


def is_wanted(image: Situation) -> bool:
    """Return whether somebody relies on the plugin: then one that does not work is a failure."""
    forced = nccl.settings(image.root, image.env).get("NCCL_NET", ("", ""))[0].lower()
    own = forced in ("", "ib", "socket")
    return image.expected.has("harp") or bool(asked_for(image)[0]) or not own
