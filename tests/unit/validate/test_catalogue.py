"""The catalogue is whole and written down; reports agree with their schema; suites of one's own."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import jsonschema
import pytest

from unit.conftest import REPOSITORY
from unit.validate import trees
from validate import catalogue, cli
from validate.found import FAILED, PASSED, SKIPPED, WARNED
from validate.outside.remote import Remote, RemoteError
from validate.probes import limits
from validate.report import listing, report

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = json.loads((REPOSITORY / "validate/report.schema.json").read_text())

CATALOGUE = """
os.release os.arch os.glibc os.kernel os.ldcache os.broken-links os.elf-deps os.locale os.leftovers
os.secrets os.hostname os.time os.preload os.tmp py.version py.single py.pip-check
torch.import torch.version
torch.numpy torch.cuda-build torch.nccl torch.cudnn torch.arch torch.loaded-libs
torch.1rank-allreduce
cuda.toolkit cuda.cudart cuda.libcuda-origin cuda.init cuda.driver-ver cuda.malloc cuda.env cuda.uvm
cudnn.version cudnn.header cudnn.split cudnn.dupes nccl.version nccl.cuda-tag nccl.header
nccl.copies nccl.conf nccl.ifname nccl.shm-numa nccl.netname plugin.present plugin.abi plugin.deps
plugin.load plugin.used plugin.one plugin.nearmiss plugin.tuner rdma.libs rdma.provider rdma.pabi
rdma.ofed rdma.no-kmod rdma.tools rdma.hw rdma.uverbs rdma.kabi rdma.devinfo rdma.port rdma.gid
rdma.hca rdma.netns rdma.mtu rdma.gdr rdma.numa rdma.loopback rdma.counters
mpi.prefix mpi.version mpi.single
mpi.nonlogin-path mpi.root mpi.2rank mpi.threads mpi.cuda mpi.cma mpi.ifs ssh.sshd
ssh.hostkeys-baked ssh.userkeys-baked ssh.perms ssh.conf ssh.login ssh.quiet ssh.env-parity
ssh.limits-parity ssh.maxstartups gpu.nodes gpu.env gpu.nvml gpu.count gpu.p2p gpu.topo gpu.health
gpu.fabricmgr lim.memlock lim.shm lim.nofile lim.stack lim.nproc lim.cgroup lim.caps lim.sysfs
harp.lib harp.config harp.hugepages-host harp.hugepages-mount harp.hugepages-cgroup harp.privileged
harp.enis harp.inactive-installed harp.single-node hvd.dist hvd.build hvd.link hvd.torch-abi
hvd.size lightcc.env lightcc.strings env.contract env.manifest k8s.detect k8s.worker-cmd k8s.dns
k8s.psp bench.run bench.device bench.parse bench.once bench.net bench.threshold bench.stability
nccl-tests
"""
"""Every id that the catalogue of checks has, groups A1 to A15."""

OWN = '''
import pytest
from validate.check import check, warn

def test_plain(host):
    """this machine is looked at"""
    assert host.backend.NAME == "local"

def test_wrong():
    assert 1 + 1 == 3, "sums are wrong"

def test_rests():
    pytest.skip("not on Sundays")

def test_soon():
    pytest.xfail("comes next year")

@pytest.mark.parametrize("size", [1, 2])
def test_each(size, measure):
    measure(size)

@check("site.proxy", "a proxy is set", cause="c", remedy="r")
def test_proxy(image, expected, given):
    warn("no proxy in {} for {}".format(given, expected.path))
'''


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Suites of one's own are modules: one of the same name was imported by the test before."""
    monkeypatch.delitem(sys.modules, "test_site", raising=False)


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "soft_limit", lambda kind: 1 << 26 if kind == "stack" else -1)
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 1 << 30)


def test_every_check_of_the_catalogue_exists_or_is_left_out_with_the_reason() -> None:
    ids = {entry.check.id for entry in catalogue.all_checks()}
    assert set(CATALOGUE.split()) - ids == set(catalogue.LEFT_OUT)
    assert not ids & set(catalogue.LEFT_OUT)


def test_the_page_is_current() -> None:
    page = (REPOSITORY / "validate/CHECKS.md").read_text()
    assert page == listing.page(), "write it again: python -m validate --catalogue"


def test_every_check_says_what_exactly_it_looks_at() -> None:
    assert [e.check.id for e in catalogue.all_checks() if len(e.check.probe) < 4] == []


def test_every_suite_has_its_place_in_the_order() -> None:
    assert set(catalogue.suite_names()) == set(catalogue.ORDER)
    assert set(catalogue.ALIASES.values()) <= {*catalogue.ORDER, catalogue.BENCHMARK}


def test_the_catalogue_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--catalogue"]) == 0
    assert capsys.readouterr().out == listing.page()


def _reports(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    components = {"validate": {"version": "0.1.0"}}
    trees.expected(folder, components=components)
    given = ["--expect", str(folder / "image.json"), "--json", str(folder / "r.json")]
    given += ["--junit", str(folder / "r.xml"), "--markdown", str(folder / "r.md")]
    code = cli.main([*given, *arguments])
    document: dict[str, Any] = json.loads((folder / "r.json").read_text())
    return code, document


@pytest.mark.usefixtures("roomy")
def test_reports_agree_with_one_another_and_with_the_schema(tmp_path: Path) -> None:
    code, document = _reports(tmp_path, "--only", "limits,horovod")
    jsonschema.validate(document, SCHEMA)
    assert (code, document["counts"]["warned"]) == (0, 1)
    suite = ElementTree.parse(tmp_path / "r.xml").getroot()[0]
    assert suite.find("properties/property[@name='warned']").get("value") == "1"  # type: ignore[union-attr]
    (case,) = [one for one in suite.findall("testcase") if one.get("name") == "lim.shm"]
    said = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert (said["outcome"], said["severity"]) == ("warned", "fail")
    assert "warning: /dev/shm has 1 GiB" in str(case.findtext("system-out"))
    page = (tmp_path / "r.md").read_text()
    assert "## Warned\n\n### lim.shm\n" in page
    assert "```sh\ndocker run --shm-size=32g IMAGE" in page
    assert report.as_data(report.from_data(document)) == document


@pytest.mark.usefixtures("roomy")
def test_checks_that_rest_for_one_reason_share_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _reports(tmp_path, "--only", "horovod")
    out = capsys.readouterr().out.splitlines()
    assert re.match(r"hvd\.dist +skip +\(not-in-recipe\) .*; and the next 4 checks$", out[0])
    assert out[-1].startswith("0 passed")


@pytest.mark.usefixtures("roomy")
def test_suites_of_one_s_own_join_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    trees.write(folder, "test_site.py", OWN)
    conftest = 'import pytest\n@pytest.fixture\ndef given(): return "here"\n'
    trees.write(folder, "conftest.py", conftest)
    code, document = _reports(tmp_path, "--only", "limits,site", "--suite", str(folder))
    mine = {one["id"]: one for one in document["checks"] if one["suite"] == "site"}
    assert code == 1
    assert {name: one["outcome"] for name, one in mine.items()} == {
        "site.plain": PASSED,
        "site.wrong": FAILED,
        "site.rests": SKIPPED,
        "site.soon": WARNED,
        "site.each[1]": PASSED,
        "site.each[2]": PASSED,
        "site.proxy": WARNED,
    }
    assert mine["site.plain"]["proves"] == "this machine is looked at"
    assert mine["site.wrong"]["measured"].startswith("sums are wrong\nassert (1 + 1) == 3")
    assert (mine["site.rests"]["reason"], mine["site.rests"]["measured"]) == (
        "not-applicable",
        "not on Sundays",
    )
    assert mine["site.proxy"]["measured"].startswith("no proxy in here for ")
    assert len(document["checks"]) == 7 + 8
    assert cli.main(["--suite", str(tmp_path), "--expect", str(tmp_path / "image.json")]) == 2
    assert "error: there is no test_*.py in" in capsys.readouterr().err


def test_the_example_in_the_manual_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    manual = (REPOSITORY / "validate/README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", manual, re.DOTALL)
    trees.write(tmp_path, "own/test_site.py", example)
    code, document = _reports(tmp_path, "--only", "site", "--suite", str(tmp_path / "own"))
    found = {one["id"]: (one["outcome"], one["measured"]) for one in document["checks"]}
    assert (code, found["site.proxy"]) == (1, (WARNED, "HTTPS_PROXY is not set"))
    outcome, measured = found["site.scratch_is_mounted"]
    assert outcome == FAILED
    assert "exists" in measured
    assert document["checks"][0]["proves"] == "the scratch file system is there"


def test_a_suite_s_name_that_is_taken_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees.write(tmp_path, "own/test_rdma.py", "def test_a(): pass\n")
    trees.expected(tmp_path)
    arguments = ["--suite", str(tmp_path / "own"), "--expect", str(tmp_path / "image.json")]
    assert cli.main(arguments) == 2
    assert "there is a suite `rdma` already" in capsys.readouterr().err


def test_a_command_on_another_host_has_a_limit(tmp_path: Path) -> None:
    remote = Remote("local://")
    assert remote.run("echo $((1 + 1))").out == "2\n"
    assert remote.run("sleep 60", 0.5).code == 124
    remote.put(str(tmp_path / "file"), bytes(range(256)) * 1000)
    assert (tmp_path / "file").read_bytes() == bytes(range(256)) * 1000
    with pytest.raises(RemoteError, match=r"`local://`: `false` ended with exit code 1"):
        remote.must("false")


@pytest.mark.parametrize("spec", ["nothing://x", "docker://"])
def test_a_host_that_is_none_is_2_in_words(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--hosts", spec]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: `{spec}` ")
    assert "hint: docker://NAME" in err
