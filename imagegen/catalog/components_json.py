"""What `validate` has to know of components, as the file that travels with it into the images.

`validate` runs where there is no component.yaml. `make generated` writes `validate/components.json`
anew; a test holds it to the catalog.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from imagegen.model.catalog import Catalog

FILE = "validate/components.json"
_AS_TEXT = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


def components_json(catalog: Catalog) -> bytes:
    """The bytes of that file: component -> what its component.yaml says under `checks`."""
    said = {
        name: {key: value for key, value in asdict(one.checks).items() if value}
        for name, one in catalog.components.items()
    }
    return orjson.dumps(said, option=_AS_TEXT)
