"""Test the agents with an `ssh` that starts a shell here, and with a PyTorch of a few lines."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from validate.check import FAILED
from validate.expected import Expected
from validate.network import cluster as cluster_module
from validate.network import run
from validate.network.cluster import Cluster, remote_command, variables_of_ranks
from validate.network.job import described, open_job
from validate.network.options import add_network, refuse_contradictions
from validate.network.refused import Refused
from validate.network.transport import Effort, TorchRuns, choose_transport

if TYPE_CHECKING:
    from pathlib import Path

SSH = """\
case "$1" in
  refused) echo "ssh: connect to host refused port 2222: Connection refused" >&2; exit 255;;
  bare) PATH=/nowhere; export PATH;;
esac
echo "Welcome to $1"
SSH_CONNECTION="127.0.0.1 1 127.0.0.2 2"
export SSH_CONNECTION
host=$1
/bin/sh -c "$2" | /usr/bin/sed -u "s/\\"host\\": \\"[^\\"]*\\"/\\"host\\": \\"$host\\"/"
"""

TORCH = """\
import os, time
__version__ = "9.9"
class cuda:
    @staticmethod
    def is_available():
        return False
"""
DISTRIBUTED = """\
import os, time
def is_available():
    return True
def is_gloo_available():
    return True
def init_process_group(*_, rank, **__):
    what = os.environ["BEHAVIOUR"]
    if what == "hang":
        time.sleep(600)
    if what == "abort" and rank == 1:
        os.abort()
    raise RuntimeError("Connection closed by peer [127.0.0.2]\\nmore")
"""
IMAGE = Expected({"components": {"openmpi": {"facts": {"prefix": "/no/prefix"}}}}, "")
EFFORT = Effort([8], (5.0, 0.1), 1.5)


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Put the two stand-ins in place, and return the environment."""
    (tmp_path / "ssh").write_text(SSH)
    monkeypatch.setattr(cluster_module, "SSH", ("sh", str(tmp_path / "ssh")))
    (tmp_path / "torch/distributed").mkdir(parents=True)
    (tmp_path / "torch/__init__.py").write_text(TORCH)
    (tmp_path / "torch/distributed/__init__.py").write_text(DISTRIBUTED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return dict(os.environ)


def test_facts_of_all_and_why_some_are_lost(env: dict[str, str]) -> None:
    with Cluster(["one", "refused", "bare"], [sys.executable], env) as cluster:
        cluster.login()
        assert cluster.names() == [os.uname().nodename, "one"]
        assert cluster.facts("one")["host"] == "one"
        assert cluster.facts("one")["address"] == cluster.address("one") == "127.0.0.2"
        assert cluster.address(cluster.me) == "127.0.0.1"
        assert cluster.facts("one")["machine"] == cluster.facts(cluster.me)["machine"]
        assert cluster.lost["refused"].endswith("Connection refused")
        assert "bare" in cluster.lost


def test_a_peer_that_is_this_host_counts_once(env: dict[str, str]) -> None:
    me = os.uname().nodename
    with Cluster([me, "one", me, "one"], [sys.executable], env) as cluster:
        assert list(cluster.agents) == [me, "one"]


def test_a_python_that_is_not_there_gives_way_to_the_next(env: dict[str, str]) -> None:
    line = remote_command(["/no/python", sys.executable], env)
    assert line.index("/no/python") < line.index(sys.executable)
    with Cluster(["one"], [sys.executable, "/no/python"], env) as cluster:
        cluster.login()
        assert not cluster.lost


def test_ranks_get_the_variables_of_their_libraries_and_no_others() -> None:
    env = {"NCCL_DEBUG": "INFO", "PATH": "/bin", "HOME": "/root", "GLOO_SOCKET_IFNAME": "eth0"}
    assert variables_of_ranks(env) == ["GLOO_SOCKET_IFNAME", "NCCL_DEBUG", "PATH"]


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        ("hang", "no end within 2 s"),
        ("abort", "rank 1 was ended by signal 6"),
        ("raise", "RuntimeError: Connection closed by peer [127.0.0.2]"),
    ],
)
def test_ranks_that_hang_crash_or_raise(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch, behaviour: str, problem: str
) -> None:
    monkeypatch.setenv("BEHAVIOUR", behaviour)
    env["BEHAVIOUR"] = behaviour
    with Cluster(["one"], [sys.executable], env) as cluster:
        cluster.login()
        names = cluster.names()
        runs = TorchRuns(cluster, "gloo", dict.fromkeys(names, 1))
        started = time.monotonic()
        for _ in range(2):  # a rank that broke spoils no later run
            (run,) = runs.measure([tuple(names)], EFFORT, lambda *_: None)
            assert problem in run.problem
            assert run.speed == 0
        assert time.monotonic() - started < 30
        assert not cluster.lost


def arguments(**more: Any) -> Any:
    import argparse

    parser = argparse.ArgumentParser()
    add_network(parser)
    options = parser.parse_args([])
    defaults = {"peers": "one", "ranks": 1, "static": False}
    for name, value in {**defaults, **more}.items():
        setattr(options, name, value)
    return options


def test_what_pytorch_says_decides_the_transport(env: dict[str, str]) -> None:
    with Cluster(["one"], [sys.executable], env) as cluster:
        cluster.login()
        job = open_job(cluster, arguments(), IMAGE)
        assert job.runs.via == "gloo"
        assert described(job)["torch"] == "9.9"
        assert described(job)["ranks"] == [1, 1]
        with pytest.raises(Refused, match="sees no GPU") as refused:
            open_job(cluster, arguments(over="nccl"), IMAGE)
        assert refused.value.hint == "validate --bandwidth --over gloo"


GLOO = {"torch": True, "loaded": {"gloo": True, "gpus": 0}, "problem": ""}
NCCL = {"torch": True, "loaded": {"gloo": True, "nccl": "2.21.5", "gpus": 8}, "problem": ""}
NONE = {"torch": False}
BROKEN = {"torch": True, "loaded": {}, "problem": "ImportError: libtorch.so"}


@pytest.mark.parametrize(
    ("asked", "hosts", "mpi", "via"),
    [
        ("auto", [NCCL, NCCL], True, "nccl"),
        ("auto", [NCCL, GLOO], True, "gloo"),
        ("auto", [NCCL, NONE], True, "mpi"),
        ("auto", [BROKEN, GLOO], True, "mpi"),
        ("gloo", [NCCL, NCCL], True, "gloo"),
        ("mpi", [NCCL, NCCL], True, "mpi"),
    ],
)
def test_the_first_transport_that_all_hosts_have(
    asked: str, hosts: list[dict[str, Any]], mpi: bool, via: str
) -> None:
    facts = {f"h{number}": one for number, one in enumerate(hosts)}
    assert choose_transport(asked, facts, mpi) == via


@pytest.mark.parametrize(
    ("asked", "host", "why"),
    [
        ("auto", NONE, "no PyTorch"),
        ("auto", BROKEN, "ImportError: libtorch.so"),
        ("nccl", GLOO, "PyTorch sees no GPU"),
        ("mpi", NCCL, "no Open MPI"),
    ],
)
def test_a_transport_that_is_not_there(asked: str, host: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        choose_transport(asked, {"a": NCCL, "b": host}, False)


@pytest.mark.parametrize(
    "options",
    [
        {"find_slow": True, "peers": ""},
        {"reference": "f"},
        {"save_reference": "f"},
        {"bandwidth": True, "static": True},
    ],
)
def test_options_that_do_not_fit_each_other(options: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        refuse_contradictions(arguments(**options))
    refuse_contradictions(arguments(bandwidth=True, reference="f"))


def test_peers_that_are_this_container_alone_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is lost then, so no login is to blame."""

    class Alone:
        lost: dict[str, str] = {}  # noqa: RUF012
        agents = {"localhost": None}  # noqa: RUF012

        def login(self) -> None:
            pass

        def names(self) -> list[str]:
            return [one for one in self.agents if one not in self.lost]

    monkeypatch.setattr(run, "start_agents", lambda *_: contextlib.nullcontext(Alone()))
    plain = {"json": "", "markdown": "", "junit": "", "bandwidth": False}
    asked = SimpleNamespace(peers="localhost,localhost", find_slow=True, **plain)
    with pytest.raises(Refused, match="names this container alone") as refused:
        run.measure_network(asked, IMAGE)
    assert refused.value.hint.startswith("validate --peers HOST1,HOST2")
    Alone.lost = {"b": "Connection refused"}
    Alone.agents = {"localhost": None, "b": None}
    found = run.measure_network(asked, IMAGE).results
    assert (found[0].check.id, found[0].outcome) == ("net.login", FAILED)
