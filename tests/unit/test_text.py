"""Test how text of other programs is shown."""

from __future__ import annotations

from imagegen.text import short_step


def test_a_step_is_short_without_mounts_and_settings() -> None:
    step = (
        "[torch 1/1] RUN --mount=type=bind,source=build-env,target=/mnt     "
        ". /mnt/env.sh &&     apt-get update &&     apt-get install -y x"
    )
    assert short_step(step) == "[torch 1/1] RUN apt-get install -y x"
