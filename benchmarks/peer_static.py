"""One image, its static facts: `validate --static`, testinfra's docker backend, and
container-structure-test."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import measure
import static_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from static_facts import Fact

IMAGE = "imagegen/cpu:debian12-*-rdma-core"
RUNS = 3

NAMES = {
    "validate": "`validate --static`",
    "testinfra": "testinfra, docker backend",
    "structure": "container-structure-test",
}

ABOUT = """\
The image `{image}`, {checks} static checks of `validate`; {facts} facts of them written for the
peers, one command or file each, of which {imports} import torch, as `validate` does once. Ours and
testinfra's {testinfra} work in one container that runs already, ours by `docker exec`,
process start included; container-structure-test {structure} starts a container for each
command. All facts held, in each run of each of them. `validate` also looks at more than the peers'
lines do: all libraries for `os.ldcache`, all files for `os.secrets`. Wall seconds: what runs in
containers is not a child of this process. Without `import torch` is without what
`docker exec … python3 -c 'import torch'` took in the same turn, once for us and {imports} times for
the others: what the tool itself costs."""

TESTINFRA = '''\
def test_{number}(host):
    """{check}"""
    {body}
'''


def image() -> str:
    """`$STATIC_IMAGE`, or the first that the matrix `cpu` built; empty for none."""
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
    """`$STRUCTURE_TEST`, or container-structure-test beside this Python or on PATH; empty for
    none."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("container-structure-test", path=path)
    return os.environ.get("STRUCTURE_TEST") or found or ""


@contextlib.contextmanager
def container(name: str) -> Iterator[str]:
    """One that runs, its entrypoint done."""
    begun = measure.output_of(["docker", "run", "--detach", "--rm", name, "sleep", "infinity"])
    identity = begun.decode().strip()
    try:
        waiting = "while grep -q imagegen-entrypoint /proc/1/cmdline; do sleep 0.1; done"
        measure.output_of(["docker", "exec", identity, "sh", "-c", waiting])
        yield identity
    finally:
        measure.output_of(["docker", "rm", "--force", identity])


def testinfra_file(facts: Sequence[Fact]) -> str:
    """A test file in testinfra's own words."""
    return "import re\n\n\n" + "\n\n".join(
        TESTINFRA.format(number=number, check=fact.check, body=_assertion(fact))
        for number, fact in enumerate(facts)
    )


def _assertion(fact: Fact) -> str:
    if not fact.path:
        return f"assert re.search({fact.wants!r}, host.run({fact.command!r}).stdout.strip())"
    there = f"host.file({fact.path!r})"
    return f"assert {there}.contains({fact.wants!r})" if fact.wants else f"assert {there}.exists"


def structure_file(facts: Sequence[Fact]) -> str:
    """The same for container-structure-test; JSON is YAML."""
    commands = [
        {
            "name": f"{number} {fact.check}",
            "command": "sh",
            "args": [
                "-c",
                f"{fact.command} | tr '\\n' '~'" if fact.wants == "^$" else fact.command,
            ],
            "expectedOutput": [fact.wants if fact.wants == "^$" else f"(?m){fact.wants}"],
        }
        for number, fact in enumerate(facts)
        if fact.command
    ]
    files = [fact for fact in facts if fact.path]
    return json.dumps(
        {
            "schemaVersion": "2.0.0",
            "commandTests": commands,
            "fileExistenceTests": [
                {"name": f.check, "path": f.path, "shouldExist": True} for f in files if not f.wants
            ],
            "fileContentTests": [
                {"name": f.check, "path": f.path, "expectedContents": [re.escape(f.wants)]}
                for f in files
                if f.wants
            ],
        }
    )


def report() -> list[str]:
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
    (folder / "test_image.py").write_text(testinfra_file(facts))
    (folder / "image.json").write_text(structure_file(facts))
    done = json.loads(measure.output_of([*inside, "validate", "--static", "--json", "-"]))
    commands: dict[str, list[str | Path]] = {
        "validate": [*inside, "validate", "--static"],
        "testinfra": [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
            f"--rootdir={folder}", f"--hosts=docker://{running}", folder / "test_image.py",
        ],
        "torch": [*inside, "python3", "-c", "import torch"],
    }  # fmt: skip
    if program():
        commands["structure"] = [
            program(), "test", "--image", chosen, "--config", folder / "image.json", "--quiet",
        ]  # fmt: skip
    taken = measure.alternately(
        {name: lambda command=command: _held(command) for name, command in commands.items()}, RUNS
    )
    ran = [one for one in done["checks"] if one["outcome"] != "skipped"]
    imports = sum("import torch" in one.command or "horovod.torch" in one.command for one in facts)
    about = ABOUT.format(
        image=chosen,
        checks=len(ran),
        facts=len(facts),
        imports=imports,
        testinfra=version("pytest-testinfra"),
        structure=_structure_version(),
    )
    return [*about.splitlines(), "", *_table(taken, imports)]


def _structure_version() -> str:
    if not program():
        return "(none was found; `STRUCTURE_TEST` may name one)"
    return measure.output_of([program(), "version"]).decode().strip()


def _table(taken: dict[str, measure.Seconds], imports: int) -> list[str]:
    """Ratios are against `validate`."""
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
            alone = wall - torch * (1 if name == "validate" else imports)
            lines.append(
                f"| {label} | {wall:.2f} s | {wall / ours:.1f} | {alone:.2f} s | "
                f"{alone / (ours - torch):.1f} |"
            )
    return lines


def _held(command: Sequence[str | Path]) -> None:
    """Raises SystemExit with what it said where a fact does not hold."""
    end = subprocess.run(command, capture_output=True, text=True, check=False)
    if end.returncode:
        raise SystemExit(f"{command[0]}: exit code {end.returncode}\n{end.stdout}{end.stderr}")
