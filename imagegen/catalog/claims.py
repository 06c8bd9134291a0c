"""Check what only one component may have: a role, a request key, a transport, a suite's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from imagegen.model.catalog import Component


def double_claims(components: Mapping[str, Component]) -> Iterator[Problem]:
    """Report what two components have, and a component's name that has another meaning too."""
    owners: dict[tuple[str, str], str] = {}
    for name in components:
        owners["request key", name] = owners["suite name", name] = name
    for component in components.values():
        for kind, word in _claims(component):
            owner = owners.setdefault((kind, word), component.name)
            if owner != component.name:
                yield Problem(
                    f"{kind} `{word}` belongs to `{owner}` already",
                    file=component.file,
                    hint=f"take it out here, or in {components[owner].file}",
                )


def _claims(component: Component) -> Iterator[tuple[str, str]]:
    words: dict[str, Iterable[str]] = {
        "role": [component.role] if component.role else [],
        "request key": component.request.keys,
        "transport": component.launch.transports,
        "acceleration": component.launch.accels,
        "suite name": component.checks.short_names,
    }
    return ((kind, word) for kind, all_ in words.items() for word in all_)
