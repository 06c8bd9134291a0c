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
    probe="the first KiB of every file in every layer of the image, as the engine saves it: a line "
    "`-----BEGIN … PRIVATE KEY-----`; files that a package or a wheel lists as its own left out",
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

HOST_CHECKS: Tuple[Tuple[str, Check], ...] = tuple(
    (one.id.partition(".")[0], one) for one in (KEYS_IN_LAYERS, PINGPONG, WRITE_BW)
)
"""(suite, check)."""
