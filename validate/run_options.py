"""Define what the command line asks of a run."""

from typing import Mapping, NamedTuple, Sequence


class RunOptions(NamedTuple):
    """Hold what the command line asks for, apart from the suites.

    `own` maps the user's suites to their files: every test in them is a check, with or without
    `@check`. `profile` is empty if the profile of the image applies. `gpus` is 0 for any number of
    GPUs. `preflight` leaves out what is not worth the start of a job.
    """

    static: bool = False
    loopback: bool = False
    profile: str = ""
    peers: Sequence[str] = ()
    own: Mapping[str, str] = {}
    gpus: int = 0
    preflight: bool = False
