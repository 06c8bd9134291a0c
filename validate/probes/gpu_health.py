"""Judge the health of GPUs from what NVML says of each: what no image can cause.

Names and numbers: NVIDIA's NVML API reference; "GPU Memory Error Management"; "Fabric Manager for
NVSwitch systems".
"""

from typing import Any, Dict, List, NamedTuple, Sequence

from validate.remedy import Remedy, on_host

Device = Dict[str, Any]
Devices = Sequence[Device]


class Ailment(NamedTuple):
    """Hold what is wrong with a GPU, the cause and the remedy."""

    seen: str
    cause: str
    remedy: Remedy


SLOWDOWNS = {
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "thermal slowdown",
    0x80: "power brake",
}
"""nvmlClocksEventReason bits that mean less than full speed where no program asked for it. The
power cap (0x4) is not one of them: a GPU at full load reaches it.
"""
HEAT = 0x20 | 0x40
PROHIBITED = 2
FULL_ABOVE = 0.1
"""Share of a GPU's memory that may be in use before anything was started."""
FULL_SPEED = 0
"""The performance state in which the link to the host has its full generation; at rest it is lower.
"""
RESET = "nvidia-smi -i {} -r   # when nobody uses it; reboot where it refuses"
FABRIC_STATES = {1: "not started", 2: "in progress"}
"""nvmlGpuFabricState_t of a GPU that has not joined its fabric."""


def number_at(values: Any, index: int = 0) -> int:
    """Return one number of an answer; 0 if the device does not know it."""
    return int(values[index]) if values and values[index] else 0


def damaged_memory(device: Device) -> List[Ailment]:
    """Find damaged memory: errors since the driver loaded, and rows or pages to be replaced."""
    index = device["index"]
    looking = "nvidia-smi -i {} -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT".format(index)
    reset = on_host(RESET.format(index), look=looking)
    rows = device.get("remapped") or [0, 0, 0, 0]
    found = []
    if rows[3]:
        cause = "the memory has no spare rows left where it is damaged"
        remedy = on_host("replace GPU {}".format(index), look=looking)
        found.append(Ailment("a row remapping failed", cause, remedy))
    if number_at(device.get("ecc")):
        text = "{} uncorrected ECC errors".format(number_at(device["ecc"]))
        cause = "bits of its memory flipped that could not be corrected: results were lost"
        found.append(Ailment(text, cause, reset))
    if rows[2] or number_at(device.get("retired")):
        what = "row remapping" if rows[2] else "retirement of a page"
        cause = "damaged memory is replaced by spare memory at the next reset only"
        found.append(Ailment("a {} is pending".format(what), cause, reset))
    return found


def links(device: Device, others: Devices, switched: bool) -> List[Ailment]:
    """Find NVLinks that are down: some of a machine with NVSwitch, or fewer than others have.

    Cards whose bridge takes a part of their links have the others down, all cards alike.
    """
    state = device.get("links") or []
    up, most = sum(state), max(sum(one.get("links") or []) for one in others)
    index = device["index"]
    found = []
    if state and (up < most or (switched and up < len(state))):
        text = "{} of {} NVLinks are up".format(up, len(state) if switched else most)
        cause = "a link is down: NCCL takes a slower way, or does not start"
        remedy = on_host(RESET.format(index), look="nvidia-smi nvlink -s -i {}".format(index))
        found.append(Ailment(text, cause, remedy))
    fabric = device.get("fabric") or []
    if fabric and number_at(fabric) in FABRIC_STATES:
        text = "its registration with the fabric is {}".format(FABRIC_STATES[fabric[0]])
        cause = "the fabric manager has not set the NVSwitches up for this GPU"
        remedy = on_host("systemctl restart nvidia-fabricmanager", look="nvidia-smi -q")
        found.append(Ailment(text, cause, remedy))
    return found


def link_errors(device: Device) -> int:
    """Return how many errors the NVLinks of a GPU counted since the driver loaded."""
    return sum(device.get("link_errors") or [])


def pcie(device: Device) -> List[Ailment]:
    """Find a link to the host that is narrower or slower than GPU and slot allow."""
    said = device.get("pcie") or []
    if len(said) < 5 or None in said[:4]:
        return []
    width, widest, generation, highest = (int(one) for one in said[:4])
    parts = ["x{} of x{}".format(width, widest)] if width < widest else []
    if generation < highest and said[4] == FULL_SPEED:
        parts.append("generation {} of {}".format(generation, highest))
    if not parts:
        return []
    index = device["index"]
    cause = "the GPU, its riser or its slot has bad contacts, or the BIOS limits the slot"
    look = "nvidia-smi -i {} -q | grep -A12 'GPU Link Info'".format(index)
    remedy = on_host("seat GPU {} anew, or replace its riser".format(index), look=look)
    return [Ailment("PCIe " + ", ".join(parts), cause, remedy)]


def clocks(device: Device) -> List[Ailment]:
    """Find what slows a GPU down that no program asked for."""
    slow = number_at(device.get("slowdown"))
    names = [name for bit, name in sorted(SLOWDOWNS.items()) if slow & bit]
    if not names:
        return []
    look = "nvidia-smi -i {} -q -d PERFORMANCE,POWER,TEMPERATURE".format(device["index"])
    if slow & HEAT:
        cause, text = "it is too hot", "look after fans, filters and the air of the room"
    else:
        cause, text = "its power supply limits it", "look after the power supplies and their cables"
    return [Ailment(", ".join(names), cause, on_host(text, look=look))]


def busy(device: Device) -> List[Ailment]:
    """Find a GPU that is in another process's hands."""
    index, pids = device["index"], device.get("processes") or []
    total, used = int(device.get("total", 0)), int(device.get("used", 0))
    full = bool(total) and used > FULL_ABOVE * total
    if not pids and not full:
        return []
    of = "{} of {} MiB are in use".format(used >> 20, total >> 20)
    seen = "{} processes compute on it, {}".format(len(pids), of) if pids else of
    look = "nvidia-smi -i {} --query-compute-apps=pid,name,used_memory --format=csv".format(index)
    remedy = on_host("end the processes that use GPU {}".format(index), look=look)
    return [Ailment(seen, "another job has it, or one that ended left a process behind", remedy)]


def modes(device: Device) -> List[Ailment]:
    """Find a mode in which no program can use the GPU."""
    if number_at(device.get("compute_mode")) != PROHIBITED:
        return []
    remedy = on_host("nvidia-smi -i {} -c 0".format(device["index"]))
    return [Ailment("compute mode is prohibited", "an administrator has set it so", remedy)]
