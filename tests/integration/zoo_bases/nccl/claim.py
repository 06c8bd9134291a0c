"""Let the expectation file promise an NCCL, and HARP where its vendor puts it."""

import json
import sys
from pathlib import Path

EXPECTED = Path("/etc/imagegen/image.json")
PLUGIN = "/usr/lib/x86_64-linux-gnu/libnccl-net.so"

data = json.loads(EXPECTED.read_text())
data["components"]["nccl"] = {"version": sys.argv[1], "facts": {}}
data["components"]["harp"] = {"version": "1.3", "facts": {"path": PLUGIN}}
data["suites"] += ["nccl", "harp"]
EXPECTED.write_text(json.dumps(data))
