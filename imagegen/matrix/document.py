"""Define the types of a matrix file, after `config.schemas` has accepted it.

A test checks that the keys here are those of the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from imagegen.config.document import Document

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NotRequired

    from imagegen.model.cell import BaseMode


class OmitData(TypedDict):
    """The cells that do not have a component, by their axes, and the reason."""

    when: Mapping[str, str]
    reason: str


class WantData(TypedDict):
    """A constraint that does not hold for every cell."""

    want: str
    omit: NotRequired[list[OmitData]]


class MatrixData(TypedDict):
    """A matrix file. A row of `include` may have a `tag`, one of `exclude` has a `reason`."""

    name: str
    title: NotRequired[str]
    tag: str
    profile: NotRequired[str]
    base: NotRequired[BaseMode]
    axes: Mapping[str, list[str]]
    components: Mapping[str, str | WantData]
    defaults: NotRequired[Mapping[str, str]]
    include: NotRequired[list[Mapping[str, str]]]
    exclude: NotRequired[list[Mapping[str, str]]]
    notes: NotRequired[list[str]]
    env: NotRequired[Mapping[str, str]]
    user: NotRequired[Mapping[str, str]]
    allow_unknown: NotRequired[bool]
    size_budget: NotRequired[Mapping[str, str]]
    owner: NotRequired[str]
    expires: NotRequired[str]


MatrixDocument = Document[MatrixData]


def wanted(constraint: str | WantData) -> str:
    """Return the constraint itself, without its exceptions."""
    return constraint if isinstance(constraint, str) else constraint["want"]


def omissions(constraint: str | WantData) -> list[OmitData]:
    """Return the exceptions of a constraint: the cells that do not have the component."""
    return [] if isinstance(constraint, str) else constraint.get("omit", [])
