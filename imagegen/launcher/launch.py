"""Make what starts a training from its description, or refuse what the image cannot do."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from imagegen.errors import ConfigError, Problem
from imagegen.launcher.arena import arena
from imagegen.launcher.description import NONE, SOCKETS
from imagegen.launcher.docker import docker
from imagegen.launcher.horovodrun import horovodrun
from imagegen.launcher.mpijob import mpijob
from imagegen.launcher.mpirun import mpirun
from imagegen.launcher.sbatch import interface, sbatch
from imagegen.launcher.torchrun import torchrun
from imagegen.launcher.trainjob import starts_itself, trainjob
from imagegen.launcher.variables import setting_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from imagegen.launcher.description import Description, Launched
    from imagegen.model.launch import Flag

FORMS: Mapping[str, Callable[[Description], Launched]] = {
    "docker": docker,
    "mpirun": mpirun,
    "torchrun": torchrun,
    "horovodrun": horovodrun,
    "mpijob": mpijob,
    "trainjob": trainjob,
    "arena": arena,
    "sbatch": sbatch,
}
"""What each value of `--as` is made by."""

BY_MPI = ("mpirun", "horovodrun", "arena", "mpijob")
"""The forms whose ranks mpirun starts."""
ONE_CONTAINER = ("docker",)
"""The forms that start no ranks."""
NEED_HOSTS = ("mpirun", "horovodrun", "torchrun")
"""The forms that have to name the other nodes."""

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
LONGEST_NAME = 48
"""The most characters of the name of a job: with `-launcher` and more, 63 is the limit of DNS."""


def launched(description: Description) -> Launched:
    """Make the command, the manifest or the script of a launch.

    Raises ConfigError with everything that the image or the description lacks.
    """
    problems = tuple(_problems(description))
    if problems:
        raise ConfigError(*problems)
    return FORMS[description.form](description)


def explained(made: Launched) -> list[str]:
    """Write the reason of each argument: what it does, what happens without it, its source."""
    inner = [f"in it: {flag.text}" for flag in made.inner]
    texts = [*(flag.text for flag in made.flags), *inner, *(flag.text for flag in made.around)]
    flags = [*made.flags, *made.inner, *made.around]
    width = min(40, max((len(text) for text in texts), default=0))
    return [_line(text, flag, width) for text, flag in zip(texts, flags, strict=True)]


def _line(text: str, flag: Flag, width: int) -> str:
    reason = flag.reason
    more = f"without it: {reason.without}; source: {reason.source}"
    return f"# {text:<{width}}  # {reason.why}; {more}"


def _problems(description: Description) -> Iterator[Problem]:
    every = description.launches.items()
    transports = {way: name for name, one in every for way in one.transports}
    accels: dict[str, list[str]] = {}
    for name, one in every:
        for way in (*one.accels, *one.replaces):
            accels.setdefault(way, []).append(name)
    yield from _unknown(description.transport, "transport", [SOCKETS, *sorted(transports)])
    yield from _unknown(description.accel, "acceleration", [NONE, *sorted(accels)])
    needed = [transports[description.transport]] if description.transport in transports else []
    ways = [*transports.items()]
    yield from _lacks(description, needed, "transport", description.transport, ways)
    if description.form not in ONE_CONTAINER:
        pairs = [(way, name) for way, names in accels.items() for name in names]
        needed = accels.get(description.accel, [])
        yield from _lacks(description, needed, "acceleration", description.accel, pairs)
        yield from _lacks_for_ranks(description)
        yield from setting_problems(description)
    yield from _of_form(description)
    yield from _values(description)


def _unknown(asked: str, what: str, known: list[str]) -> Iterator[Problem]:
    if asked not in known:
        near = get_close_matches(asked, known, 1)
        yield Problem(
            f"there is no {what} `{asked}`",
            evidence=(f"known: {', '.join(known)}",),
            hint=f"did you mean `{near[0]}`?" if near else "choose one of them",
        )


def _lacks(
    description: Description, needed: list[str], what: str, asked: str, ways: list[tuple[str, str]]
) -> Iterator[Problem]:
    """Report the component that a transport or an acceleration needs and the image lacks."""
    if needed and not set(needed) & set(description.components):
        pairs = sorted(description.components.items())
        has = ", ".join(f"{name} {version}" for name, version in pairs)
        can = sorted({way for way, name in ways if name in description.components})
        instead = [*can, SOCKETS if what == "transport" else NONE]
        yield Problem(
            f"{what} `{asked}` needs component `{needed[0]}`, which the image does not have",
            evidence=(f"image: {description.image}", f"it has: {has or 'nothing'}"),
            hint=f"choose an image with `{needed[0]}`, or {what} `{'` or `'.join(instead)}`",
        )


def _lacks_for_ranks(description: Description) -> Iterator[Problem]:
    image = (f"image: {description.image}",)
    if description.form in BY_MPI and not description.program:
        starters = " or ".join(f"`{n}`" for n, one in description.launches.items() if one.program)
        text = f"the image has no {starters}, so no `mpirun` either"
        yield Problem(text, evidence=image, hint="choose another image")
    if description.device != "gpu" and description.transport != SOCKETS:
        text = f"transport `{description.transport}` is NCCL's, and a CPU image trains through MPI"
        yield Problem(text, evidence=image, hint="choose transport `sockets`")
    if not description.script:
        text = "the image has no benchmark, and there is no script to run"
        yield Problem(text, evidence=image, hint="name the script: `-- train.py --epochs 1`")
    if description.nodes > 1 and description.accel == NONE:
        yield Problem(
            f"ranks on {description.nodes} nodes would train alone: there is no acceleration",
            evidence=image,
            hint=_accels_of(description),
        )


def _accels_of(description: Description) -> str:
    every = description.launches.items()
    here = [one for name, one in every if name in description.components]
    ways = sorted({way for one in here for way in (*one.accels, *one.replaces)})
    return f"choose `--accel {' or '.join(ways)}`" if ways else "choose an image that has one"


def _of_form(description: Description) -> Iterator[Problem]:
    form, named = description.form, len(description.hosts)
    if form in NEED_HOSTS and description.nodes > 1 and not named:
        text = f"{form} has to know the names of the {description.nodes} nodes"
        yield Problem(text, hint="name them: `--hosts node-1,node-2`")
    if form in ("torchrun", "horovodrun") and description.starter(form) is None:
        owners = [
            name
            for name, one in description.launches.items()
            if form in {starter.form for starter in one.starters}
        ]
        yield Problem(
            f"the image has no `{form}`, which comes with {' or '.join(owners)}",
            evidence=(f"image: {description.image}",),
            hint="choose another `--as`, such as `mpirun`" if description.program else "",
        )
    starts = {one.form for one in description.accelerated.starters}
    if form in ("torchrun", "horovodrun") and description.accel != NONE and form not in starts:
        text = f"`{form}` starts no ranks of acceleration `{description.accel}`"
        yield Problem(text, hint="leave `--accel` out, or choose `--as mpirun`")
    if form == "sbatch" and not starts_itself(description) and not interface(description):
        text = "the image has no MPI that Slurm can start ranks of"
        yield Problem(text, evidence=(f"image: {description.image}",), hint=_accels_of(description))
    if form == "trainjob" and not starts_itself(description) and not description.program:
        text = "the image has no `mpirun`, which starts the ranks of this acceleration"
        yield Problem(text, evidence=(f"image: {description.image}",), hint=_accels_of(description))
    meets = any("{first_node}" in one.setting for one in description.accelerated.variables)
    by_mpi = form in ("arena", "mpijob")
    if by_mpi and meets and description.own_script and not description.first_node:
        text = f"nobody knows the first node of this job, where ranks of {description.accel} meet"
        yield Problem(text, hint="choose `--as trainjob`, or `--api v2beta1`")
    if form == "arena" and description.given.privileged:
        text = f"arena gives no pod the rights that transport `{description.transport}` needs"
        yield Problem(text, hint="choose `--as mpijob`, which does")


def _values(description: Description) -> Iterator[Problem]:
    counts = {
        "ranks on a node": description.gpus_per_node,
        "batch": description.batch,
        "nodes": description.nodes,
    }
    for name, count in counts.items():
        if count < 1:
            yield Problem(f"{name}: {count} is too few", hint="give a whole number from 1 on")
    words = [description.image, description.model, description.interface, *description.script]
    for value in [*words, description.mpi_interface, *description.settings.values()]:
        if not value.isprintable():
            text = f"value {value!r} has a control character"
            yield Problem(text, hint="give it without line breaks and tabs")
    for host in description.hosts:
        if not _HOST.fullmatch(host):
            yield Problem(f"node `{host}` is not a host name", hint="give names as in `gpu1,gpu2`")
    if len(set(description.hosts)) < len(description.hosts):
        yield Problem("a node is named twice", hint="name each node once")
    if not _NAME.fullmatch(description.name) or len(description.name) > LONGEST_NAME:
        text = f"`{description.name}` cannot be the name of a job"
        hint = f"give small letters, digits and `-`, at most {LONGEST_NAME}"
        yield Problem(text, hint=hint)
