"""Compare the product of the axes in `imagegen list`, which also resolves it, and in bake.

The peer is `docker buildx bake --print`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import measure

import matrices

SIZES = {100: 5, 1000: 3, 2000: 3}
"""Cells -> runs. Bake's time grows faster than the number of its targets."""

PLACES = ("/usr/libexec/docker/cli-plugins", "/usr/local/lib/docker/cli-plugins")

ABOUT = """\
buildx {version}. Both print JSON with the same tags (checked as sets); process start included.
`imagegen list` also checks every value, resolves every cell and finds its versions in the catalog,
which bake does not."""


def program() -> str:
    """Find docker-buildx: `$BUILDX`, else on PATH or among Docker's plug-ins; empty without one."""
    own = [str(Path.home() / ".docker/cli-plugins"), *PLACES]
    path = os.pathsep.join([os.environ.get("PATH", ""), *own])
    return os.environ.get("BUILDX") or shutil.which("docker-buildx", path=path) or ""


def hcl(name: str, cells: int) -> str:
    """Write the same axes, tags and arguments as a file for bake."""
    axes = matrices.axes_of(cells)
    plain = {axis: [value.replace(" ", "-") for value in values] for axis, values in axes.items()}
    tag = "-".join(f"${{{axis}}}" for axis in plain)
    matrix = "\n".join(f"    {axis} = {json.dumps(values)}" for axis, values in plain.items())
    arguments = "\n".join(f'    {axis} = "${{{axis}}}"' for axis in plain)
    return f'''target "cell" {{
  name = "cell-${{replace("{tag}", ".", "_")}}"
  matrix = {{
{matrix}
  }}
  tags = ["imagegen/{name}:{tag}"]
  args = {{
{arguments}
  }}
}}
'''


def report() -> list[str]:
    """Measure each size and return the section of the page."""
    lines = ["## The pure product, beside `docker buildx bake --print`", ""]
    if not program():
        return [*lines, "No docker-buildx was found (`BUILDX` may name one): not measured.", ""]
    version = measure.output_of([program(), "version"]).decode().split()[1]
    lines += [
        ABOUT.format(version=version),
        "",
        "| cells | `imagegen list` | `bake --print` | bake / imagegen |",
        "|---:|---:|---:|---:|",
    ]
    lines += [_row(cells, runs) for cells, runs in SIZES.items()]
    return [*lines, ""]


def _row(cells: int, runs: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        name = matrices.write(Path(folder), cells)
        file = Path(folder, "docker-bake.hcl")
        file.write_text(hcl(name, cells))
        imagegen = Path(sys.executable).with_name("imagegen")
        ours: list[str | Path] = [
            imagegen,
            "list",
            "-m",
            name,
            "--overlay",
            folder,
            "--format",
            "json",
        ]
        theirs: list[str | Path] = [program(), "bake", "--print", "-f", file, "cell"]
        listed = {row["image"] for row in json.loads(measure.output_of(ours))}
        printed = json.loads(measure.output_of(theirs))["target"]
        assert listed == {one["tags"][0] for one in printed.values()}
        assert len(listed) == cells
        taken = measure.alternately(
            {
                "ours": lambda: measure.output_of(ours),
                "theirs": lambda: measure.output_of(theirs),
            },
            runs,
        )
    own, peer = taken["ours"], taken["theirs"]
    return (
        f"| {cells} | {own.wall:.2f} s ({own.cpu:.2f} s CPU) | "
        f"{peer.wall:.2f} s ({peer.cpu:.2f} s CPU) | {peer.wall / own.wall:.1f} |"
    )
