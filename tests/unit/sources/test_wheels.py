"""Test which file of a project fits an image, by pip's own answer."""

from __future__ import annotations

import pytest

from imagegen.sources.wheels import WheelTarget, judge_wheel

BOOKWORM = WheelTarget("3.11.2", "2.36")
HOST = "https://files.example/packages/ab/cd"
FROM = "(from https://index.example/simple/x/)"
LINES = (
    "Fetched page https://index.example/simple/x/ as text/html",
    (
        f"  Found link {HOST}/pure-1.0-py3-none-any.whl#sha256=ab {FROM}"
        " (requires-python:>=3.8), version: 1.0"
    ),
    f"  Found link {HOST}/pure-1.0.tar.gz#sha256=ab {FROM} (requires-python:>=3.8), version: 1.0",
    f"  Found link {HOST}/pure-1.1.tar.gz {FROM}, version: 1.1",
    (
        "  Skipping link: none of the wheel's tags (cp313-cp313-manylinux_2_28_x86_64) are"
        " compatible (run pip debug --verbose to show compatible tags):"
        f" {HOST}/pure-2.0-cp313-cp313-manylinux_2_28_x86_64.whl#sha256=ab {FROM}"
    ),
    f"  Found link {HOST}/pure-2.1-cp311-cp311-manylinux_2_40_x86_64.whl {FROM}, version: 2.1",
    f"  Found link {HOST}/pure-2.2-cp38-abi3-manylinux2014_x86_64.whl {FROM}, version: 2.2",
    f"  Found link {HOST}/pure-2.3%2Bcu118-cp311-cp311-linux_x86_64.whl {FROM}, version: 2.3+cu118",
    (
        "  Skipping link: yanked for reason: See https://forge.example/issues/1:"
        f" {HOST}/pure-3.0-py3-none-any.whl {FROM} (requires-python:>=3.8)"
    ),
    (
        f"  Found link {HOST}/pure-4.0-py3-none-any.whl {FROM}"
        " (requires-python:>=3.12, !=3.13.*), version: 4.0"
    ),
    f"  Skipping link: not a file: {HOST}/pure/",
)


@pytest.mark.parametrize(
    ("wanted", "file"),
    [
        ("1.0", "pure-1.0-py3-none-any.whl"),
        ("1", "pure-1.0-py3-none-any.whl"),
        ("2.2", "pure-2.2-cp38-abi3-manylinux2014_x86_64.whl"),
        ("2.3+cu118", "pure-2.3+cu118-cp311-cp311-linux_x86_64.whl"),
        ("2.3", "pure-2.3+cu118-cp311-cp311-linux_x86_64.whl"),
        # pip installs a yanked file if exactly its version is asked for
        ("3.0", "pure-3.0-py3-none-any.whl"),
    ],
)
def test_a_file_that_fits_is_named(wanted: str, file: str) -> None:
    found = judge_wheel(wanted, BOOKWORM, LINES)
    assert (found.state, found.evidence) == ("ok", file)


@pytest.mark.parametrize("wanted", ["2.0", "2.1", "4.0"])
def test_a_version_without_a_file_for_this_image_is_missing(wanted: str) -> None:
    found = judge_wheel(wanted, BOOKWORM, LINES)
    assert found.state == "missing"
    assert found.evidence == "no file for Python 3.11.2 and glibc 2.36"


def test_another_python_and_another_glibc_take_other_files() -> None:
    assert judge_wheel("2.0", WheelTarget("3.13.5", "2.41"), LINES).state == "ok"
    assert judge_wheel("2.1", WheelTarget("3.11.2", "2.41"), LINES).state == "ok"
    assert judge_wheel("2.2", WheelTarget("3.11.2", "2.12"), LINES).state == "missing"
    assert judge_wheel("4.0", WheelTarget("3.12.1", "2.36"), LINES).state == "ok"
    assert judge_wheel("4.0", WheelTarget("3.13.5", "2.36"), LINES).state == "missing"


def test_what_only_has_a_source_archive_is_left_to_pip() -> None:
    found = judge_wheel("1.1", BOOKWORM, LINES)
    assert found.state == "unknown"
    assert found.evidence == "pure-1.1.tar.gz: no wheel, so pip has to compile it"


def test_what_is_compiled_may_be_a_source_archive() -> None:
    compiled = WheelTarget("3.11.2", "2.36", compiled=True)
    assert judge_wheel("1.1", compiled, LINES).evidence == "pure-1.1.tar.gz"
    assert judge_wheel("1.0", compiled, LINES).evidence == "pure-1.0-py3-none-any.whl"


def test_a_version_that_no_index_has_is_missing_with_the_newest_ones() -> None:
    found = judge_wheel("9", BOOKWORM, LINES)
    assert (found.state, found.evidence) == (
        "missing",
        "the indexes have 4.0, 3.0, 2.3+cu118, 2.2, …",
    )


def test_an_unknown_project_is_missing_and_an_index_that_is_away_is_unknown() -> None:
    gone = "Could not fetch URL https://i.example/x/: 404 Client Error: Not Found - skipping"
    last = "ERROR: No matching distribution found for x"
    assert judge_wheel("1", BOOKWORM, [gone, last]).state == "missing"
    away = (
        "Could not fetch URL https://me:secret@i.example/x/: connection error:"
        " HTTPSConnectionPool(host='i.example', port=443): Max retries exceeded with url: /x/"
    )
    found = judge_wheel("1", BOOKWORM, [away, last])
    assert found.state == "unknown"
    assert found.evidence == (
        "network: an index did not answer (https://i.example/x/: connection error)"
    )
    # another index may have it, and so may the one that does not answer
    assert judge_wheel("1.0", BOOKWORM, [away, *LINES]).state == "ok"
    assert judge_wheel("9", BOOKWORM, [away, *LINES]).state == "unknown"
