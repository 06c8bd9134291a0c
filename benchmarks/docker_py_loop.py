"""Build images in a loop with docker-py's `images.build`, as people write it.

`python docker_py_loop.py FILE`: the file has JSON, [{"context": folder, "tag": …, "buildargs":
{…}}, …]; DOCKER_HOST names the engine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import docker


def main(path: Path) -> None:
    """Build the images that the file lists, one after the other."""
    client = docker.from_env(timeout=3600)
    for image in json.loads(path.read_text(encoding="utf-8")):
        client.images.build(
            path=image["context"], tag=image["tag"], buildargs=image["buildargs"], rm=True
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
