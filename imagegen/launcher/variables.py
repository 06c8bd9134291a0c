"""Choose the variables of every rank: those of NCCL, of the transport and of the acceleration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from imagegen.errors import Problem
from imagegen.model.constraint import holds
from imagegen.model.launch import Flag, Reason, Variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.launcher.description import Description
    from imagegen.model.launch import Setting

FLAGS = {"on": "1", "off": "0", "true": "1", "false": "0", "yes": "1", "no": "0"}
_NUMBERS = {"flag": r"[01]", "count": r"[0-9]+", "share": r"[0-9]+([.][0-9]+)?"}


def variables(description: Description) -> tuple[Flag, ...]:
    """List the variables that hold for this launch, each as one word `NAME=value`."""
    chosen = _of_gpus(description) if description.device == "gpu" else []
    chosen += description.accelerated.variables
    known = {one.name for one in chosen}
    found = _filled(description, chosen) | _set_by_user(description)
    named = [*(name for name in found if name in known), *(n for n in found if n not in known)]
    order = {name: place for place, name in enumerate(description.habits.variables)}
    named.sort(key=lambda name: order.get(name, len(order)))
    return tuple(found[name] for name in named)


def _of_gpus(description: Description) -> list[Variable]:
    """List NCCL's own variables with those of the transport in their places."""
    found = [
        Variable("NCCL_DEBUG=INFO", description.why("env.NCCL_DEBUG")),
        Variable("NCCL_SOCKET_IFNAME={iface}", description.why("env.NCCL_SOCKET_IFNAME")),
    ]
    for one in description.given.variables:
        names = [other.name for other in found]
        found.insert(names.index(one.before) if one.before in names else len(names), one)
    return found


def _filled(description: Description, chosen: list[Variable]) -> dict[str, Flag]:
    """Fill in the values; leave out what does not hold for this launch and this image."""
    values = {
        "iface": description.interface,
        "gpus_per_node": str(description.gpus_per_node),
        "first_node": description.first_node,
    }
    found = {}
    for one in chosen:
        wanted = one.transport in ("", description.transport)
        wanted = wanted and (description.nodes > 1 or not one.several_nodes)
        wanted = wanted and holds(one.only, description.versions)
        unknown = [f"{{{key}}}" for key, value in values.items() if not value]
        if wanted and not any(field in one.setting for field in unknown):
            found[one.name] = Flag((one.setting.format_map(values),), one.reason)
    table = {one.name: one for one in description.accelerated.settings}
    off = {name for name, value in asked_values(description).items() if value == "0"}
    return {name: flag for name, flag in found.items() if _of(table, name) not in off}


def _of(table: Mapping[str, Setting], name: str) -> str:
    return table[name].of if name in table else ""


def asked_values(description: Description) -> dict[str, str]:
    """Map the variables that the user sets to their values."""
    table = {one.option: one for one in description.accelerated.settings}
    return {
        table[option].name: FLAGS.get(value, value)
        for option, value in description.settings.items()
        if option in table
    }


def _set_by_user(description: Description) -> dict[str, Flag]:
    table = {one.name: one for one in description.accelerated.settings}
    found = {}
    for name, value in asked_values(description).items():
        one = table[name]
        reason = Reason(one.means, f"it is {one.default}", one.source)
        found[name] = Flag((f"{name}={value}",), reason)
    return found


def setting_problems(description: Description) -> Iterator[Problem]:
    """Report settings that the acceleration does not have, or that it cannot take."""
    table = {one.option: one for one in description.accelerated.settings}
    for option, value in description.settings.items():
        if option not in table:
            yield _foreign(description, option)
        else:
            yield from _wrong(description, table[option], FLAGS.get(value, value))


def _foreign(description: Description, option: str) -> Problem:
    owners = sorted(
        {
            accel
            for one in description.launches.values()
            for accel in one.accels
            if option in {setting.option for setting in one.settings}
        }
    )
    evidence = (f"this launch has acceleration {description.accel}",)
    if not owners:
        text = f"no acceleration has a setting `{option}`"
        return Problem(text, evidence=evidence, hint="leave it out")
    text = f"`--{option}` is a setting of {' or '.join(owners)}"
    hint = f"choose `--accel {owners[0]}`, or leave `--{option}` out"
    return Problem(text, evidence=evidence, hint=hint)


def _wrong(description: Description, one: Setting, value: str) -> Iterator[Problem]:
    where = f"`--{one.option} {value}` ({one.name})"
    good = re.fullmatch(_NUMBERS[one.kind], value) is not None
    good = good and not (one.least and float(value) < float(one.least))
    if not good or (one.most and float(value) > float(one.most)):
        yield Problem(
            f"{where} takes {one.range}",
            evidence=(f"{one.means}; the default is {one.default}",),
            hint=f"give {one.range}",
        )
        return
    if one.of and not _on(description, one.of):
        flag = next(s.option for s in description.accelerated.settings if s.name == one.of)
        text = f"{where} does nothing without {one.of}=1"
        yield Problem(text, hint=f"add `--{flag}`, or leave `--{one.option}` out")
    group = one.kind == "count" and one.most == "" and "{gpus_per_node}" in _own(description, one)
    if group and description.gpus_per_node % int(value):
        text = f"{where} does not divide the {description.gpus_per_node} GPUs of a node"
        yield Problem(text, hint=f"give {description.gpus_per_node}")


def _own(description: Description, one: Setting) -> str:
    every = description.accelerated.variables
    return next((other.setting for other in every if other.name == one.name), "")


def _on(description: Description, flag: str) -> bool:
    """Say whether a flag is on in this launch, by the user or by the guide's own variables."""
    words = {word for one in variables(description) for word in one.words}
    return f"{flag}=1" in words
