"""Read what is installed in a folder of Python: distributions, leftovers and links.

Names: PyPA specifications, "Recording installed projects" and "Name normalization"; site(3) for
`.pth` files. pip renames what it removes to a name with `~` first, and leaves it when it is killed.
"""

import ast
import os
import re
from typing import Dict, Iterator, List, NamedTuple, Tuple

from validate.probes.files import names, read

KINDS = (".dist-info", ".egg-info", ".egg-link")
METADATA = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}
MAPPING = re.compile(r"^MAPPING\b[^=]*= (\{.*\})$", re.MULTILINE)
"""Where the finder of an editable install keeps the folders that it leads to (setuptools)."""


class Distribution(NamedTuple):
    """Hold one installed distribution: its normalized name, its version and where it says so."""

    name: str
    version: str
    path: str

    @property
    def kind(self) -> str:
        """Return `.dist-info`, `.egg-info` or `.egg-link`."""
        return os.path.splitext(self.path)[1]


def normalized(name: str) -> str:
    """Return a name as it is compared: `jaraco.functools` and `Jaraco_Functools` are the same."""
    return re.sub(r"[-_.]+", "-", name).lower()


def in_folder(folder: str) -> List[Distribution]:
    """List the distributions that a folder says it has."""
    found = []
    for name in names(folder):
        stem, kind = os.path.splitext(name)
        if kind in KINDS and not name.startswith(("~", "-")):
            project, _, version = stem.partition("-")
            version = re.sub(r"-py\d.*$", "", version)
            found.append(Distribution(normalized(project), version, os.path.join(folder, name)))
    return found


def twice(found: List[Distribution]) -> List[List[Distribution]]:
    """List the distributions of which one folder has several, an editable install apart."""
    by_name: Dict[str, List[Distribution]] = {}
    for one in found:
        if one.kind != ".egg-link":
            by_name.setdefault(one.name, []).append(one)
    return [several for _, several in sorted(by_name.items()) if len(several) > 1]


def left_by_pip(folder: str) -> List[str]:
    """List what pip was removing when it was killed."""
    return [os.path.join(folder, name) for name in names(folder) if name.startswith("~")]


def hollow(found: List[Distribution]) -> List[str]:
    """List, in words, the distributions without metadata, or of which no module is there."""
    seen = []
    for one in found:
        file = METADATA.get(one.kind, "")
        if file and os.path.isdir(one.path) and not os.path.isfile(os.path.join(one.path, file)):
            seen.append("{} has no {}".format(one.path, file))
        modules = read(os.path.join(one.path, "top_level.txt")).split() if file else []
        beside = names(os.path.dirname(one.path)) if modules else []
        if modules and not any(_is_module(name, modules) for name in beside):
            seen.append("{} is there, its module `{}` is not".format(one.path, modules[0]))
    return seen


def _is_module(name: str, modules: List[str]) -> bool:
    if name.endswith((".dist-info", ".egg-info")):
        return False
    return any(one.partition("/")[0] == name.partition(".")[0] for one in modules)


def lost_links(folder: str) -> List[Tuple[str, str]]:
    """List (file, path) of `.egg-link`, `.pth` and editable installs that lead to what is gone."""
    return [
        (os.path.join(folder, name), path)
        for name in names(folder)
        for path in _leads_to(folder, name)
        if not os.path.exists(os.path.join(folder, path))
    ]


def _leads_to(folder: str, name: str) -> Iterator[str]:
    path = os.path.join(folder, name)
    if name.endswith(".egg-link"):
        yield from read(path).splitlines()[:1]
    elif name.endswith(".pth"):
        for line in read(path).splitlines():
            if line.strip() and not line.startswith(("#", "import ", "import\t")):
                yield line.strip()
    elif name.startswith("__editable__") and name.endswith("_finder.py"):
        for found in MAPPING.findall(read(path)):
            yield from _values(found)


def _values(text: str) -> List[str]:
    try:
        return [str(path) for path in dict(ast.literal_eval(text)).values()]
    except (ValueError, SyntaxError, TypeError):
        return []
