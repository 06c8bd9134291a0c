"""Check that a container may start with sshd itself, as workers of an MPIJob do."""

import os

from validate.check import check, fail, skip
from validate.fixtures import Measure, Situation
from validate.probes.files import read, under
from validate.probes.package_lists import diversions
from validate.probes.sshd import SSHD
from validate.remedy import in_image


@check(
    "ssh.start",
    "a container that starts with sshd, without the entrypoint, gets its keys all the same",
    cause="the program of the recipe is gone, which makes the keys and then starts the package's "
    "own sshd: `sshd -De` ends with `no hostkeys available`",
    remedy=in_image("imagegen build", look="dpkg-divert --list /usr/sbin/sshd"),
    needs=("ssh.sshd",),
)
def test_start(image: Situation, measure: Measure) -> None:
    """dpkg's diversion of /usr/sbin/sshd: the package's own program is where it leads, and what is
    in the place starts that one"""
    if SSHD not in image.expected.patched:
        skip("not-in-recipe", "the recipe leaves {} as the package has it".format(SSHD))
    moved = diversions(image.root).get(SSHD)
    if moved is None:
        fail("dpkg diverts no {}".format(SSHD))
    measure("{} makes keys and starts {}".format(SSHD, moved.to))
    if not os.access(under(image.root, moved.to), os.X_OK):
        fail("{} is no program: dpkg put the package's own sshd there".format(moved.to))
    text = read(under(image.root, SSHD), 1 << 16)
    if not text.startswith("#!") or moved.to not in text:
        fail("{} does not start {}".format(SSHD, moved.to))
    if not os.access(under(image.root, SSHD), os.X_OK):
        fail("{} cannot be run".format(SSHD))
