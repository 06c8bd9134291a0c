"""Decide what a run must not skip: what `--require` names, and the hardware of a profile."""

from typing import Dict, List, NamedTuple, Sequence, Tuple

from validate.catalogue import ALIASES, PLUGIN, not_applicable
from validate.check import SKIPPED, CheckResult
from validate.components import COMPONENTS
from validate.expected import Expected

COUNTED = "gpu"

PROFILES: Dict[str, Tuple[str, ...]] = {
    "plain": (),
    "cpu": (),
    "gpu": ("gpu",),
    "rdma": ("gpu", "rdma"),
    "harp": ("gpu", "harp"),
}
"""Profile that a container is launched for -> the hardware that it uses. The names are those of
imagegen/model/cell.py; a test keeps the two equal.
"""

HARDWARE = {
    COUNTED: COUNTED,
    PLUGIN: "harp",
    **{n: one.hardware for n, one in COMPONENTS.items() if one.hardware},
}
"""Suite -> the hardware that its live checks look at."""

ABSENT_CODES = {"gpu": ("no-gpu-hw", "gpu-not-passed"), "rdma": ("no-rdma-hw", "rdma-not-passed")}
"""Device -> the skip codes that mean that it is absent."""


class Required(NamedTuple):
    """Hold the required suites and devices by name; `gpus` is 0 if any number of GPUs is enough."""

    names: List[str]
    gpus: int = 0


def parse_required(text: str) -> Required:
    """Parse `rdma,gpu=8`.

    Raises ValueError for a wrong number, or for a number of anything but GPUs.
    """
    names, gpus = [], 0
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, equals, number = word.partition("=")
        names.append(name)
        if not equals:
            continue
        if name != COUNTED:
            raise ValueError("`{}`: a number can be required of `gpu` alone".format(word))
        if not number.isdecimal() or not int(number):
            raise ValueError("`{}` does not say how many GPUs".format(word))
        gpus = int(number)
    return Required(names, gpus)


def required_by_profile(profile: str, expected: Expected) -> List[str]:
    """Return the hardware that a profile of the command line requires of this container.

    A profile for a network is also one for images without CUDA, which need no GPU.
    """
    hardware = PROFILES.get(profile, ())
    if hardware == (COUNTED,):
        return list(hardware)
    return [name for name in hardware if name != "gpu" or not not_applicable("gpu", expected)]


def out_of_profile(suite: str, profile: str) -> bool:
    """Return whether a profile of the command line leaves out the live checks of a suite."""
    hardware = HARDWARE.get(suite)
    return bool(profile and hardware) and hardware not in PROFILES.get(profile, ())


def not_run(required: Sequence[str], results: Sequence[CheckResult]) -> List[str]:
    """List the required things that did not run: suites without a result, and absent devices."""
    missing = []
    for name in required:
        mine = [one for one in results if one.suite == ALIASES.get(name, name)]
        ran = [one for one in mine if one.outcome != SKIPPED]
        absent = [one for one in mine if one.reason in ABSENT_CODES.get(name, ())]
        if not ran or absent:
            missing.append(name)
    return missing


def why_not_run(name: str, results: Sequence[CheckResult]) -> str:
    """Explain why a required thing did not run.

    The reason is the absent device, else the reason for which its suite was skipped.
    """
    skipped = [one for one in results if one.outcome == SKIPPED]
    found = [one for one in skipped if one.reason in ABSENT_CODES.get(name, ())]
    found += [one for one in skipped if one.suite == ALIASES.get(name, name)]
    return "{} ({}: {})".format(name, found[0].reason, found[0].measured) if found else name
