"""Explain why a framework does not import, from the last words of the loader or of Python."""

import os
import re
from shlex import quote
from typing import Callable, Dict, NamedTuple, Tuple

from validate.probes.aside import export, unset
from validate.probes.dpkg import lost_library, whole_again
from validate.probes.interpreter import Answer
from validate.remedy import Remedy, in_image, only_look

Env = Dict[str, str]


class Why(NamedTuple):
    """Hold cause and remedy; both are empty if the message is of no known kind."""

    cause: str = ""
    remedy: Remedy = Remedy()


SLOW = Why(
    "the machine is loaded, or its disk is slow: that alone says nothing about the image",
    only_look("validate   # again, when less runs beside it"),
)

TOO_OLD = re.compile(r"(/\S+): version `([^']+)' not found \(required by ([^)]+)\)")
LIBRARY = r"(\S*lib[^\s:/]+\.so[^\s:]*)"
KNOWN: Tuple[Tuple[str, str, Callable[[str], Remedy]], ...] = (
    (
        r"undefined symbol: (nccl\w+)",
        "an older libnccl, without {0}, comes first",
        lambda _: in_image("imagegen build", look="ldconfig -p | grep libnccl"),
    ),
    (
        r"(lib\S+\.so[^\s:]*): cannot open shared object",
        "{0} is not in the image, or not where the loader looks",
        lambda name: lost_library("/", name),
    ),
    (
        LIBRARY + r": (?:file too short|invalid ELF header|wrong ELF class)",
        "{0} is cut short, damaged, or of another processor",
        lambda path: whole_again("/", path),
    ),
    (
        LIBRARY + r": cannot enable executable stack",
        "{0} asks for a stack that can be executed, which the C library refuses since glibc 2.41",
        lambda _: in_image("imagegen build   # with a build of it that needs no such stack"),
    ),
)
"""What a message looks like, its cause, and the remedy for what the pattern finds."""


def why(answer: Answer, env: Env) -> Why:
    """Explain a failed answer; `env` is the environment of the process that was asked."""
    if answer.timed_out:
        return SLOW
    too_old = TOO_OLD.search(answer.problem)
    if too_old:
        return explain_version(env, *too_old.groups())
    if "No module named" in answer.problem and env.get("PYTHONPATH"):
        cause = "PYTHONPATH={} brings packages of another Python to the front"
        return Why(cause.format(env["PYTHONPATH"]), unset(["PYTHONPATH"]))
    if "undefined symbol: nccl" in answer.problem and env.get("LD_LIBRARY_PATH"):
        return Why("LD_LIBRARY_PATH brings an older libnccl", unset(["LD_LIBRARY_PATH"]))
    for pattern, cause, remedy in KNOWN:
        found = re.search(pattern, answer.problem)
        if found:
            return Why(cause.format(*found.groups()), remedy(found.group(1)))
    return Why()


def explain_version(env: Env, path: str, version: str, wanted_by: str) -> Why:
    """Explain that a library is too old for another one that is linked against it."""
    folder = os.path.dirname(path)
    if folder in env.get("LD_LIBRARY_PATH", "").split(":"):
        cause = "LD_LIBRARY_PATH brings {} to the front, which has no {}".format(path, version)
        return Why(cause, without(env, folder))
    cause = "{} was built for a newer system than this one: {} has no {}"
    remedy = in_image(
        "imagegen build   # with a build of it for this distribution",
        look="dpkg -S {}".format(quote(wanted_by)),
    )
    return Why(cause.format(wanted_by, os.path.basename(path), version), remedy)


def without(env: Env, folder: str) -> Remedy:
    """Return the command line that takes a folder out of LD_LIBRARY_PATH."""
    rest = [one for one in env.get("LD_LIBRARY_PATH", "").split(":") if one and one != folder]
    return export({"LD_LIBRARY_PATH": ":".join(rest)}) if rest else unset(["LD_LIBRARY_PATH"])
