"""`imagegen validate` from outside: containers that die, and images that lack something."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from command_line import ended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from command_line import CommandLine
    from conftest import Builder
    from tiny_family import TinyFamily

    from imagegen.engine.client import Engine

DIES = "RUN printf '#!/bin/sh\\nseq 50\\necho last words {token}\\nsleep 1\\nexit 5\\n' > /entry"
"""A main process that ends while `validate` runs."""


@pytest.fixture(autouse=True)
def nothing_left(engine: Engine, builder: Builder) -> Iterator[None]:
    """Whatever happens in a test, its container goes, before the image does."""
    yield
    left = [c["Image"] for c in engine.api.containers(all=True) if c["ImageID"] in builder.built]
    assert left == []


def test_a_container_that_dies(builder: Builder, token: str, command_line: CommandLine) -> None:
    builder(
        DIES.format(token=token),
        "RUN printf '#!/bin/sh\\nsleep 60\\n' > /usr/local/bin/validate",
        "RUN chmod 755 /entry /usr/local/bin/validate",
        'ENTRYPOINT ["/entry"]',
        tag=f"imagegen/test:{token}",
    )
    end = command_line("validate", f"imagegen/test:{token}", code=7)
    assert f"error: the container of `imagegen/test:{token}` died before `validate` ended" in (
        end.err
    )
    assert f"  last words {token}\n" in end.err
    assert "  50\n" in end.err
    assert "  30\n" not in end.err
    assert f"hint: start it by hand to see more: `docker run -it imagegen/test:{token}`" in (
        end.err
    )


def test_a_container_that_is_dead_at_once(
    builder: Builder, token: str, command_line: CommandLine
) -> None:
    image = builder(f"RUN echo {token}", 'ENTRYPOINT ["/bin/sh", "-c", "echo gone >&2; exit 3"]')
    end = command_line("validate", image, code=7)
    assert "died before `validate` ended" in end.err or "could not run `validate`" in end.err
    assert "gone" in end.err


def test_a_container_that_cannot_start(
    builder: Builder, token: str, command_line: CommandLine
) -> None:
    image = builder(f"RUN echo {token}", 'ENTRYPOINT ["/no-such-program"]')
    end = command_line("validate", image, code=9)
    assert f"error: `{image}` does not start" in end.err
    assert "no-such-program" in end.err


def test_an_image_without_validate(builder: Builder, token: str, command_line: CommandLine) -> None:
    image = builder(f"RUN echo {token}")
    end = command_line("validate", image, code=7)
    assert f"error: `{image}` has no `validate` in it" in end.err
    assert "hint: build it with imagegen" in end.err


def test_an_image_whose_validate_leaves_no_report(
    builder: Builder, token: str, command_line: CommandLine
) -> None:
    image = builder(
        f"RUN printf '#!/bin/sh\\necho odd {token} >&2; exit 42\\n' > /usr/local/bin/validate",
        "RUN chmod 755 /usr/local/bin/validate",
    )
    end = command_line("validate", image, code=7)
    assert "left no report (exit 42)" in end.err
    assert f"odd {token}" in end.err


def test_a_validate_that_does_not_end(
    builder: Builder, token: str, command_line: CommandLine
) -> None:
    image = builder(
        f"RUN printf '#!/bin/sh\\necho begun {token}; sleep 99\\n' > /usr/local/bin/validate",
        "RUN chmod 755 /usr/local/bin/validate",
    )
    end = command_line("validate", "--timeout", "2", image, code=7)
    assert "did not end within 2 s" in end.err
    assert f"begun {token}" in end.err


def test_ctrl_c_under_validate(builder: Builder, token: str, command_line: CommandLine) -> None:
    image = builder(
        f"RUN printf '#!/bin/sh\\necho begun {token}; sleep 99\\n' > /usr/local/bin/validate",
        "RUN chmod 755 /usr/local/bin/validate",
    )
    with command_line.start("validate", image) as process:
        assert process.stdout is not None
        while f"begun {token}" not in process.stdout.readline():
            assert process.poll() is None
        begun = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        end = ended(process, 130)
    assert time.monotonic() - begun < 10
    assert "error: interrupted" in end.err


def test_a_contract_that_is_not_json(
    builder: Builder, token: str, command_line: CommandLine
) -> None:
    image = builder(f"RUN echo {token}", 'LABEL io.imagegen.contract="[1, 2"')
    end = command_line("validate", image, code=7)
    assert f"error: the contract label of `{image}` is not a JSON object" in end.err
    assert "io.imagegen.contract=[1, 2" in end.err


def test_the_record_is_kept_and_shown_as_json(tiny: TinyFamily) -> None:
    tiny.check()
    tiny.write_matrix({"os": ["debian12"], "check": ["1", "2"]}, {})
    tiny.build("--no-validate")
    good = tiny.command("validate", "--format", "json", "*-1").result
    assert [(row["passed"], row["tier"]) for row in good] == [(True, "full")]
    assert good[0]["id"] == tiny.built()["debian12-1"].id
    assert [check["id"] for check in good[0]["report"]["checks"]] == [
        "tiny.verdict",
        "image.private-key-in-layer",
    ]
    bad = tiny.command("validate", "--static", "--format", "json", code=7).documents
    assert [(row["passed"], row["tier"]) for row in bad[-2]] == [
        (True, "static"),
        (False, "static"),
    ]
    (problem,) = bad[-1]["errors"]
    assert problem["text"] == f"`{tiny.image('debian12-2')}` did not pass"
    assert problem["evidence"] == [
        "tiny.verdict: the verdict of release 2",
        "  remedy: take release 1",
    ]
    history = tiny.run("history", "--format", "json").result
    assert json.dumps(history[0]["outcomes"]) == '{"invalid": 1, "validated": 1}'


def test_an_expectation_file_that_is_not_there(
    cpu_image: str, builder: Builder, token: str, command_line: CommandLine
) -> None:
    builder.base = cpu_image
    image = builder(f"RUN rm /etc/imagegen/image.json && echo {token}")
    end = command_line("validate", image, code=7)
    assert f"error: `validate` in `{image}` does not know what to expect" in end.err
    assert "hint: build the image with imagegen, which writes /etc/imagegen/image.json" in end.err
