"""Test the page of `imagegen check-sources`: it ends with an error if something is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from imagegen.cli.main import main
from imagegen.engine.host.probe import Probe
from imagegen.errors import EngineError
from imagegen.sources import preflight

if TYPE_CHECKING:
    from imagegen.sources.preflight import Means, Source


@pytest.mark.parametrize(("version", "code"), [("1.0", 0), ("2.0", 6)])
def test_the_verb_ends_with_6_where_something_is_missing(
    version: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(wanted: dict[Source, tuple[str, ...]], _: Means) -> list[preflight.SourceFinding]:
        bad = Probe("missing", f"has {version}")
        good = Probe("ok", "is there")
        return [
            preflight.SourceFinding(s, cells, bad if code and s.name == "pytest" else good)
            for s, cells in wanted.items()
        ]

    monkeypatch.setattr(preflight, "probe_sources", answer)
    monkeypatch.setattr("imagegen.engine.client.connect", _no_engine)
    with pytest.raises(SystemExit) as ended:
        main(["check-sources", "-m", "cpu", "debian12-none", "--format", "json"])
    assert ended.value.code == code
    first, *errors = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    states = {row["source"]: row["state"] for row in first}
    wheel = "pip pytest==8.3.5 (debian12, python 3.11.2)"
    assert states[wheel] == ("missing" if code else "ok")
    if code:
        (problem,) = errors[0]["errors"]
        assert problem["text"] == f"{wheel} cannot be had"
        assert problem["evidence"] == ["has 2.0", "needed by: debian12-none"]


def _no_engine() -> None:
    raise EngineError.of("no container engine answers")
