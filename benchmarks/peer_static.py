"""Compare the static facts of one image in `validate --static` and in two peers.

The peers are testinfra's docker backend and container-structure-test.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import measure
import static_facts
import static_peers
from row import Target
from static_fact import Command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
IMAGE = "imagegen/cpu:debian12-*-rdma-core"
RUNS = 3

NAMES = {
    "validate": "`validate --static`",
    "testinfra": "testinfra, docker backend",
    "structure": "container-structure-test",
}
SHORT = {name: text.partition(",")[0] for name, text in NAMES.items()}

STATIC = ["validate", "--static", "--only", ",".join(static_facts.SUITES)]
ABOUT = """\
The image `{image}`:
the {checks} static checks of `validate` that run in it, and for the peers {facts} facts that
establish the same ({commands} commands, {files} files and programs, the environment): one for
each thing where there are few, one shell line where there are many, such as `ldd` of all libraries
for `os.elf-deps`; one `import torch` for all that takes one. Which fact stands for which check is
in `benchmarks/static_facts.py` and `static_facts_training.py`. Every fact held in each run. Left
out: what ours looks at only once something was found (the release of a second copy of a library,
which packages of the distribution pip complains of), cause and remedy, and private copies of
mounted SSH keys, of which this container has none. Ours and testinfra's {testinfra} work in one
container that runs already, ours by `docker exec`, process start included;
container-structure-test {structure} starts a container for each command, without the entrypoint
that makes keys, and reads the image's settings for the environment. Both run one test after the
other, as they do unless asked; `validate` imports torch beside its other checks. Wall
seconds: what runs in containers is not a child of this process. Without `import torch` is without
what `docker exec … python3 -c 'import torch'` took in the same turn: what the tool itself costs."""

TIMES = 10
"""How many times faster `validate` should be."""
WHY = """\
`import torch`, which each of them does once, takes {torch:.2f} s of `validate`'s {ours:.2f} s, and
a tenth of testinfra's time is {tenth:.2f} s"""


def image() -> str:
    """Return `$STATIC_IMAGE`, or the first image of the matrix `cpu`; empty if there is none."""
    if os.environ.get("STATIC_IMAGE"):
        return os.environ["STATIC_IMAGE"]
    if not shutil.which("docker"):
        return ""
    listed = measure.output_of(
        [
            "docker",
            "images",
            "--filter",
            f"reference={IMAGE}",
            "--format",
            "{{.Repository}}:{{.Tag}}",
        ]
    )
    return next(iter(listed.decode().split()), "")


def program() -> str:
    """Find container-structure-test: `$STRUCTURE_TEST`, else beside this Python or on PATH.

    Empty if there is none.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("container-structure-test", path=path)
    return os.environ.get("STRUCTURE_TEST") or found or ""


@contextlib.contextmanager
def container(name: str) -> Iterator[str]:
    """Run a container of an image while the block lasts, and wait until its entrypoint is done."""
    begun = measure.output_of(["docker", "run", "--detach", "--rm", name, "sleep", "infinity"])
    identity = begun.decode().strip()
    try:
        waiting = "while grep -q imagegen-entrypoint /proc/1/cmdline; do sleep 0.1; done"
        measure.output_of(["docker", "exec", identity, "sh", "-c", waiting])
        yield identity
    finally:
        measure.output_of(["docker", "rm", "--force", identity])


def report() -> list[str]:
    """Measure all three on the image and return the section of the page."""
    lines = ["## The static checks of one image, beside testinfra and container-structure-test", ""]
    chosen = image()
    if not chosen:
        return [*lines, f"No image `{IMAGE}` was found (`make build`): not measured.", ""]
    with container(chosen) as running, tempfile.TemporaryDirectory() as folder:
        return [*lines, *_measured(chosen, running, Path(folder)), ""]


def _measured(chosen: str, running: str, folder: Path) -> list[str]:
    inside = ["docker", "exec", running]
    expected = json.loads(measure.output_of([*inside, "cat", "/etc/imagegen/image.json"]))
    facts = static_facts.facts(expected)
    (folder / "test_image.py").write_text(static_peers.testinfra_file(facts))
    (folder / "image.json").write_text(static_peers.structure_file(facts))
    ran = _ran(measure.output_of([*inside, *STATIC, "--json", "-"]))
    without = ran - {check for fact in facts for check in fact.checks}
    if without:
        raise SystemExit(f"no fact stands for {', '.join(sorted(without))}")
    commands = _commands(chosen, running, folder)
    taken = measure.alternately(
        {name: lambda command=command: _held(command) for name, command in commands.items()}, RUNS
    )
    of_commands = sum(isinstance(fact, Command) for fact in facts)
    about = ABOUT.format(
        image=chosen,
        checks=len(ran),
        facts=len(facts),
        commands=of_commands,
        files=len(facts) - of_commands - 1,
        testinfra=version("pytest-testinfra"),
        structure=_structure_version(),
    )
    return [*about.splitlines(), "", *_table(taken), "", str(_target(taken))]


def _ran(report: bytes) -> set[str]:
    """Return the checks that were not skipped; all of them have to pass."""
    found = {one["id"]: one["outcome"] for one in json.loads(report)["checks"]}
    ran = {check for check, outcome in found.items() if outcome != "skipped"}
    bad = [check for check in ran if found[check] != "passed"]
    if bad:
        raise SystemExit(f"not an image to measure with: {', '.join(sorted(bad))}")
    return ran


def _commands(chosen: str, running: str, folder: Path) -> dict[str, list[str | Path]]:
    inside = ["docker", "exec", running]
    found: dict[str, list[str | Path]] = {
        "validate": [*inside, *STATIC],
        "testinfra": [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
            f"--rootdir={folder}", f"--hosts=docker://{running}", folder / "test_image.py",
        ],
        "torch": [*inside, "python3", "-c", "import torch"],
    }  # fmt: skip
    if program():
        found["structure"] = [
            program(), "test", "--image", chosen, "--config", folder / "image.json", "--quiet",
        ]  # fmt: skip
    return found


def _structure_version() -> str:
    if not program():
        return "(none was found; `STRUCTURE_TEST` may name one)"
    return measure.output_of([program(), "version"]).decode().strip()


def _table(taken: dict[str, measure.Seconds]) -> list[str]:
    """Write the table of the results; ratios are against `validate`."""
    torch = taken["torch"].wall
    ours = taken["validate"].wall
    lines = [
        "| | wall | ratio | without `import torch` | ratio |",
        "|---|---:|---:|---:|---:|",
        f"| `import torch` | {torch:.2f} s | | | |",
    ]
    for name, label in NAMES.items():
        if name in taken:
            wall = taken[name].wall
            lines.append(
                f"| {label} | {wall:.2f} s | {wall / ours:.1f} | {wall - torch:.2f} s | "
                f"{(wall - torch) / (ours - torch):.1f} |"
            )
    return lines


def _target(taken: dict[str, measure.Seconds]) -> Target:
    ours, torch = taken["validate"].wall, taken["torch"].wall
    tenth = taken["testinfra"].wall / TIMES
    ratios = {name: taken[name].wall / ours for name in NAMES if name in taken}
    del ratios["validate"]
    met = len(ratios) == len(NAMES) - 1 and min(ratios.values()) >= TIMES
    return Target(
        f"at least {TIMES} times faster than either",
        ", ".join(f"{ratio:.1f} times faster than {SHORT[name]}" for name, ratio in ratios.items()),
        met,
        "" if met else WHY.format(torch=torch, ours=ours, tenth=tenth),
    )


def _held(command: Sequence[str | Path]) -> None:
    """Run a contender's command. Raises SystemExit with its output if a fact does not hold."""
    end = subprocess.run(command, capture_output=True, text=True, check=False)
    if end.returncode:
        raise SystemExit(f"{command[0]}: exit code {end.returncode}\n{end.stdout}{end.stderr}")
