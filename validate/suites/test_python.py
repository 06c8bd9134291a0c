"""Check the image's Python, which trains; `validate` runs in another one."""

import os
from typing import Dict

from validate.check import check, fail, skip, warn
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes import python_start
from validate.probes.aside import link_in_place
from validate.probes.import_errors import SLOW
from validate.probes.interpreter import DISTRO_DISTS, VERSION, ask, find_python
from validate.probes.other_programs import out_of_use
from validate.probes.pip import agreed, agrees, checked
from validate.probes.programs import find_program, interpreter_of
from validate.probes.sites import as_started
from validate.remedy import Remedy, in_image, in_shell

NAMES = ("python", "python3", "pip", "pip3")


def _target(image: Situation) -> str:
    return find_python(image.env, image.expected)


@check(
    "py.start",
    "the image's Python starts, and imports the modules that the image has",
    cause="a variable, a start-up file or a file in the working folder changes what it imports",
    remedy=in_shell("unset PYTHONHOME PYTHONPATH; cd /"),
)
def test_start(image: Situation, measure: Measure) -> None:
    """the recipe's interpreter as a script starts it, against `PYTHON -I`: PYTHON* variables, the
    working folder, sitecustomize, usercustomize, .pth files; which files hide modules of the
    standard library and of frameworks"""
    found = python_start.finding(image)
    measure("nothing comes before the image's own modules")
    if found.seen:
        (warn if found.harmless else fail)(found.seen, found.cause, found.remedy)


@check(
    "py.version",
    "the interpreter is the version that the recipe names",
    cause="another Python was installed over it, or the expectation file is of another image",
    remedy=in_image("imagegen build", look="update-alternatives --display python3"),
    needs=("py.start",),
)
def test_version(image: Situation, measure: Measure) -> None:
    """`PYTHON -c 'sys.version_info'` of the recipe's interpreter"""
    python = _target(image)
    answer = as_started(image)
    if "version" not in answer.facts:
        answer = ask(python, VERSION, image.env, 30)
    if not answer.ok:
        fail(answer.problem)
    version = str(answer.facts["version"])
    measure("{} at {}".format(version, python))
    if not same_version(image.expected.version("python"), version):
        fail(
            "{} is {}, the recipe says {}".format(python, version, image.expected.version("python"))
        )


@check(
    "py.single",
    "python, python3 and pip are all the same interpreter",
    cause="a second Python came first on PATH, as OFED and conda installers leave it",
)
def test_single(image: Situation, measure: Measure) -> None:
    """python and python3 on PATH, and the first line of pip and pip3, by real path; `python` is
    there too, because launch lines name it, but not in an image of another maker"""
    path, target = image.env.get("PATH", ""), _target(image)
    found = {name: find_program(name, path) for name in NAMES}
    found = {name: program for name, program in found.items() if program}
    measure("{} all run {}".format(", ".join(found), os.path.realpath(target)))
    used = {n: p if n.startswith("python") else interpreter_of(p, path) for n, p in found.items()}
    others = {name: python for name, python in used.items() if not _same(python, target)}
    if others:
        seen = ["{} runs {}".format(n, os.path.realpath(p)) for n, p in sorted(others.items())]
        text = "{}; the recipe's is {}"
        fail(
            text.format("; ".join(seen), os.path.realpath(target)),
            remedy=_first_again(image, {name: found[name] for name in others}),
        )
    if "python" not in found and not image.expected.inferred:
        text = "there is no `python` on {}, or it leads nowhere"
        line = link_in_place(image.root, "/usr/local/bin/python", target)
        fail(text.format(path), "it was removed, or the Python that it led to", in_shell(line))


def _same(python: str, target: str) -> bool:
    try:
        return os.path.samefile(python, target)
    except OSError:
        return False


def _first_again(image: Situation, wrong: Dict[str, str]) -> Remedy:
    """Return the line that lets names mean the recipe's Python again.

    A name in the folder of that Python is put right there. Other interpreters, with the pips that
    run in them, are taken out of use.
    """
    target = _target(image)
    home = os.path.dirname(target)
    beside = [program for program in wrong.values() if os.path.dirname(program) == home]
    if beside and all("python" in os.path.basename(program) for program in beside):
        links = [link_in_place(image.root, one, os.path.basename(target)) for one in beside]
        return in_shell("; ".join(links))
    pairs = [(program, target if n.startswith("python") else "") for n, program in wrong.items()]
    return out_of_use(image, sorted(pairs), home)


@check(
    "py.pip-check",
    "installed packages agree with one another about versions",
    severity="warn",
    cause="a package was installed with --no-deps, or another one was upgraded past it",
    needs=("py.start",),
)
def test_pip_check(image: Situation, measure: Measure) -> None:
    """Requires-Dist of all that is installed, as pip reads it; `PYTHON -m pip check` where they do
    not all agree; conflicts of packages of the distribution do not count"""
    if agrees(image):
        measure("no conflict")
        return
    result = checked(image)
    if "No module named pip" in result.err:
        skip("not-installed", "the image has no pip")
    measure("no conflict")
    if result.ok:
        return
    if result.timed_out:
        fail(result.says(), *SLOW)
    # The distribution keeps its packages consistent, whatever their Python metadata asks for.
    apart = ask(_target(image), DISTRO_DISTS, image.env, 30).facts.get("names", [])
    lines = [line for line in result.out.splitlines() if line.strip()]
    found = [line for line in lines if line.split()[0].lower() not in apart]
    measure("no conflict, {} packages of the distribution apart".format(len(apart)))
    if found or not lines:
        fail(
            "; ".join(found[:3]) or result.says(),
            remedy=agreed(_target(image), found),
        )
