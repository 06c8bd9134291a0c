"""Compose lines for a shell that take something out of use and keep it, so that it can come back.

A file gets another name beside it: `disabled.libmpi.so.40`. Nothing that is called so is found by
the loader, by ldconfig (which looks at `lib*.so*`), by a shell or by Python.
"""

import os
from shlex import quote
from typing import Dict, Iterable, List

from validate.probes.dpkg import package_of
from validate.probes.files import DISABLED, names, under
from validate.remedy import RELAUNCH, Remedy, in_shell


def renamed(path: str) -> str:
    """Return the name under which a file is kept."""
    folder, name = os.path.split(path)
    return os.path.join(folder, DISABLED + name)


def aside(root: str, path: str) -> str:
    """Return the line that gives a file another name; one of a package is diverted.

    dpkg-divert(1) holds also when the package is upgraded. `dpkg-divert --rename --remove PATH`
    takes it back.
    """
    package, listed = package_of(root, path)
    if not package:
        return "mv {} {}".format(quote(path), quote(renamed(path)))
    line = "dpkg-divert --add --rename --divert {} {}"
    return line.format(quote(renamed(listed)), quote(listed))


def same_file(root: str, path: str) -> List[str]:
    """List all names in the folder of a file that lead to it: itself, and links such as `.so`."""
    folder, real = os.path.dirname(path), os.path.realpath(under(root, path))
    there = [os.path.join(folder, name) for name in names(under(root, folder))]
    return [one for one in there if os.path.realpath(under(root, one)) == real] or [path]


def link_in_place(root: str, path: str, target: str) -> str:
    """Return the line that makes a path a link; what is there now gets another name."""
    line = "ln -s {} {}".format(quote(target), quote(path))
    if not os.path.lexists(under(root, path)):
        return line
    return "mv {} {} && {}".format(quote(path), quote(renamed(path)), line)


def library_aside(root: str, *paths: str) -> Remedy:
    """Return the line that takes libraries off the loader's path, with the links to them."""
    every = [name for path in paths for name in same_file(root, path)]
    lines = [aside(root, one) for one in dict.fromkeys(every)]
    return in_shell("; ".join([*lines, "ldconfig"]))


def without_line(file: str, line: str) -> str:
    """Return the line that turns a line of a settings file into a comment."""
    return "sed -i -E 's|^ *(include +)?{}/* *$|# &|' {}".format(pattern(line), quote(file))


def pattern(text: str) -> str:
    """Return a text as an extended regular expression of sed, in a command delimited by `|`."""
    return "".join("\\" + char if char in "\\.*[]^$|+?(){}" else char for char in text)


def one_line(lines: Iterable[str]) -> str:
    """Join lines for a shell; ldconfig runs once, at the end, and only the last comment stays."""
    found, cache, comment = [], False, ""
    for line in lines:
        text, mark, note = line.partition("   # ")
        comment = mark + note or comment
        if text.endswith("; ldconfig"):
            text, cache = text[: -len("; ldconfig")], True
        found.append(text)
    return "; ".join(found + (["ldconfig"] if cache else [])) + comment


def export(values: Dict[str, str]) -> Remedy:
    """Return the line that sets variables in a shell, and says how all processes get them."""
    pairs = ["{}={}".format(name, quote(value)) for name, value in values.items()]
    text = "export {}   # at launch: docker run -e {} IMAGE"
    return in_shell(text.format(" ".join(pairs), " -e ".join(pairs))).leads_to(RELAUNCH)


def unset(variables: Iterable[str], more: str = "") -> Remedy:
    """Return the line that removes variables in a shell, and says how all processes lose them.

    The entrypoint wrote them into /etc/environment, for sessions of SSH: there they become
    comments. `docker run -e NAME` without a value takes a variable away that the image sets.
    """
    listed = list(variables)
    lines = ["unset " + " ".join(listed), *filter(None, [more])]
    if OF_SESSIONS not in more:
        lines.append("sed -i -E 's/^({})=/# &/' {}".format("|".join(listed), OF_SESSIONS))
    outside = " ".join("-u " + name for name in listed)
    inside = " ".join("-e " + name for name in listed)
    text = "{}   # at launch: env {} docker run {} IMAGE"
    return in_shell(text.format("; ".join(lines), outside, inside)).leads_to(RELAUNCH)


OF_SESSIONS = "/etc/environment"
TAKEN_OUT = "/run/imagegen/taken-out"
"""A folder of the container, for root alone."""


def moved_out(paths: Iterable[str]) -> str:
    """Return the line that takes files out of the folders of the image, and keeps them."""
    line = "mkdir -p -m 0700 {0} && mv --backup=numbered {1} {0}/"
    return line.format(TAKEN_OUT, " ".join(map(quote, paths)))
