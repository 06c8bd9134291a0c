"""What `--require` names: suites and devices that must not be skipped, and how many GPUs."""

from typing import List, NamedTuple

COUNTED = "gpu"


class Required(NamedTuple):
    """`gpus` is 0 where any number of them will do."""

    names: List[str]
    gpus: int = 0


def required(text: str) -> Required:
    """`rdma,gpu=8` as data. Raises ValueError for a number that is none, or of anything else."""
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
