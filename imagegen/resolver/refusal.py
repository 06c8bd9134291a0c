"""Answer a request that cannot be satisfied: why, and what would fit, for people and programs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

from imagegen.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NotRequired

    from imagegen.model.cell import Want
    from imagegen.model.release import Release
    from imagegen.resolver.alternatives import Alternative
    from imagegen.resolver.conflict import Conflict

    Keys = Mapping[str, tuple[str, str]]

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
    """The JSON answer to a request: `ok`, `exists` or `impossible`."""

    status: str
    pins: dict[str, str]
    image: str | None
    rows: NotRequired[dict[str, str]]
    cell: NotRequired[str | None]
    warnings: NotRequired[list[str]]
    conflicts: list[ConflictData]
    alternatives: list[AlternativeData]


@dataclass(frozen=True)
class Refusal:
    """Why a request has no answer, for people (`problems`) and for programs (`as_data`).

    `unknown` are problems of values that no release has. `keys` are the keys of a request that are
    no component's name, as in the catalog.
    """

    unknown: tuple[Problem, ...]
    conflicts: tuple[Conflict, ...]
    alternatives: tuple[Alternative, ...]
    keys: Keys
    allow_unknown: bool = False

    def problems(self, *, why: bool = False) -> tuple[Problem, ...]:
        """List the problems: what no release has, or the conflict, each with ready commands.

        `why` adds who asked for what, and the file and line of each fact.
        """
        conflict, others = self.conflicts[0], self.conflicts[1:]
        ready = [
            ", ".join(f"{name} {new} for {old}" for name, old, new in one.changes)
            + f": {self._command(one)}"
            for one in self.alternatives
        ]
        hint = "change one of them, or leave it open: `KEY=any`"
        if ready:
            hint = "instead, nearest first:\n  " + "\n  ".join(ready)
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

    def _command(self, instead: Alternative) -> str:
        return command(instead.wants, self.keys, allow_unknown=self.allow_unknown)

    def as_data(self) -> AnswerData:
        """Make the answer for `--format json`."""
        return {
            "status": "impossible",
            "pins": {},
            "image": None,
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
                    "pins": pins_of(one.chosen),
                    "command": self._command(one),
                }
                for one in self.alternatives
            ],
        }


def command(wants: Sequence[Want], keys: Keys, *, allow_unknown: bool = False) -> str:
    """Write constraints as a command to run."""
    asked = [(want.component, want.constraint) for want in wants if not _implied(want)]
    for key, (component, variant) in keys.items():
        own = [text for name, text in asked if name == component]
        if variant in own and len(own) > 1:
            kept = [one for one in asked if one != (component, variant)]
            asked = [(key if name == component else name, text) for name, text in kept]
    words = dict.fromkeys(shlex.quote(f"{name}={text}") for name, text in asked)
    flag = ["--allow-unknown"] if allow_unknown else []
    return " ".join(["imagegen request", *words, *flag])


def _implied(want: Want) -> bool:
    return want.asked_by == EVERY_IMAGE or want.asked_by.endswith("by default")


def pins_of(chosen: Mapping[str, Release]) -> dict[str, str]:
    """Map the components (and `os`) of a search result to their versions."""
    return {name: row.version for name, row in chosen.items() if row.file and row.origin}
