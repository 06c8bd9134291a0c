"""Test how a Dockerfile is split into its instructions."""

from __future__ import annotations

from imagegen.renderer.dockerfile import instructions, steps, until_before

TEXT = """\
# a comment
ARG BASE=debian

FROM ${BASE} AS base
SHELL ["/bin/bash", "-c"]

FROM base AS one
ENV A=1 \\
    B=2
RUN first \\
    # said in between
    && more
COPY a b

FROM one AS image
COPY c d
CMD ["bash"]
"""


def test_steps_are_counted_per_stage() -> None:
    assert steps(TEXT) == {
        ("one", 0): "RUN first \\\n    && more",
        ("one", 1): "COPY a b",
        ("image", 0): "COPY c d",
    }


def test_what_is_no_step_is_told_too() -> None:
    loose = [(one.stage, one.text.split()[0]) for one in instructions(TEXT) if not one.counted]
    assert loose == [("base", "SHELL"), ("one", "ENV"), ("image", "CMD")]


def test_the_state_before_a_step_ends_where_the_step_begins() -> None:
    cut = until_before(TEXT, "one", 1)
    assert cut.endswith("    && more\n")
    assert until_before(TEXT, "one", 0).endswith("    B=2\n")


def test_a_step_that_is_not_there_cuts_nothing() -> None:
    assert until_before(TEXT, "one", 7) == TEXT
