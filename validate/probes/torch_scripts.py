"""Hold what PyTorch is asked, as scripts for the image's own Python.

Each prints one JSON object. They can run one after the other in one process, which imports PyTorch
once.
"""

from typing import List

LIBRARIES = """
import json, torch
import torch.distributed
def asked(function):
    try:
        return function(), ""
    except Exception as error:
        return None, str(error).strip().splitlines()[-1]
def nccl():
    found = torch.cuda.nccl.version()
    if isinstance(found, int):
        major, tail = divmod(found, 10000 if found >= 10000 else 1000)
        found = (major, tail // 100, tail % 100)
    return ".".join(str(part) for part in found)
there = torch.distributed.is_available() and torch.distributed.is_nccl_available()
print(json.dumps({
    "nccl_there": bool(there), "nccl": asked(nccl) if there else ["", ""],
    "cudnn": asked(torch.backends.cudnn.version),
    "arches": asked(torch.cuda.get_arch_list)[0] or [],
}))
"""

DEVICES = """
import json, torch
found = [torch.cuda.get_device_capability(n) for n in range(torch.cuda.device_count())]
print(json.dumps({"arches": list(torch.cuda.get_arch_list()), "capabilities": found}))
"""

ALLREDUCE = """
import json, os, tempfile, torch
import torch.distributed as dist
store = tempfile.mktemp()
try:
    dist.init_process_group("nccl", init_method="file://" + store, rank=0, world_size=1)
    ones = torch.ones(1024, device="cuda")
    dist.all_reduce(ones)
    torch.cuda.synchronize()
    total = float(ones.sum())
except Exception as error:
    lines = [line.strip() for line in str(error).splitlines()]
    print("\\n" + json.dumps({"problem": lines}), flush=True)
    if os.path.exists(store):
        os.unlink(store)
    os._exit(0)
print("\\n" + json.dumps({"sum": total}))
dist.destroy_process_group()
"""
"""After an error the script ends at once. Otherwise PyTorch warns of a group that was not
destroyed, and this warning, not NCCL's message, would be the last line of the process.
"""

KERNEL_SUM = 32640.0
"""The sum of 0 to 255."""
KERNEL = """
import json, torch
def summed(device):
    numbers = torch.arange(256, dtype=torch.float32, device=device).reshape(16, 16)
    try:
        return float((numbers @ torch.eye(16, device=device)).sum())
    except RuntimeError as error:
        return str(error).strip().splitlines()[0]
gpus = torch.cuda.device_count() if torch.version.cuda else 0
devices = ["cpu"] + ["cuda:%d" % n for n in range(gpus)]
print("\\n" + json.dumps({"kernel": [[device, summed(device)] for device in devices]}), flush=True)
"""

ANSWERS = {
    LIBRARIES: ("nccl_there",),
    DEVICES: ("capabilities",),
    KERNEL: ("kernel",),
    ALLREDUCE: ("sum", "problem"),
}
"""Script -> names of its answers, of which it gives one."""

IN_TURN = """
import json, sys
names, first = {"__name__": "__main__"}, None
for number, part in enumerate(sys.argv[1:]):
    try:
        exec(part, names)
    except Exception as error:
        first = first or error
    if not number:
        print("\\n" + json.dumps({"imported": first is None}))
    sys.stdout.flush()
if first is not None:
    raise first
"""
"""Runs the scripts of its arguments in one process; what one of them raises ends it at the end."""


def in_turn(python: str, first: str, gpu: bool) -> List[str]:
    """Return the command that imports PyTorch by a first script, and asks all others after it."""
    more = [LIBRARIES, DEVICES, KERNEL, ALLREDUCE] if gpu else [KERNEL]
    return [python, "-c", IN_TURN, first, *more]
