"""Describe the checks that `imagegen validate` makes on the host, where they cannot run inside.

Their results join the report of the image.
"""

from typing import Tuple

from validate.check import Check
from validate.remedy import in_image

KEYS_IN_LAYERS = Check(
    "image.private-key-in-layer",
    "no layer holds a private key, also where a later layer deletes it",
    "fail",
    "static",
    "a key was made or copied while the image was built; deleting it later only hides it",
    in_image(
        "imagegen build   # without the instruction that brings the key; and revoke the key",
        look="docker history --no-trunc IMAGE",
    ),
    probe="every file up to 256 KiB in every layer of the image, as the engine saves it, also "
    "compressed or in base64, and the first KiB of larger ones; files outside /etc that a package "
    "or a wheel lists as its own left out",
)
SECRETS_IN_LAYERS = Check(
    "image.secret-in-layer",
    "no layer holds a password, token or other credential, also where a later layer deletes it",
    "fail",
    "static",
    "it was copied in while the image was built; deleting it in a later step only hides it",
    in_image(
        "imagegen build   # without the instruction that brings it; and revoke it",
        look="docker history --no-trunc IMAGE",
    ),
    probe="the same files: credential files of known programs, tokens of known kinds, passwords in "
    "settings and in addresses",
)
SECRETS_IN_SETTINGS = Check(
    "image.secret-in-settings",
    "no variable, label, build argument or instruction of the image holds a secret",
    "fail",
    "static",
    "ENV, LABEL, ARG and the commands of RUN stay in the image for everyone who pulls it",
    in_image("RUN --mount=type=secret,id=token …   # in place of ENV and ARG; revoke the old one"),
    probe="`docker inspect` and `docker history`: names such as *_TOKEN and *_PASSWORD with a "
    "value, values that are keys, tokens or addresses with a password",
)

_SOFT_ROCE_CAUSE = "the verbs libraries see the device and cannot use it"
_SOFT_ROCE_REMEDY = in_image(
    "imagegen build --force MATRIX   # the packages libibverbs1, ibverbs-providers and perftest"
)

PINGPONG = Check(
    "rdma.pingpong",
    "messages go out and come back through a verbs device",
    "fail",
    "asked",
    _SOFT_ROCE_CAUSE,
    _SOFT_ROCE_REMEDY,
    probe="`imagegen validate --soft-roce`: `ibv_rc_pingpong` against itself over rxe0",
)
WRITE_BW = Check(
    "rdma.write-bw",
    "one process writes into the memory of another one",
    "fail",
    "asked",
    _SOFT_ROCE_CAUSE,
    _SOFT_ROCE_REMEDY,
    probe="`imagegen validate --soft-roce`: `ib_write_bw` against itself over rxe0",
)

_ALL = (KEYS_IN_LAYERS, SECRETS_IN_LAYERS, SECRETS_IN_SETTINGS, PINGPONG, WRITE_BW)
HOST_CHECKS: Tuple[Tuple[str, Check], ...] = tuple((one.id.partition(".")[0], one) for one in _ALL)
"""(suite, check)."""
