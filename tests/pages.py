"""The pages for users, taken apart: their fenced blocks, and the commands in these.

The first word after a fence is a language; a second word says where its commands run:

    sh                 without an engine: tests/unit/docs runs them
    sh engine          with the engine of this machine: tests/integration/docs runs them
    sh container       inside an image of the matrix `cpu`: tests/integration/docs runs them
    … not-run          nowhere in the tests; NOT_RUN says why
    … exit=CODE        its commands end with this exit code, not with 0
    yaml file=PATH     a file that the commands find

`console` has commands after `$ ` and what they print. `…` stands for any text of a line, a line of
`…` alone for any lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REPOSITORY = Path(__file__).parents[1]
PAGES = (
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
)
COMMANDS = ("sh", "console")
DATA = ("yaml", "python", "crontab", "dockerfile", "json", "text")
ENGINE, CONTAINER, NOT_RUN_HERE = "engine", "container", "not-run"

NOT_RUN = {
    "it installs what it names": (
        "pip install .",
        "pipx run --spec dist/imagegen-0.1.0-py3-none-any.whl imagegen --help",
        "uvx --from dist/imagegen-0.1.0-py3-none-any.whl imagegen --help",
        "imagegen doctor --fix",
    ),
    "the shell may be missing": (
        'eval "$(_IMAGEGEN_COMPLETE=zsh_source imagegen)"',
        "_IMAGEGEN_COMPLETE=fish_source imagegen | source",
    ),
    "it changes this checkout": (
        "pipx install pre-commit",
        "pre-commit install",
    ),
    "it opens a shell": ("imagegen build --matrix cpu debian12-none --until openmpi --shell",),
    "tests of its own run it, on smaller images": (
        "imagegen build --resume",
        "imagegen build --matrix cpu --ca-bundle corporate.pem",
        "imagegen build --matrix cpu --locked",
        "imagegen catalog refresh horovod",
        "imagegen catalog refresh --all --write",
        "imagegen check-sources --matrix cpu",
        "imagegen lock --matrix cpu",
        "imagegen nightly --matrix cpu --matrix debian-cu124 --to registry.example:5000/team",
        "imagegen publish --matrix cpu --to registry.example:5000/team",
        "imagegen validate --soft-roce cpu/debian12-rdma-core",
        "imagegen validate nvcr.io/nvidia/pytorch:24.05-py3",
        "imagegen validate --export validate.pyz",
        "imagegen validate --infer IMAGE > image.json",
        "python3 validate.pyz --expect image.json",
        "python3 validate.pyz --static",
        'docker run --rm -v "$PWD/validate.pyz:/validate.pyz:ro" IMAGE python3 /validate.pyz',
        "validate",
        "validate --benchmark --ranks 2",
        "validate --benchmark --ranks 2 --via ddp",
        "validate --benchmark --framework tensorflow",
        "validate --json report.json --junit report.xml",
    ),
    "it needs a cluster, a GPU or several machines": (
        "imagegen validate --hosts docker://trainer-0",
        "imagegen validate --hosts 'kubectl://trainer-0?namespace=team-a'",
        "imagegen validate --hosts ssh://root@node-1:2222",
        "mpirun -np 16 -H gpu1:8,gpu2:8 python3 /mnt/pytorch_synthetic_benchmark.py --model=vgg16",
        "validate --benchmark --ranks 8 --model resnet50 --batch-size 256 --length reference",
        "validate --peers worker-0,worker-1",
        "validate --require gpu=8,rdma",
        "validate --preflight",
        "validate --preflight --profile rdma --require gpu=8 --json preflight.json",
        "validate --preflight --peers worker-0,worker-1",
        "validate --bandwidth",
        "validate --bandwidth --ranks 4 --sizes 8..1G",
        "validate --bandwidth --peers worker-0,worker-1 --json bandwidth.json",
        "validate --bandwidth --save-reference reference.json",
        "validate --bandwidth --reference reference.json",
        "validate --peers worker-0,worker-1,worker-2,worker-3 --find-slow",
    ),
}
"""Why -> commands of the pages that no test of the pages runs. Their options are checked."""

_FENCE = re.compile(r"^```(.*)$")
_COMMENT = re.compile(r"\s+# .*$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `info` are the words after the fence."""

    page: Path
    line: int
    info: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def language(self) -> str:
        return self.info[0] if self.info else ""

    @property
    def where(self) -> frozenset[str]:
        """Where its commands run."""
        return frozenset(word for word in self.info[1:] if "=" not in word)

    @property
    def file(self) -> str:
        """The file that it is, relative to the folder of the commands; empty for none."""
        return self._value("file")

    @property
    def exit_code(self) -> int:
        """What its commands end with."""
        return int(self._value("exit") or 0)

    def _value(self, key: str) -> str:
        found = [word.partition("=")[2] for word in self.info if word.startswith(f"{key}=")]
        return found[0] if found else ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(REPOSITORY).as_posix()}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of a page, and what the page says that it prints; None where it says nothing."""

    block: Block
    text: str
    printed: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.block}: {self.text}"


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    info, found, began = None, list[str](), 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if info is None and fence:
            info, found, began = tuple(fence[1].split()), [], number
        elif info is not None and fence:
            yield Block(page, began, info, tuple(found))
            info = None
        else:
            found.append(line)


def commands(block: Block) -> Iterator[Command]:
    """The commands of a block, with what they print."""
    if block.language == "sh":
        for line in _joined(block.lines):
            text = _COMMENT.sub("", line).strip()
            if text and not text.startswith("#"):
                yield Command(block, text)
    elif block.language == "console":
        yield from _with_output(block)


def _with_output(block: Block) -> Iterator[Command]:
    text, printed = "", list[str]()
    for line in block.lines:
        if line.startswith("$ "):
            if text:
                yield Command(block, text, tuple(printed))
            text, printed = line[2:], []
        else:
            printed.append(line)
    yield Command(block, text, tuple(printed))


def _joined(lines: Sequence[str]) -> Iterator[str]:
    """The lines of a shell, those that end in a backslash as one with the next."""
    before = ""
    for line in lines:
        before += line
        if before.endswith("\\"):
            before = before[:-1]
        else:
            yield before
            before = ""


def every_command() -> list[Command]:
    return [one for page in PAGES for block in blocks(page) for one in commands(block)]


def not_run() -> set[str]:
    return {text for texts in NOT_RUN.values() for text in texts}


def write_files(page: Path, folder: Path) -> None:
    """Write the files that a page shows."""
    for block in blocks(page):
        if block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(block.lines) + "\n", encoding="utf-8")


def prints(said: Sequence[str], text: str) -> bool:
    """Whether a text is what a page says that a command prints."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…" else r".*".join(map(re.escape, line.split("…"))) + r" *\n"
        for line in said
    )
    return re.fullmatch(pattern, text if text.endswith("\n") else text + "\n") is not None
