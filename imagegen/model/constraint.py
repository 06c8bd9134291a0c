"""Decide whether a release satisfies a constraint (`1.13`, `>=1.11,<1.13`, `any`, `rdma-core`).

Versions compare by PEP 440 after one normalisation: a vendor's `5.4-3.1.0.0` is `5.4.3.1.0.0`. A
bare version is a prefix that ends at a dot: `1.13` accepts 1.13.1, and `1.11.0` accepts
`1.11.0+cu113`, because a local build tag is not part of what people ask for. `2.6.0 pypi` asks for
a version of that variant.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ANY = "any"
NONE = "none"
PATTERN = r"^[A-Za-z0-9<>=!~][A-Za-z0-9<>=!~.,+*_ -]*$"
"""The characters of a constraint; none of them can end a shell word or a YAML scalar."""

LONGEST = 200
"""The most characters of a constraint; Python fails to convert a number with too many digits."""

_BOTH = re.compile(r"^(\S.*?) +([a-z][a-z0-9.-]*)$")

_CUDA_BUILD = re.compile(r"(?:cu|cuda)(\d+)\.?(\d+)$")
_VARIANT = re.compile(r"^[a-z][a-z0-9.-]*$")
_OPERATORS = re.compile(r"[<>=!~]")


@lru_cache(maxsize=4096)
def version_key(text: str) -> Version:
    """Make a sortable version from the text of a release.

    Raises InvalidVersion for a text that is no version.
    """
    return Version(text.replace("-", "."))


def order_key(version: str, build: str = "") -> tuple[object, ...]:
    """Make a key that sorts the newest release last.

    Builds of one version sort as `cpu`, then plain, then for CUDA from the oldest to the newest.
    `build` names the build where the version does not.
    """
    key = version_key(version)
    build = key.local or build
    found = _CUDA_BUILD.search(build)
    if found is None:
        return key.release, key.is_postrelease, (0, 0) if build == "cpu" else (0, 1)
    digits = "".join(found.groups())
    return key.release, key.is_postrelease, (int(digits[:-1]), int(digits[-1]))


def is_version(text: str) -> bool:
    """Say whether a text is a version."""
    try:
        version_key(text)
    except InvalidVersion:
        return False
    return True


def is_variant(constraint: str) -> bool:
    """Say whether a constraint names a variant, such as `rdma-core`, rather than versions."""
    return bool(_VARIANT.match(constraint)) and constraint not in (ANY, NONE)


@lru_cache(maxsize=4096)
def problem_with(constraint: str) -> str:
    """Say why a text is no constraint; the answer is empty if it is one."""
    if not re.fullmatch(PATTERN, constraint):
        return "has characters that no version has"
    if len(constraint) > LONGEST:
        return f"is longer than {LONGEST} characters"
    both = _BOTH.match(constraint)
    if both and is_variant(both[2]):
        return problem_with(both[1])
    if constraint in (ANY, NONE) or is_variant(constraint):
        return ""
    if _OPERATORS.search(constraint):
        try:
            _specifiers(constraint)
        except InvalidSpecifier:
            return "is not a version range such as `>=1.11,<1.13`"
        return ""
    return "" if is_version(constraint) else "is neither a version nor a range nor a variant"


@lru_cache(maxsize=4096)
def _specifiers(constraint: str) -> SpecifierSet:
    return SpecifierSet(re.sub(r"(?<=\d)-(?=\d)", ".", constraint))


def own_variant(version: str) -> str:
    """Return the local part of a version, unless it is that of a build for CUDA or a CPU."""
    local = version.partition("+")[2]
    return "" if local == "cpu" or _CUDA_BUILD.match(local) else local


def names_variant(constraint: str, variant: str) -> bool:
    """Say whether a constraint names a variant: `pypi`, `2.6.0 pypi`, or `1.15.5+ttensorflow`."""
    return re.split(r"[ +]", constraint)[-1] == variant


def same_major(version: str) -> str:
    """Write the constraint that accepts any version of the same major one."""
    major = int(version.split(".")[0])
    return f">={major},<{major + 1}"


@lru_cache(maxsize=65536)
def matches(constraint: str, version: str, variant: str = "") -> bool:
    """Say whether a release of this version and variant satisfies a constraint."""
    both = _BOTH.match(constraint)
    if both and is_variant(both[2]):
        return both[2] in (variant, own_variant(version)) and matches(both[1], version, variant)
    if constraint == ANY:
        return True
    if constraint == NONE:
        return False
    if is_variant(constraint):
        return constraint in (variant, own_variant(version))
    if _OPERATORS.search(constraint):
        return _specifiers(constraint).contains(version_key(version), prereleases=True)
    return _prefix(version_key(constraint), version_key(version), local="+" in constraint)


def holds(only: Mapping[str, str], versions: Mapping[str, tuple[str, ...]]) -> bool:
    """Say whether one of the versions of each name satisfies its constraint.

    A name of which no version is known forbids nothing.
    """
    return all(
        name not in versions or any(matches(text, one) for one in versions[name])
        for name, text in only.items()
    )


def _prefix(asked: Version, have: Version, *, local: bool) -> bool:
    if local and asked.local != have.local:
        return False
    return have.release[: len(asked.release)] == asked.release


def nearest(asked: str, versions: Sequence[str], count: int) -> list[str]:
    """Return the versions, of a list with the oldest first, that stand around the one asked for.

    Builds of one version count as one, except of the version that is asked for.
    """
    found = re.search(r"\d+(\.\d+)*", asked)
    wanted = version_key(found.group()) if found else None
    builds = [one for one in versions if one.partition("+")[0] == asked.partition("+")[0]]
    if builds:
        return builds[-count:]
    public = list(dict.fromkeys(one.partition("+")[0] for one in versions))
    older = [one for one in public if wanted is None or version_key(one) < wanted]
    first = max(0, min(len(older) - count // 2, len(public) - count))
    return public[first : first + count]
