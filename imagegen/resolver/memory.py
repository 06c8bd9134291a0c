"""Remember what functions find out about an object that never changes."""

from __future__ import annotations

from collections import defaultdict
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

P = ParamSpec("P")
S = TypeVar("S", bound="Remembering")
T = TypeVar("T")
R = TypeVar("R", bound="tuple[object, ...]")


class Remembering:
    """An object with the results of the functions that are `remembered`."""

    def __init__(self) -> None:
        self.results: defaultdict[Hashable, dict[Hashable, object]] = defaultdict(dict)


def remembered(find: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Call a function once for the same arguments; its first one remembers the result."""

    @wraps(find)
    def known(where: S, /, *about: P.args, **named: P.kwargs) -> T:
        results: dict[Hashable, T] = where.results[find]  # type: ignore[assignment]
        key: Hashable = (about, *named.items()) if named else about
        try:
            return results[key]
        except KeyError:
            return results.setdefault(key, find(where, *about, **named))

    return known


def remembered_of_rows(find: Callable[[S, R], T]) -> Callable[[S, R], T]:
    """Call a function of a tuple of rows once for the same rows, told apart by identity."""

    @wraps(find)
    def known(where: S, rows: R) -> T:
        results: dict[Hashable, tuple[R, T]] = where.results[find]  # type: ignore[assignment]
        key = tuple(map(id, rows))
        found = results.get(key)
        if found is None:
            found = results[key] = (rows, find(where, rows))  # the rows stay alive, and their ids
        return found[1]

    return known
