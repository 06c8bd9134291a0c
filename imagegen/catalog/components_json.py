"""Write what `validate` has to know of components into a file for the images.

`validate` runs where there is no component.yaml. `make generated` writes `validate/components.json`
again; a test compares it with the catalog.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from imagegen.model.catalog import Catalog, Component

FILE = "validate/components.json"
_AS_TEXT = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


def _for_checks(component: Component) -> dict[str, object]:
    settings = component.launch.settings
    return {**asdict(component.checks), "settings": [asdict(one) for one in settings]}


def components_json(catalog: Catalog) -> bytes:
    """Write the bytes of that file: `checks`, settings and `found_by` of each component.yaml.

    A component without checks is left out: then an overlay that adds it makes no image stale.
    """
    checks = {
        name: {key: value for key, value in _for_checks(one).items() if value}
        for name, one in catalog.components.items()
    }
    for name, one in catalog.components.items():
        clues = [{key: text for key, text in asdict(clue).items() if text} for clue in one.found_by]
        if checks[name] and clues:
            checks[name]["found_by"] = clues
    return orjson.dumps({name: one for name, one in checks.items() if one}, option=_AS_TEXT)
