"""Check that a launch works as a user writes it, with no parameters of ours."""

import re
from typing import Dict, List, Tuple

from validate.check import check, fail
from validate.fixtures import Measure, Situation
from validate.probes import mpi
from validate.probes.dlopen import loader_path
from validate.probes.settings import Setting, foreign_settings, without_settings
from validate.process import Result, run
from validate.remedy import Remedy, at_launch, only_look

SECONDS = 60
MOST_TRIES = 4
OURS = "-mca pml ob1 -mca btl ^openib"


@check(
    "mpi.plain",
    "two ranks exchange messages with a plain `mpirun`, and in a session with its settings",
    tier="live",
    cause="no transport that Open MPI chooses by itself works in this container",
    needs=("mpi.prefix", "mpi.2rank", "os.tmp"),
)
def test_plain(image: Situation, measure: Measure) -> None:
    """`mpirun -np 2 --allow-run-as-root --oversubscribe` with a program that adds up 1 MiB by
    MPI_Allreduce, without `-mca`: what the environment and files set applies. Once more with what
    /etc/environment and start-up files of shells set besides. If it fails: without these settings,
    and with the parameters of the other checks"""
    prefix = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
    command = mpi.plain_launch(prefix, mpi.messages(_library(image)))
    found = foreign_settings(image.root, image.env, image.expected.env, prefix)
    result = run(command, SECONDS, image.env)
    measure("2 ranks added up 1 MiB")
    if not mpi.added_up(result):
        fail(_says(result), *_why(image, prefix, command, found))
    of_sessions = [one for one in found if one.of_sessions and one.reaches_mpi]
    if of_sessions:
        env = dict(image.env, **{one.name: one.value for one in of_sessions})
        result = run(command, SECONDS, env)
        if not mpi.added_up(result):
            cause = "in a session, not here: {}".format("; ".join(map(str, of_sessions)))
            fail(_says(result), cause, without_settings(of_sessions))
        measure("2 ranks added up 1 MiB, also with what sessions set")


def _library(image: Situation) -> str:
    lib_dir = str(image.expected.os.get("lib_dir", "/usr/lib"))
    loader = loader_path(image.root, image.env, lib_dir)
    found = [p for p in loader.starting_with("libmpi.so.") if re.search(r"libmpi\.so\.\d+$", p)]
    return found[0] if found else "libmpi.so"


def _why(
    image: Situation, prefix: str, command: List[str], found: List[Setting]
) -> Tuple[str, Remedy]:
    """Return cause and remedy: what works instead shows which of the settings does it."""
    ours = [one for one in found if one.reaches_mpi]
    here = [one for one in ours if one.in_environment]
    env = _environment_without(image.env, here)
    if here and mpi.added_up(run(command, SECONDS, env)):
        return _blamed("it works without it", _alone(image, command, here))
    messages = command[command.index("--oversubscribe") + 1 :]
    if not mpi.added_up(run(mpi.launch(prefix, 2, messages, env), SECONDS, env)):
        return "it fails with `{}` too".format(OURS), only_look(" ".join(command[:5]) + " hostname")
    if ours:
        return _blamed("it works with `{}`".format(OURS), ours)
    return "", at_launch("mpirun {} …".format(OURS))


def _alone(image: Situation, command: List[str], here: List[Setting]) -> List[Setting]:
    """Return the one setting without which it works, if there is one; else all of them."""
    for one in here[:MOST_TRIES] if len(here) > 1 else []:
        if mpi.added_up(run(command, SECONDS, _environment_without(image.env, [one]))):
            return [one]
    return here


def _blamed(how: str, found: List[Setting]) -> Tuple[str, Remedy]:
    text = "{}: {}" if len(found) == 1 else "{}: one of these does it: {}"
    return text.format(how, "; ".join(map(str, found))), without_settings(found)


def _environment_without(env: Dict[str, str], found: List[Setting]) -> Dict[str, str]:
    gone = {one.name for one in found if one.in_environment}
    return {name: value for name, value in env.items() if name not in gone}


def _says(result: Result) -> str:
    """Return what mpirun says in a sentence of its own, else how it ended."""
    said = [line.strip() for line in (result.err + "\n" + result.out).splitlines()]
    sentences = [line for line in said if line[:1].isupper() and line.endswith(".")]
    if result.timed_out or not (sentences or result.ok):
        return result.says()
    text = "`mpirun` ended with exit code {}: {}"
    return text.format(result.code, (sentences or ["the ranks have no right sum"])[0])
