"""Find out which net plugin NCCL opens, whether it accepts the plugin, and whether it keeps it.

NCCL falls back to its own sockets silently if a plugin is not found or not accepted. Names and log
lines: NVIDIA/nccl, src/ of its release tags; the lines were seen on the wheels of 2.14.3 to 2.21.5.
Later releases open plugins only with a communicator, which needs a GPU.
"""

import os
import re
from typing import Dict, List, NamedTuple, Sequence, Tuple

from validate.probes.binary import exported
from validate.probes.cuda import numbers
from validate.probes.files import distinct_files, names
from validate.probes.native import ended, facts_of, run_script

DEFAULT = "libnccl-net.so"
HARP_PATH = "/usr/lib/x86_64-linux-gnu/libnccl-net.so"
LAST_THAT_LOADS_EARLY = (2, 22)
"""From this release on ncclGetUniqueId opens no plugin."""

ACCEPTED_BY = {
    2: ">=2.4.2,<=2.5.7",
    3: ">=2.6.4,<=2.7.8",
    4: ">=2.8.3,<=2.18.6",
    5: ">=2.12.7,<=2.25.1",
    6: ">=2.13.4",
    7: ">=2.19.1",
    8: ">=2.20.3",
    9: ">=2.24.3",
    10: ">=2.26.2",
    11: ">=2.28.3",
    12: ">=2.30.3",
}
"""Plugin ABI -> releases of NCCL that accept it (up to 2.30.7)."""

NEAR_MISSES = ("bak.libnccl-net.so", "libnccl-net.so_bak", "libnccl-net.so.bak", "libncc-net.so")
"""Names by which the vendor's instructions switch HARP off; one of them is mistyped there."""

OPEN = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
code = library.ncclGetUniqueId(ctypes.create_string_buffer(128))
with open("/proc/self/maps") as maps:
    paths = {line.split(None, 5)[-1].strip() for line in maps if "libnccl-net" in line}
sys.stdout.flush()
print("\\n" + json.dumps({"code": code, "plugins": sorted(paths)}))
"""


class Opened(NamedTuple):
    """Hold the files of the plugin that NCCL kept open, or why it kept none."""

    paths: List[str]
    why: str
    network: str


def wanted_names(asked: str, version: str) -> List[str]:
    """List the names that an NCCL of a version tries in order, if NCCL_NET_PLUGIN is `asked`."""
    here = numbers(version)
    if not asked or here < (2, 11):
        return [DEFAULT]
    if asked == "none" and here >= (2, 28):
        return []
    found = []
    for one in asked.split(",") if here >= (2, 28) else [asked]:
        short = "libnccl-net-{}.so".format(one)
        whole = "/" in one or (one.startswith("lib") and one.endswith(".so"))
        if here < (2, 21):
            found.append(short)
        else:
            found += [one] if here >= (2, 26) and whole else [one, short]
    return found


def abis(path: str) -> Tuple[int, ...]:
    """Return the ABIs that a plugin exports (`ncclNetPlugin_v4` and so on)."""
    prefix = "ncclNetPlugin_v"
    found = [name[len(prefix) :] for name in exported(path, prefix)]
    return tuple(sorted(int(number) for number in found if number.isdigit()))


def ranges(abi: Sequence[int]) -> str:
    """Write ABIs in words: `v4-v6`, `v4`, `none`."""
    if not abi:
        return "none"
    first, last = min(abi), max(abi)
    return "v{}".format(first) if first == last else "v{}-v{}".format(first, last)


def disabled(folders: Sequence[str]) -> List[str]:
    """List the plugins that were renamed to switch them off, and not renamed back."""
    found = [os.path.join(folder, name) for folder in folders for name in names(folder)]
    return distinct_files([path for path in found if os.path.basename(path) in NEAR_MISSES])


def open_with(library: str, accepts: Sequence[int], env: Dict[str, str]) -> Opened:
    """Let an NCCL open its plugin without a GPU; `why` is empty if it kept one."""
    settings = dict(env, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET", NCCL_SOCKET_IFNAME="lo")
    settings.pop("NCCL_DEBUG_FILE", None)
    result = run_script(OPEN, [library], settings)
    if not result.ok:
        return Opened([], ended(library, result), "")
    paths = [str(path) for path in facts_of(result).get("plugins", [])]
    network = re.search(r"Using network (\S+)", result.out)
    why = "" if paths else reason(result.out, accepts)
    return Opened(paths, why, network.group(1) if network else "")


def reason(log: str, accepts: Sequence[int]) -> str:
    """Say why NCCL kept no plugin, from its log at level INFO."""
    error = re.search(r"Plugin load \(\S*\) returned \d+ : (.*)", log)
    if error:
        return error.group(1)
    oldest = min(accepts) if accepts else 0
    decisive = r"Failed to find ncclNetPlugin(_v{})? symbol".format(oldest)
    if re.search(decisive, log):
        return "NCCL finds no symbol in it that it accepts"
    if "No plugin found" in log or "Could not find" in log:
        return "NCCL cannot load it"
    return "NCCL says nothing about it"
