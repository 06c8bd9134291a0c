"""Answer a request that cannot be satisfied: why, and what would fit, for people and programs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypedDict

from imagegen.errors import Problem
from imagegen.model.catalog import KNOWN_BAD

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NotRequired

    from imagegen.model.image import ImageSpec
    from imagegen.resolver.conflict import Conflict

EVERY_IMAGE, THE_REQUEST = "every image", "the request"
"""Who asks for constraints that are in no file."""


class ConflictData(TypedDict):
    """A conflict in the JSON answer; with `unknown`, no fact says that it fails.

    The `facts` prove that the `wants` do not go together; `rows` say where they stand.
    """

    text: str
    wants: list[str]
    facts: list[str]
    rows: list[str]
    unknown: bool


class AlternativeData(TypedDict):
    """An alternative in the JSON answer; `changes` are pairs of the old and the new constraint."""

    changes: dict[str, list[str]]
    pins: dict[str, str]
    command: str


class AnswerData(TypedDict):
    """The JSON answer to a request: `ok`, `exists`, `impossible` or `unbuildable` (with `why`)."""

    status: str
    pins: dict[str, str]
    image: str | None
    rows: NotRequired[dict[str, str]]
    cell: NotRequired[str | None]
    warnings: NotRequired[list[str]]
    why: NotRequired[list[str]]
    rests_on: NotRequired[dict[str, object]]
    conflicts: list[ConflictData]
    alternatives: list[AlternativeData]


@dataclass(frozen=True)
class Alternative:
    """Constraints that have an answer, with its pins.

    `changes` are (key, asked, instead). `spec` is the whole answer, for who prefers another one.
    """

    changes: tuple[tuple[str, str, str], ...]
    constraints: Mapping[str, str]
    distance: tuple[int, ...]
    pins: Mapping[str, str]
    spec: ImageSpec | None = field(default=None, compare=False, repr=False)

    @property
    def known_bad(self) -> bool:
        """Say whether it is a combination that is known to fail."""
        return self.spec is not None and any(KNOWN_BAD in text for text in self.spec.warnings)


@dataclass(frozen=True)
class Unbuilt:
    """An answer that fits by the facts, but that no template can build: its pins, and why."""

    pins: Mapping[str, str]
    why: tuple[str, ...]


@dataclass(frozen=True)
class Refusal:
    """Why a request has no answer, for people (`problems`) and for programs (`as_data`).

    `unknown` are problems of values that no release has. With `unbuilt` there are no conflicts.
    """

    unknown: tuple[Problem, ...]
    conflicts: tuple[Conflict, ...]
    alternatives: tuple[Alternative, ...]
    allow_unknown: bool = False
    unbuilt: Unbuilt | None = None

    @property
    def status(self) -> Literal["impossible", "unbuildable"]:
        """Return the word for it in an answer."""
        return "unbuildable" if self.unbuilt else "impossible"

    @property
    def text(self) -> str:
        """Say why in one line."""
        return "; ".join(self.unbuilt.why) if self.unbuilt else self.conflicts[0].text

    def problems(self, *, why: bool = False) -> tuple[Problem, ...]:
        """List the problems: what no release has, or the conflict, each with ready commands.

        `why` adds who asked for what, and the file and line of each fact.
        """
        ready = self._ready()
        if self.unbuilt:
            pins = ", ".join(f"{name} {value}" for name, value in self.unbuilt.pins.items())
            evidence = (*self.unbuilt.why, f"it would be: {pins}")
            return (Problem("it fits, but it cannot be built", evidence=evidence, hint=ready),)
        conflict, others = self.conflicts[0], self.conflicts[1:]
        hint = ready or "change one of them, or leave it open: `KEY=any`"
        if conflict.unknown:
            hint += "\n  or take the risk: `--allow-unknown`"
        if self.unknown:
            own = self.unknown[-1].hint
            meant = f"{own} " if own.startswith("did you mean") else ""
            last = replace(self.unknown[-1], hint=f"{meant}{hint}" if ready else own)
            return (*self.unknown[:-1], last)
        evidence = conflict.lines(but_of="" if why else THE_REQUEST, with_rows=why)
        for other in others:
            evidence += (f"also: {other.sentence}",) if why else (f"also: {other.text}",)
            evidence += other.lines(but_of=THE_REQUEST, with_rows=True) if why else ()
        return (Problem(conflict.sentence, evidence=evidence, hint=hint),)

    def _ready(self) -> str:
        """Write the alternatives as commands; empty where there is none."""
        ready = [
            ", ".join(f"{name} {new} for {old}" for name, old, new in one.changes)
            + f": {self._command(one)}"
            for one in self.alternatives
        ]
        return "instead, nearest first:\n  " + "\n  ".join(ready) if ready else ""

    def _command(self, instead: Alternative) -> str:
        return command(instead.constraints, allow_unknown=self.allow_unknown)

    def as_data(self) -> AnswerData:
        """Make the answer for `--format json`."""
        return {
            "status": self.status,
            "pins": dict(self.unbuilt.pins) if self.unbuilt else {},
            "image": None,
            "why": list(self.unbuilt.why) if self.unbuilt else [],
            "conflicts": [
                {
                    "text": one.text,
                    "wants": [f"{want.component} {want.constraint}" for want in one.wants],
                    "facts": [fact.text for fact in one.facts],
                    "rows": list(one.rows),
                    "unknown": one.unknown,
                }
                for one in self.conflicts
            ],
            "alternatives": [
                {
                    "changes": {name: [old, new] for name, old, new in one.changes},
                    "pins": dict(one.pins),
                    "command": self._command(one),
                }
                for one in self.alternatives
            ],
        }


def command(constraints: Mapping[str, str], *, allow_unknown: bool = False) -> str:
    """Write constraints as a command to run."""
    words = [shlex.quote(f"{name}={text}") for name, text in constraints.items()]
    return " ".join(["imagegen request", *words, *(["--allow-unknown"] if allow_unknown else [])])
