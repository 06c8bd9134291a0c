"""What `validate` has to know of components, as their component.yaml says it.

imagegen writes components.json from every component.yaml (imagegen/catalog/components_json.py).
"""

import io
import json
import os
from typing import Dict, NamedTuple, Tuple

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "components.json")


class ComponentChecks(NamedTuple):
    """A component: the place of its suite in a run (0: after all others, by name), short names of
    the suite, suites of others that hold for it too, the hardware that its live checks look at, and
    the module of validate/probes that starts before the checks are loaded."""

    order: int = 0
    short_names: Tuple[str, ...] = ()
    more_suites: Tuple[str, ...] = ()
    hardware: str = ""
    slow_probe: str = ""


def _read() -> Dict[str, ComponentChecks]:
    with io.open(FILE, encoding="utf-8") as file:
        said = json.load(file)
    return {name: ComponentChecks(**one) for name, one in said.items()}


COMPONENTS = _read()
