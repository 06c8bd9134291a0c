"""Reuse rendered text for an image that differs only in values that its template does not read.

A template is a function of what it reads: the first value that it reads is always the same one, and
each next one depends on the values so far. So these reads make a tree, and an image with the same
values as an earlier one has the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

T = TypeVar("T")
Subjects = TypeVar("Subjects", bound=Mapping[str, object])

_MISSING = object()
_EVERYTHING = "\0"
"""The key for all of a mapping; no subject has a key of that name."""
_PLAIN = frozenset({str, int, bool, float, type(None)})
_Question = tuple[str, ...]  # the name of a subject, then attributes and keys


class _Node(Generic[T]):
    """One read with a node for each value, or the result at the end."""

    def __init__(self) -> None:
        self.question: _Question = ()
        self.answers: dict[Hashable, _Node[T]] = {}
        self.made: list[T] = []
        self.kept: list[object] = []
        """Values that are compared by identity: kept alive, so that no other object gets it."""


class Replay(Generic[T]):
    """Keeps what was made of subjects (objects, mappings), by the values read from them."""

    def __init__(self) -> None:
        self._trees: dict[Hashable, _Node[T]] = {}

    def made(self, name: Hashable, subjects: Subjects, make: Callable[[Subjects], T]) -> T:
        """Return what `make` makes of these subjects, or made of others with the same values read.

        `make` gets objects that note what it reads. Raises what `make` raises; a failure is not
        kept.
        """
        first = node = self._trees.setdefault(name, _Node())
        while node.question:
            answer: object = subjects
            for key in node.question:
                # As `_answer` does; most of the time of many images is spent here.
                if type(answer) is dict and key is not _EVERYTHING:
                    answer = answer.get(key, _MISSING)
                else:
                    answer = _read(answer, key)
            following = node.answers.get(answer if type(answer) is str else _token(answer))
            if following is None:
                break
            node = following
        if node.made:
            return node.made[0]
        asked: dict[_Question, object] = {}
        watched = {one: _watched((one,), each, asked) for one, each in subjects.items()}
        made = make(cast("Subjects", watched))  # these replace the subjects
        _keep(first, asked, made)
        return made


def _keep(node: _Node[T], asked: Mapping[_Question, object], made: T) -> None:
    for question, answer in asked.items():
        node.question = question
        token = _token(answer)
        if token not in node.answers:
            node.answers[token] = _Node()
            node.kept.append(answer)
        node = node.answers[token]
    node.made = [made]


def _token(answer: object) -> Hashable:
    kind = type(answer)
    if kind is str:
        return cast("str", answer)
    return (kind, answer) if kind in _PLAIN else id(answer)


def _answer(subject: object, path: _Question) -> object:
    for key in path:
        subject = _read(subject, key)
    return subject


def _read(subject: object, key: str) -> object:
    """Read a key of a mapping, or all of it, or an attribute of another object."""
    if isinstance(subject, Mapping):
        return subject if key is _EVERYTHING else subject.get(key, _MISSING)
    return getattr(subject, key, _MISSING)


def _watched(path: _Question, subject: object, asked: dict[_Question, object]) -> object:
    kind = WatchedMapping if isinstance(subject, Mapping) else WatchedObject
    return kind(path, subject, asked)


class _Watched:
    def __init__(self, path: _Question, subject: object, asked: dict[_Question, object]) -> None:
        self._path, self._subject, self._asked = path, subject, asked

    def _ask(self, key: str) -> object:
        answer = _answer(self._subject, (key,))
        if isinstance(answer, Mapping) and key is not _EVERYTHING:
            return WatchedMapping((*self._path, key), answer, self._asked)
        self._asked.setdefault((*self._path, key), answer)
        return answer


class WatchedMapping(_Watched, Mapping[str, object]):
    """A mapping that notes which of its keys are read."""

    def __getitem__(self, key: str) -> object:
        answer = self._ask(key)
        if answer is _MISSING:
            raise KeyError(key)
        return answer

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> Mapping[str, object]:
        return cast("Mapping[str, object]", self._ask(_EVERYTHING))


class WatchedObject(_Watched):
    """An object that notes which of its attributes are read."""

    def __getattr__(self, key: str) -> object:
        answer = self._ask(key)
        if answer is _MISSING:
            raise AttributeError(key)
        return answer
