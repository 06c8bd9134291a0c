"""Check the folders for temporary files: their modes, and whether they can be written here."""

import os
from typing import List

from validate.check import check, fail
from validate.fixtures import Measure, Situation
from validate.probes.aside import renamed
from validate.probes.files import under
from validate.probes.writable import why_not_writable
from validate.remedy import in_shell
from validate.restrictions import TEMPORARY

PLACES = ("/tmp", "/var/tmp")


@check(
    "os.tmp",
    "every user has a place for temporary files",
    cause="a build step replaced the folder, or took its mode away: mpirun and others stop there",
)
def test_tmp(image: Situation, measure: Measure) -> None:
    """/tmp and /var/tmp are folders of mode 1777; $TMPDIR if it is set, else /tmp, is on a file
    system that can be written and is not full"""
    wrong = [path for path in PLACES if not _for_everyone(under(image.root, path))]
    measure(", ".join(PLACES))
    if wrong:
        lines = [_made_again(under(image.root, path), path) for path in wrong]
        text = "not a folder of mode 1777: {}".format(", ".join(wrong))
        fail(text, remedy=in_shell("; ".join(lines)))
    _must_be_writable(image)


def _made_again(there: str, path: str) -> str:
    """Return the line that makes a folder for everybody; what is in its place is kept beside it."""
    taken = os.path.lexists(there) and not os.path.isdir(there)
    line = "mkdir -p {0} && chmod 1777 {0}".format(path)
    return "mv {} {} && {}".format(path, renamed(path), line) if taken else line


def _for_everyone(path: str) -> bool:
    return os.path.isdir(path) and os.stat(path).st_mode & 0o1777 == 0o1777


def _must_be_writable(image: Situation) -> None:
    here = image.env.get("TMPDIR", "")
    why = {one: why_not_writable(image.root, one) for one in _used(here)}
    if not any(why.values()):
        return
    text = "; ".join("{}: {}".format(one, said) for one, said in why.items() if said)
    if here and why[here] and not why_not_writable(image.root, "/tmp"):
        fail(text, "TMPDIR={} leads to no place for files".format(here), in_shell("unset TMPDIR"))
    fail(text, "{}: mpirun and torchrun stop".format(TEMPORARY.cause), TEMPORARY.remedy)


def _used(here: str) -> List[str]:
    return [here] if here else ["/tmp"]
