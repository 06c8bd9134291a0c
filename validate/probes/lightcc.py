"""Recognise LightCC, Tencent Cloud's fork of Horovod, by its settings and its libraries.

Names and defaults: Tencent Cloud's documents on TACO Train.
"""

import difflib
import os
from typing import Dict, List

from validate.probes.binary import marks
from validate.probes.files import names

DISTRIBUTION, ORIGINAL = "light-horovod", "horovod"
PREFIX = "LIGHT_"
KNOBS = (
    "LIGHT_2D_ALLREDUCE",
    "LIGHT_INTRA_SIZE",
    "LIGHT_HIERARCHICAL_THRESHOLD",
    "LIGHT_TOPK_ALLREDUCE",
    "LIGHT_TOPK_RATIO",
    "LIGHT_TOPK_THRESHOLD",
    "LIGHT_TOPK_FP16",
)
MARK = b"LIGHT_2D_ALLREDUCE"


def unknown(env: Dict[str, str]) -> Dict[str, str]:
    """Map each setting that LightCC does not know to the most similar known one, or to nothing."""
    found = [name for name in sorted(env) if name.startswith(PREFIX) and name not in KNOBS]
    near = {name: difflib.get_close_matches(name, KNOBS, 1) for name in found}
    return {name: "".join(matches) for name, matches in near.items()}


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
