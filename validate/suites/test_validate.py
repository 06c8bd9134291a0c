"""Check first of all that the image still is what its expectation file describes."""

import os
from shlex import quote
from typing import Dict, Optional

from validate import __version__
from validate.check import check, fail
from validate.expected import Expected
from validate.fixtures import Measure, Situation
from validate.probes.aside import export
from validate.remedy import in_image, in_shell

PATHS = ("PATH", "LD_LIBRARY_PATH")
"""A launch may add folders to these variables, if those that the image needs stay, in their order.
"""
LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
"""The first that is set of LC_ALL, LC_CTYPE and LANG decides; os.locale looks whether it exists."""
SETS = ("NVIDIA_DRIVER_CAPABILITIES",)
"""A launch may add words to these variables."""
OF_LAUNCH = ("NVIDIA_VISIBLE_DEVICES",)
"""The launch chooses the value: a device plug-in sets it for each container."""


@check(
    "env.manifest",
    "the expectation file is whole, belongs to root, and came with this `validate`",
    cause="the file was changed after the build, or `validate` was copied from another image",
    remedy=in_image("imagegen build   # builds the image again, file and checks together"),
)
def test_manifest(expected: Expected, measure: Measure) -> None:
    """mode, owner and `validate` version of /etc/imagegen/image.json; without that file, what was
    found in the image takes its place"""
    if expected.inferred:
        measure("{}: {}".format(expected.path or "no expectation file; found", _found(expected)))
        return
    found = os.stat(expected.path)
    measure(
        "{} for {}".format(expected.path, expected.data.get("image") or "an image without a name")
    )
    if found.st_mode & 0o022:
        text = "{} can be written by others ({:04o})"
        remedy = in_shell("chmod go-w {}".format(quote(expected.path)))
        fail(text.format(expected.path, found.st_mode & 0o7777), remedy=remedy)
    if expected.version("validate") != __version__:
        text = "this is validate {}, the image was made with {}"
        fail(text.format(__version__, expected.version("validate")))


def _found(expected: Expected) -> str:
    rows = [(n, expected.version(n)) for n in sorted(expected.components) if n != "validate"]
    return ", ".join("{} {}".format(*row) for row in rows) or "nothing that trains"


@check(
    "env.contract",
    "the environment that the recipe sets reaches the processes of the container",
    cause="the launch (`docker run -e`, `env:` of a pod) took the place of what the image sets",
)
def test_contract(image: Situation, measure: Measure) -> None:
    """each ENV of the recipe against this process's environment; PATH and LD_LIBRARY_PATH may have
    more; of LC_ALL, LC_CTYPE and LANG the one that is in force counts"""
    wrong = []
    for name, promised in sorted(image.expected.env.items()):
        actual = image.env.get(name)
        if not _keeps(image, name, promised, actual):
            wrong.append((name, promised, actual))
    measure("{} variables as the recipe sets them".format(len(image.expected.env)))
    if wrong:
        seen = ["{}={}".format(n, a) if a is not None else n + " is not set" for n, _, a in wrong]
        fail("; ".join(seen), remedy=export({name: promised for name, promised, _ in wrong}))


def _keeps(image: Situation, name: str, promised: str, actual: Optional[str]) -> bool:
    """Return whether a variable still does what the image set it for."""
    if name in LOCALE:
        decides = next((one for one in LOCALE if image.env.get(one)), LOCALE[0])
        decides = decides if decides in image.expected.env else LOCALE[0]
        wanted = charset_of({**image.env, **image.expected.env})
        return name != decides or charset_of(image.env) == wanted
    if name == "PYTHONDONTWRITEBYTECODE":  # any text but none at all means yes
        return bool(actual)
    if actual is None:
        return False
    if name in PATHS:
        there = iter(map(_folder, actual.split(":")))
        return all(_folder(folder) in there for folder in promised.split(":"))
    if name in SETS:
        return "all" in actual.split(",") or {*promised.split(",")} <= {*actual.split(",")}
    return name in OF_LAUNCH or actual == promised


def _folder(path: str) -> str:
    return path.rstrip("/") or path


def charset_of(env: Dict[str, str]) -> str:
    """Return the character set in force: of LC_ALL, else LC_CTYPE, else LANG (locale(7)).

    It is in one spelling. A locale that names none, such as `C`, stands for itself.
    """
    found = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    name, _, charset = found.partition("@")[0].partition(".")
    return charset.lower().replace("-", "") if charset else name
