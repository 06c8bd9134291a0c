"""Say how a program that stands in for the right one of the same name is taken out of use."""

import os
from shlex import quote
from typing import List, Sequence, Tuple

from validate.fixtures import Situation
from validate.probes.aside import aside, export, one_line
from validate.probes.files import read, under
from validate.remedy import Remedy, in_shell

USUAL = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CHOICES = "/etc/alternatives/"
DATABASE = "/var/lib/dpkg/alternatives/"
FEW_LINKS = 8


def out_of_use(image: Situation, pairs: Sequence[Tuple[str, str]], home: str = "") -> Remedy:
    """Return the line that takes programs out of use: pairs of a wrong program and the right one.

    A folder that neither the recipe nor the distribution has on the PATH goes from it, except
    `home` and those of the right programs. A link of update-alternatives(1) gets the right program
    as its choice. Any other program gets another name, and a link to the right one its place.
    """
    path = image.env.get("PATH", "")
    kept = [*str(image.expected.env.get("PATH", "")).split(":"), *USUAL.split(":")]
    kept += [home, *(os.path.dirname(right) for _, right in pairs)]
    foreign = {os.path.dirname(wrong) for wrong, _ in pairs} - set(kept)
    lines: List[str] = []
    for wrong, right in pairs:
        if os.path.dirname(wrong) not in foreign:
            lines.append(_replaced(image, wrong, right))
    if foreign:
        rest = ":".join(folder for folder in path.split(":") if folder not in foreign)
        lines.append(export({"PATH": rest}))
    return in_shell(one_line(lines))


def _replaced(image: Situation, wrong: str, right: str) -> str:
    name = _choice(image.root, wrong)
    if right and name:
        line = "update-alternatives --install {0} {1} {2} 1000 && update-alternatives --set {1} {2}"
        if right in choices(image.root, name):
            line = "update-alternatives --set {1} {2}"
        return line.format(quote(wrong), name, quote(right))
    line = aside(image.root, wrong)
    return "{} && ln -s {} {}".format(line, quote(right), quote(wrong)) if right else line


def _choice(root: str, path: str) -> str:
    """Return the name in update-alternatives(1) by which a link leads on; empty without one."""
    for _ in range(FEW_LINKS):
        there = under(root, path)
        link = os.readlink(there) if os.path.islink(there) else ""
        name = link[len(CHOICES) :] if link.startswith(CHOICES) else ""
        if not link or (name and os.path.isfile(under(root, DATABASE + name))):
            return name
        path = os.path.join(os.path.dirname(path), link)
    return ""


def choices(root: str, name: str) -> List[str]:
    """List the programs that update-alternatives(1) offers for a name, and the links with them."""
    lines = read(under(root, DATABASE + name)).splitlines()
    return [line for line in lines if line.startswith("/")]
