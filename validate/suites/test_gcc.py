"""Check that `gcc` and `g++` start compilers of the release that the recipe chose."""

import os
from typing import List

from validate.check import check, fail
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes.aside import one_line
from validate.probes.dpkg import install_again
from validate.probes.other_programs import out_of_use
from validate.probes.programs import find_program
from validate.process import run
from validate.remedy import Remedy, in_shell

PROGRAMS = ("gcc", "g++")


@check(
    "gcc.version",
    "`gcc` and `g++` are of the release that the recipe names, by their own word",
    cause="the default compilers are of another release: extensions get another C++ ABI",
)
def test_version(image: Situation, measure: Measure) -> None:
    """`gcc -dumpfullversion -dumpversion` and `g++ -dumpfullversion -dumpversion`"""
    promised, path = image.expected.version("gcc"), image.env.get("PATH", "")
    found = {name: _version(image, find_program(name, path)) for name in PROGRAMS}
    measure(", ".join("{} {}".format(*pair) for pair in found.items()))
    missing = [name for name in PROGRAMS if not find_program(name, path)]
    if missing:
        packages = " ".join("{}-{}".format(name, _suffix(promised)) for name in missing)
        text = "{} not on PATH, the recipe says {}".format(" and ".join(missing), promised)
        fail(text, "they are not installed", in_shell(install_again(packages)))
    wrong = [name for name, version in found.items() if not same_version(promised, version)]
    if wrong:
        seen = ["{} {}".format(name, found[name] or "that says nothing") for name in wrong]
        text = "{}, the recipe says {}".format(", ".join(seen), promised)
        fail(text, remedy=_the_recipes(image, wrong, path))


def _the_recipes(image: Situation, wrong: List[str], path: str) -> Remedy:
    """Return the line after which these names start the compilers of the recipe's release."""
    suffix = _suffix(image.expected.version("gcc"))
    right = {name: "/usr/bin/{}-{}".format(name, suffix) for name in wrong}
    remedy = out_of_use(image, [(find_program(name, path), right[name]) for name in wrong])
    lost = [os.path.basename(one) for one in right.values() if not os.path.exists(one)]
    return in_shell(one_line([remedy, install_again(*lost)])) if lost else remedy


def _version(image: Situation, program: str) -> str:
    """Return the version of a compiler.

    Since GCC 7 `-dumpversion` prints only the major release. Older releases do not know
    `-dumpfullversion`, and print all of it for `-dumpversion`.
    """
    if not program:
        return ""
    result = run([program, "-dumpfullversion", "-dumpversion"], env=image.env)
    return result.out.strip() if result.ok else ""


def _suffix(version: str) -> str:
    """Return the release in the names of packages: `4.9`, since 5 the major release only."""
    major = version.partition(".")[0]
    return major if int(major) > 4 else ".".join(version.split(".")[:2])
