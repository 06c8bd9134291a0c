"""Say how a program that stands in for the right one of the same name is taken out of use."""

import os
from shlex import quote
from typing import List, Sequence, Tuple

from validate.fixtures import Situation
from validate.probes.aside import aside, export
from validate.probes.files import under
from validate.probes.programs import on_path
from validate.remedy import Remedy, in_shell

USUAL = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CHOICES = "/etc/alternatives/"
DATABASE = "/var/lib/dpkg/alternatives/"


def out_of_use(image: Situation, pairs: Sequence[Tuple[str, str]]) -> Remedy:
    """Return the line that takes programs out of use: pairs of a wrong program and the right one.

    A folder that neither the recipe nor the distribution has on the PATH goes from it. A link of
    update-alternatives(1) gets the right program as its choice. Any other program gets another
    name, and the right one its place if nothing else on the PATH leads to that.
    """
    path = image.env.get("PATH", "")
    kept = [*str(image.expected.env.get("PATH", "")).split(":"), *USUAL.split(":")]
    foreign = {os.path.dirname(wrong) for wrong, _ in pairs} - set(kept)
    lines: List[str] = []
    for wrong, right in pairs:
        if os.path.dirname(wrong) not in foreign:
            lines.append(_replaced(image, wrong, right, path))
    if foreign:
        rest = ":".join(folder for folder in path.split(":") if folder not in foreign)
        lines.append(export({"PATH": rest}))
    return in_shell("; ".join(lines))


def _replaced(image: Situation, wrong: str, right: str, path: str) -> str:
    there = under(image.root, wrong)
    link = os.readlink(there) if os.path.islink(there) else ""
    name = link[len(CHOICES) :]
    if right and link.startswith(CHOICES) and os.path.isfile(under(image.root, DATABASE + name)):
        line = "update-alternatives --install {0} {1} {2} 1000 && update-alternatives --set {1} {2}"
        if _offered(image.root, name, right):
            line = "update-alternatives --set {1} {2}"
        return line.format(quote(wrong), name, quote(right))
    line = aside(image.root, wrong)
    others = [one for one in on_path([os.path.basename(wrong)], path) if one != wrong]
    same = [one for one in others if os.path.realpath(one) == os.path.realpath(right)]
    return line if same or not right else "{} && ln -s {} {}".format(line, right, quote(wrong))


def _offered(root: str, name: str, program: str) -> bool:
    """Return whether a program is one of the choices already, with the links that go with it."""
    with open(under(root, DATABASE + name), encoding="utf-8") as file:
        return program in file.read().splitlines()
