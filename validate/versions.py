"""When a measured version is the one that the recipe names."""


def same(promised: str, measured: str) -> bool:
    """Whether they agree.

    A promise may leave out the last parts (`3.11` holds for 3.11.2), and what a build adds after
    `+` counts only where the promise has it too (`1.11.0+cu113`).
    """
    if "+" not in promised:
        measured = measured.partition("+")[0]
    return measured == promised or measured.startswith(promised + ".")
