"""Say how links to libraries that lead nowhere are mended."""

import os
from shlex import quote
from typing import List, Sequence

from validate.probes.dpkg import install_again, package_of
from validate.probes.files import under
from validate.remedy import Remedy, in_shell

CHOICES = "/etc/alternatives/"


def mended(root: str, paths: Sequence[str]) -> Remedy:
    """Return the line for links whose targets are not there.

    A link or a target of a package comes back with it, and update-alternatives(1) chooses another
    target for a link of its own. Any other link goes: it holds nothing but its target.
    """
    packages: List[str] = []
    lines: List[str] = []
    for path in paths:
        target = os.path.join(os.path.dirname(path), os.readlink(under(root, path)))
        owner = package_of(root, os.path.normpath(target))[0] or package_of(root, path)[0]
        if target.startswith(CHOICES):
            lines.append("update-alternatives --auto {}".format(quote(target[len(CHOICES) :])))
        elif owner:
            packages += [] if owner in packages else [owner]
        else:
            lines.append("rm {}".format(quote(path)))
    lines += ["ldconfig"] if lines else []
    return in_shell("; ".join(lines + ([install_again(*packages)] if packages else [])))
