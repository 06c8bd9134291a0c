"""Recognise LightCC, Tencent Cloud's fork of Horovod, by its settings and its libraries.

Names and defaults: Tencent Cloud's documents on TACO Train.
"""

import difflib
import os
import re
from typing import Any, Dict, List

from validate.components import COMPONENTS
from validate.probes.binary import marks
from validate.probes.files import names

DISTRIBUTION, ORIGINAL = "light-horovod", "horovod"
PREFIX = "LIGHT_"
SETTINGS = {one["name"]: one for one in COMPONENTS["lightcc"].settings}
"""The table of its settings, from its component.yaml."""
KNOBS = tuple(SETTINGS)
NUMBERS = {"flag": r"[01]$", "count": r"[0-9]+$", "share": r"[0-9]+([.][0-9]+)?$"}
MARK = b"LIGHT_2D_ALLREDUCE"


def unknown(env: Dict[str, str]) -> Dict[str, str]:
    """Map each setting that LightCC does not know to the most similar known one, or to nothing."""
    found = [name for name in sorted(env) if name.startswith(PREFIX) and name not in KNOBS]
    near = {name: difflib.get_close_matches(name, KNOBS, 1) for name in found}
    return {name: "".join(matches) for name, matches in near.items()}


def out_of_range(env: Dict[str, str]) -> Dict[str, str]:
    """Map each setting with a value that LightCC cannot take to the values that it takes."""
    found = {}
    for name, one in sorted(SETTINGS.items()):
        value = env.get(name)
        if value is None:
            continue
        good = re.match(NUMBERS[one["kind"]], value) is not None
        good = good and not (one["least"] and float(value) < float(one["least"]))
        if not good or (one["most"] and float(value) > float(one["most"])):
            found[name] = allowed_values(one)
    return found


def allowed_values(setting: Dict[str, Any]) -> str:
    """Say which values a setting takes."""
    if setting["kind"] == "flag":
        return "0 or 1"
    what = "a whole number" if setting["kind"] == "count" else "a number"
    least = " from {}".format(setting["least"]) if setting["least"] else ""
    return what + least + (" to {}".format(setting["most"]) if setting["most"] else "")


def extensions(sites: List[str]) -> List[str]:
    """List the compiled parts of Horovod, one for each framework."""
    found = []
    for site in sites:
        for part in ("torch", "tensorflow", "mxnet"):
            folder = os.path.join(site, "horovod", part)
            found += [os.path.join(folder, n) for n in names(folder) if n.startswith("mpi_lib")]
    return [path for path in found if ".so" in os.path.basename(path)]


def marked(path: str) -> bool:
    """Return whether a library is LightCC's own, not plain Horovod's."""
    return bool(marks(path, MARK))
