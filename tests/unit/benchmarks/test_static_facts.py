"""Test that the benchmark of the static checks compares the same checks.

Each check that runs in the image has facts for the peers, in patterns that both peers read.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from unit.conftest import REPOSITORY
from validate import catalogue

EXPECTED = json.loads((REPOSITORY / "tests/golden/cpu/debian12-rdma-core/image.json").read_text())

SHELL_VARIABLE = re.compile(r"\$[\w{*#@!?$-]")
"""What Go's os.Expand removes from a line; `$(…)` and the `$` of a pattern stay."""

Load: TypeAlias = Callable[[str], Any]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Import a module of the benchmarks, which are not a package."""
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    return importlib.import_module


def test_every_static_check_of_the_image_has_a_fact_or_a_reason(load: Load) -> None:
    static_facts = load("static_facts")
    stood_for = {check for fact in static_facts.facts(EXPECTED) for check in fact.checks}
    of_the_image = {
        entry.check.id
        for entry in catalogue.all_checks()
        if entry.check.tier == "static" and entry.suite in static_facts.SUITES
    }
    assert set(static_facts.SUITES) <= set(EXPECTED["suites"])
    assert len(of_the_image) > 40
    assert stood_for == of_the_image - set(static_facts.LEFT_OUT)
    assert all(static_facts.LEFT_OUT.values())


def test_what_is_left_out_rests_in_an_image_for_cpus(load: Load) -> None:
    assert EXPECTED["device"] == "cpu"
    assert EXPECTED["components"]["rdma"]["variant"] == "rdma-core"
    assert set(load("static_facts").LEFT_OUT) == {
        "torch.cuda-build",
        "torch.nccl",
        "torch.cudnn",
        "hvd.tf-abi",
        "hvd.mxnet-abi",
        "rdma.ofed",
    }


def test_torch_is_imported_once(load: Load) -> None:
    commands = _commands(load)
    assert [fact.checks[0] for fact in commands if "torch, " in fact.line] == ["torch.import"]


def test_lines_have_no_shell_variable_and_judge_something(load: Load) -> None:
    for fact in _commands(load):
        assert not SHELL_VARIABLE.search(fact.line), fact.line
        assert fact.wants or fact.unwanted, fact.checks


def test_each_fact_is_a_test_for_testinfra(load: Load) -> None:
    facts = load("static_facts").facts(EXPECTED)
    written = load("static_peers").testinfra_file(facts)
    compile(written, "test_image.py", "exec")
    assert written.count("\ndef test_") == len(facts)
    bodies = written.split("\ndef test_")[1:]
    assert all("    assert " in body for body in bodies)


def test_each_fact_is_a_test_for_container_structure_test(load: Load) -> None:
    facts = load("static_facts").facts(EXPECTED)
    written = json.loads(load("static_peers").structure_file(facts))
    assert len(written["commandTests"]) == len(_commands(load))
    assert {"key": "LANG", "value": "C.UTF-8"} in written["metadataTest"]["envVars"]
    assert {"key": "LD_PRELOAD"} in written["metadataTest"]["unboundEnvVars"]
    files = {one["path"]: one for one in written["fileExistenceTests"]}
    assert files["/tmp"]["permissions"] == "dtrwxrwxrwx"
    assert files["/etc/imagegen/image.json"]["permissions"] == "-rw-r--r--"
    assert not files["/etc/ld.so.preload"]["shouldExist"]
    assert files["/usr/bin/ib_write_bw"]["isExecutableBy"] == "any"
    named = [one["name"] for kind in written.values() if isinstance(kind, list) for one in kind]
    environment = {"env.contract", "mpi.root"}
    checks = {check for fact in facts for check in fact.checks}
    assert checks - environment == {check for name in named for check in name.split(", ")}


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"testinfra": 40.0, "structure": 41.0}, "**met**, 10.0 times faster than testinfra, 10.2"),
        ({"testinfra": 20.0, "structure": 41.0}, "**missed**, 5.0 times faster than testinfra, 10"),
        ({"testinfra": 40.0}, "**missed**, 10.0 times faster than testinfra. Why"),
    ],
)
def test_the_target_holds_for_both_or_is_missed(
    load: Load, others: dict[str, float], said: str
) -> None:
    measure, peer_static = load("measure"), load("peer_static")
    walls = {"validate": 4.0, "torch": 1.0, **others}
    taken = {name: measure.Seconds(wall, 0.0, 3) for name, wall in walls.items()}
    assert said in str(peer_static._target(taken))


def _commands(load: Load) -> list[Any]:
    kind = load("static_fact").Command
    return [fact for fact in load("static_facts").facts(EXPECTED) if isinstance(fact, kind)]
