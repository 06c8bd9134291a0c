"""Check first of all that the image still is what its expectation file describes."""

import os
from shlex import quote

from validate import __version__
from validate.check import check, fail
from validate.expected import Expected
from validate.fixtures import Measure, Situation
from validate.probes.aside import export
from validate.remedy import in_image, in_shell

PATHS = ("PATH", "LD_LIBRARY_PATH")
"""A launch may add folders to these variables, if those that the image needs stay, in their order.
"""


@check(
    "env.manifest",
    "the expectation file is whole, belongs to root, and came with this `validate`",
    cause="the file was changed after the build, or `validate` was copied from another image",
    remedy=in_image("imagegen build   # builds the image again, file and checks together"),
)
def test_manifest(expected: Expected, measure: Measure) -> None:
    """mode, owner and `validate` version of /etc/imagegen/image.json"""
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


@check(
    "env.contract",
    "the environment that the recipe sets reaches the processes of the container",
    cause="the launch (`docker run -e`, `env:` of a pod) took the place of what the image sets",
)
def test_contract(image: Situation, measure: Measure) -> None:
    """each ENV of the recipe against this process's environment; PATH and LD_LIBRARY_PATH may have
    more"""
    wrong = []
    for name, promised in sorted(image.expected.env.items()):
        actual = image.env.get(name)
        if actual is None or not _keeps(name, promised, actual):
            wrong.append((name, promised, actual))
    measure("{} variables as the recipe sets them".format(len(image.expected.env)))
    if wrong:
        seen = ["{}={}".format(n, a) if a is not None else n + " is not set" for n, _, a in wrong]
        fail("; ".join(seen), remedy=export({name: promised for name, promised, _ in wrong}))


def _keeps(name: str, promised: str, actual: str) -> bool:
    if name not in PATHS:
        return actual == promised
    there = iter(actual.split(":"))
    return all(folder in there for folder in promised.split(":"))
