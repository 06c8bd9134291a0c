"""Test the lines with which pip ends what `pip check` finds."""

from __future__ import annotations

from validate.probes import pip

CONFLICTS = [
    "flask 2.0.0 has requirement Werkzeug>=2.0, but you have werkzeug 1.0.1.",
    "boto3 1.9.0 requires s3transfer, which is not installed.",
    "x 1.0 has requirement y (<2,>=1), but you have y 3.",
]


def test_what_pip_check_asks_for_is_installed_also_where_pep_668_refuses() -> None:
    one = pip.agreed("/usr/bin/python3", CONFLICTS)
    assert one.kind == "shell"
    assert one.startswith(
        "PIP_BREAK_SYSTEM_PACKAGES=1 /usr/bin/python3 -m pip install "
        "'Werkzeug>=2.0' s3transfer 'y<2,>=1'   # "
    )
    assert one.look == "/usr/bin/python3 -m pip check"


def test_words_that_are_not_known_are_left_to_a_build() -> None:
    assert pip.agreed("python3", ["x 1.0 is not supported on this platform"]).kind == "build"
