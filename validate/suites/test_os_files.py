"""Check that what packages and wheels installed is still what they installed."""

import itertools
import os
import time
from typing import Callable, Iterator, List, Set

from validate.check import check, fail, skip, warn
from validate.fixtures import Measure, Situation
from validate.probes import changed_files, package_lists
from validate.probes.changed_files import Seen
from validate.probes.dpkg import install_again
from validate.probes.files import under
from validate.probes.interpreter import find_python
from validate.probes.package_lists import Listed
from validate.probes.sites import LOADED, frameworks, site_packages
from validate.remedy import Remedy, in_image, in_shell

SECONDS = 4.5
"""Time for all of it, also where there are many large files."""
MIB = 1 << 20
TEXTS = (".py", ".sh", ".conf", ".cfg", ".json", ".yaml", ".yml", ".txt", ".ini", ".h")
"""Files that a Dockerfile edits on purpose."""


@check(
    "os.files",
    "no file of a package or a wheel was changed or removed after it was installed",
    tier="live",
    cause="it was edited, or copied over; image.json would list what the recipe itself changes",
)
def test_files(image: Situation, measure: Measure) -> None:
    """md5sums of dpkg's packages, diversions followed, conffiles and what path-exclude names left
    out; the checksums in RECORD of wheels. First files that are newer than their package, then
    those of the packages of frameworks, MPI, Python and what these load, then all others, the small
    ones first, for 4.5 s. `patched` of image.json names the files that the recipe changes"""
    started = time.monotonic()
    patched = image.expected.patched
    diverted = package_lists.diversions(image.root)
    packages = list(_until(started + SECONDS / 2, package_lists.of_packages(image.root, diverted)))
    known = {one.path for one in packages}
    folders = site_packages(image)
    wheels = package_lists.of_wheels(folders, known)
    listed = packages + list(_until(started + SECONDS / 2, wheels))
    if not listed:
        skip("not-applicable", "neither dpkg nor a wheel names a file here")
    listed = [one for one in listed if one.path not in patched]
    training = _of_training(image, listed)
    seen = changed_files.look(
        image.root,
        listed,
        training,
        package_lists.left_out(image.root),
        SECONDS - (time.monotonic() - started),
    )
    measure(_covered(seen, time.monotonic() - started, len(patched)))
    wrong = ["{} of {} is changed".format(one.path, one.owner) for one in seen.changed]
    wrong += ["{} of {} is not there".format(one.path, one.owner) for one in seen.gone]
    replaced = [
        path
        for path, moved in sorted(diverted.items())
        if moved.by == ":" and path not in patched and os.path.isfile(under(image.root, path))
    ]
    wrong += ["{} is diverted, and another file in its place".format(path) for path in replaced]
    wrong += [
        "{} of `patched` in image.json is not there".format(path)
        for path in sorted(patched)
        if not os.path.lexists(under(image.root, path))
    ]
    lost = [*seen.changed, *seen.gone]
    if not wrong and not seen.files:
        skip("not-applicable", "no file could be read in {:.1f} s".format(SECONDS))
    decisive = any(map(training, lost)) or (wrong and not lost)
    if decisive and not _meant(image, [*filter(training, seen.changed)], seen.gone):
        fail(_first(wrong), "", _again(lost))
    if wrong:
        warn(_first(wrong), "", _again(lost))
    bare = package_lists.without_record(folders, known)
    if bare:
        text = "{} has no RECORD: pip can neither check nor remove it"
        warn("; ".join(map(text.format, bare[:4])), "it was copied in without pip", _again([]))


def _until(deadline: float, listed: Iterator[Listed]) -> Iterator[Listed]:
    return itertools.takewhile(lambda _: time.monotonic() < deadline, listed)


def _of_training(image: Situation, listed: List[Listed]) -> Callable[[Listed], bool]:
    """Return whether a file is of a package that training loads something of."""
    loaded: Set[str] = set(image.once(LOADED, set))
    loaded.add(os.path.realpath(find_python(image.env, image.expected)))
    prefix = image.expected.fact("openmpi", "prefix", "")
    folders = tuple(one + "/" for one in [*frameworks(image), str(prefix)] if one)

    def is_loaded(path: str) -> bool:
        return path in loaded or "/usr" + path in loaded or path.startswith(folders)

    owners = {one.owner for one in listed if is_loaded(one.path)}
    return lambda one: one.owner in owners


def _covered(seen: Seen, seconds: float, patched: int) -> str:
    text = "{} of {} files, {} of {} MiB in {:.1f} s".format(
        seen.files, seen.of_files, seen.size // MIB, seen.of_size // MIB, seconds
    )
    text += "; {} more of what training loads".format(seen.first_left) if seen.first_left else ""
    return text + ("; {} changed by the recipe".format(patched) if patched else "")


def _first(wrong: List[str]) -> str:
    more = "; and {} more".format(len(wrong) - 4) if len(wrong) > 4 else ""
    return "; ".join(wrong[:4]) + more


def _again(lost: List[Listed]) -> Remedy:
    packages = sorted({one.owner for one in lost if not one.of_wheel})
    if packages and not any(one.of_wheel for one in lost):
        return in_shell(install_again(*packages))
    return in_image("imagegen build   # or install again, in the recipe, what was changed")


def _meant(image: Situation, changed: List[Listed], gone: List[Listed]) -> bool:
    """Return whether a Dockerfile may have made these changes: nothing says what it patches."""
    return image.expected.inferred and not gone and all(one.path.endswith(TEXTS) for one in changed)
