"""List what shows the components of an image: packages, variables and libraries, from files."""

import os
import re
from typing import Dict, List, NamedTuple

from validate.probes.distributions import in_folder, normalized
from validate.probes.dlopen import LoaderPath
from validate.probes.files import names, read, under

DPKG_STATUS, DPKG_PARTS = "/var/lib/dpkg/status", "/var/lib/dpkg/status.d"
LARGEST = 1 << 26
LIBRARY = re.compile(r"lib.+\.so\.\d")


class Contents(NamedTuple):
    """Hold packages by name with their versions, libraries by path, and variables.

    `sites` are the folders of the image's Python packages.
    """

    env: Dict[str, str]
    wheels: Dict[str, str]
    debs: Dict[str, str]
    conda: Dict[str, str]
    libraries: List[str]
    sites: List[str]


def contents(root: str, env: Dict[str, str], sites: List[str], loader: LoaderPath) -> Contents:
    """List the contents of an image."""
    wheels: Dict[str, str] = {}
    conda: Dict[str, str] = {}
    for site in sites:
        for one in in_folder(site):
            wheels.setdefault(one.name, one.version)
        for name in names(os.path.join(site, "../../../conda-meta")):
            if name.endswith(".json") and name.count("-") >= 2:
                package, version, _ = name.rsplit("-", 2)
                conda.setdefault(normalized(package), version)
    paths = [os.path.join(f, name) for f in loader.folders for name in names(f)]
    libraries = [os.path.realpath(path) for path in paths if LIBRARY.match(os.path.basename(path))]
    return Contents(env, wheels, debs(root), conda, list(dict.fromkeys(libraries)), sites)


def debs(root: str) -> Dict[str, str]:
    """Map each installed package of dpkg to its whole version; images without dpkg list parts."""
    parts = under(root, DPKG_PARTS)
    texts = [read(os.path.join(parts, name)) for name in names(parts)]
    found = {}
    for stanza in "\n\n".join([read(under(root, DPKG_STATUS), LARGEST), *texts]).split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Status): (.*)$", stanza, re.MULTILINE))
        installed = fields.get("Status", "install ok installed").endswith(" installed")
        if installed and "Version" in fields:
            found[fields["Package"]] = fields["Version"]
    return found
