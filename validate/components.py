"""Read what `validate` has to know of components, from components.json.

imagegen writes that file from every component.yaml (imagegen/catalog/components_json.py).
"""

import io
import json
import os
from typing import Any, Dict, List, NamedTuple, Tuple

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "components.json")


class Clue(NamedTuple):
    """Hold what shows a component in an image of any maker; imagegen/model/catalog.py has more.

    `kind` is `wheel`, `deb`, `conda`, `env`, `library` or `folder`; `name` is a glob; `version` a
    regular expression with one group.
    """

    kind: str
    name: str
    version: str = ""
    variant: str = ""
    value: str = ""


class ComponentChecks(NamedTuple):
    """Hold what the checks need to know of one component.

    `order` is the place of its suite in a run (0: after all others, by name). `short_names` are
    short names of the suite. `more_suites` are suites of other components that apply to it too.
    `hardware` is what its live checks look at. `slow_probe` is the module of validate/probes that
    starts before the checks are loaded. `before_job` says that its live checks belong to a
    preflight. `found_by` are the clues to it, the strongest first.
    `settings` are the variables that it reads, each with `name`, `kind` (flag, count, share),
    `default`, `least`, `most`, `means` and `of`.
    """

    order: int = 0
    short_names: Tuple[str, ...] = ()
    more_suites: Tuple[str, ...] = ()
    hardware: str = ""
    slow_probe: str = ""
    before_job: bool = False
    found_by: Tuple[Clue, ...] = ()
    settings: List[Dict[str, Any]] = []


def _read() -> Dict[str, ComponentChecks]:
    with io.open(FILE, encoding="utf-8") as file:
        said = json.load(file)
    return {name: _checks(one) for name, one in said.items()}


def _checks(said: Dict[str, Any]) -> ComponentChecks:
    clues = tuple(Clue(**one) for one in said.pop("found_by", []))
    return ComponentChecks(found_by=clues, **said)


COMPONENTS = _read()
