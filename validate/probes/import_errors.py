"""Explain why a framework does not import, from the last words of the loader or of Python."""

import os
import re
from typing import Dict, NamedTuple

from validate.probes.interpreter import Answer

Env = Dict[str, str]


class Why(NamedTuple):
    """Hold cause and remedy; both are empty if the message is of no known kind."""

    cause: str = ""
    remedy: str = ""


SLOW = Why(
    "the machine is loaded, or its disk is slow: that alone says nothing about the image",
    "validate   # again, when less runs beside it",
)

TOO_OLD = re.compile(r"(/\S+): version `([^']+)' not found \(required by ([^)]+)\)")
LIBRARY = r"(\S*lib[^\s:/]+\.so[^\s:]*)"
KNOWN = (
    (
        r"undefined symbol: nccl",
        "an older libnccl comes first",
        "unset LD_LIBRARY_PATH   # or put torch's own NCCL first",
    ),
    (
        r"(lib\S+\.so\S*): cannot open shared object",
        "{0} is not in the image",
        "apt-file search {0}   # and install it",
    ),
    (
        LIBRARY + r": (?:file too short|invalid ELF header|wrong ELF class)",
        "{0} is cut short, damaged, or of another processor",
        "imagegen build   # brings a whole one",
    ),
    (
        LIBRARY + r": cannot enable executable stack",
        "{0} asks for a stack that can be executed, which the C library refuses since glibc 2.41",
        "patchelf --clear-execstack $(find / -xdev -name {0})",
    ),
)


def why(answer: Answer, env: Env) -> Why:
    """Explain a failed answer; `env` is the environment of the process that was asked."""
    if answer.timed_out:
        return SLOW
    too_old = TOO_OLD.search(answer.problem)
    if too_old:
        return _too_old(env, *too_old.groups())
    if "No module named" in answer.problem and env.get("PYTHONPATH"):
        cause = "PYTHONPATH={} brings packages of another Python to the front"
        return Why(cause.format(env["PYTHONPATH"]), "unset PYTHONPATH")
    for pattern, cause, remedy in KNOWN:
        found = re.search(pattern, answer.problem)
        if found:
            return Why(cause.format(*found.groups()), remedy.format(*found.groups()))
    return Why()


def _too_old(env: Env, path: str, version: str, wanted_by: str) -> Why:
    """Explain that a library is too old for another one that is linked against it."""
    folder = os.path.dirname(path)
    if folder in env.get("LD_LIBRARY_PATH", "").split(":"):
        cause = "LD_LIBRARY_PATH brings {} to the front, which has no {}".format(path, version)
        return Why(cause, without(env, folder))
    cause = "{} was built for a newer system than this one: {} has no {}"
    remedy = "dpkg -S {}   # and install the build of its package for this distribution"
    name = os.path.basename(path)
    return Why(cause.format(wanted_by, name, version), remedy.format(wanted_by))


def without(env: Env, folder: str) -> str:
    """Return the command line that takes a folder out of LD_LIBRARY_PATH."""
    rest = [one for one in env.get("LD_LIBRARY_PATH", "").split(":") if one and one != folder]
    return "export LD_LIBRARY_PATH={}".format(":".join(rest)) if rest else "unset LD_LIBRARY_PATH"
