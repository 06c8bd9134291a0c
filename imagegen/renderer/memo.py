"""What a template made once is not made again for another image that differs only unread.

A template is a function of what it reads: its first question is always the same one, and each next
one depends on the answers so far. So the questions make a tree, and an image that gives the same
answers as one before has the same text.
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
"""The key for all of a mapping: no subject has one of that name."""
_PLAIN = (str, int, bool, float, type(None))
_Question = tuple[str, ...]  # the name of a subject, then attributes and keys


class _Node(Generic[T]):
    """One question with a node for each answer, or what was made in the end."""

    def __init__(self) -> None:
        self.question: _Question = ()
        self.answers: dict[Hashable, _Node[T]] = {}
        self.made: list[T] = []
        self.kept: list[object] = []
        """Answers that are told apart by their identity, which must not be given to another."""


class Replay(Generic[T]):
    """What was made of subjects (objects, and mappings), told apart by what was read of them."""

    def __init__(self) -> None:
        self._trees: dict[Hashable, _Node[T]] = {}

    def made(self, name: Hashable, subjects: Subjects, make: Callable[[Subjects], T]) -> T:
        """What `make` makes of these subjects, or made of others that read the same to it.

        `make` gets the subjects watched. Raises what it raises; that is not kept.
        """
        first = node = self._trees.setdefault(name, _Node())
        while node.question:
            following = node.answers.get(_token(_answer(subjects, node.question)))
            if following is None:
                break
            node = following
        if node.made:
            return node.made[0]
        asked: dict[_Question, object] = {}
        watched = {one: _watched((one,), each, asked) for one, each in subjects.items()}
        made = make(cast("Subjects", watched))  # they stand in for the subjects
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
    return (type(answer), answer) if isinstance(answer, _PLAIN) else id(answer)


def _answer(subject: object, path: _Question) -> object:
    for key in path:
        if isinstance(subject, (dict, Mapping)):  # a dict is told at once
            subject = subject if key is _EVERYTHING else subject.get(key, _MISSING)
        else:
            subject = getattr(subject, key, _MISSING)
    return subject


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
    """A mapping that notes which keys are read."""

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
    """An object that notes which attributes are read."""

    def __getattr__(self, key: str) -> object:
        answer = self._ask(key)
        if answer is _MISSING:
            raise AttributeError(key)
        return answer
