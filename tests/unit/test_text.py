"""Test how text of other programs is shown."""

from __future__ import annotations

from imagegen.text import few, few_like, short_step


def test_a_step_is_short_without_mounts_and_settings() -> None:
    step = (
        "[torch 1/1] RUN --mount=type=bind,source=build-env,target=/mnt     "
        ". /mnt/env.sh &&     apt-get update &&     apt-get install -y x"
    )
    assert short_step(step) == "[torch 1/1] RUN apt-get install -y x"


NAMES = ["K80", "V100", "A100", "A10", "H100", "L40", "L4"]


def test_many_names_are_cut_to_the_nearest_and_the_command_that_lists_all() -> None:
    assert few(NAMES, ["V100", "A100"], "imagegen catalog gpu") == (
        "V100, A100 … and 5 more: imagegen catalog gpu"
    )
    assert few(NAMES[:6], [], "imagegen catalog gpu") == "K80, V100, A100, A10, H100, L40"
    assert few_like("a100", NAMES, "imagegen catalog gpu") == (
        "A100, A10, V100, H100, L40 … and 2 more: imagegen catalog gpu"
    )
