"""Test that the catalogue of checks is complete, in order, and written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unit.conftest import REPOSITORY
from unit.validate import trees
from validate import catalogue, cli
from validate.check import SKIP_CODES
from validate.components import COMPONENTS
from validate.report import listing

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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
"""Every id of the catalogue of checks, groups A1 to A15."""


def test_every_check_of_the_catalogue_exists_or_is_left_out_with_the_reason() -> None:
    ids = {entry.check.id for entry in catalogue.all_checks()}
    assert set(CATALOGUE.split()) - ids == set(catalogue.LEFT_OUT)
    assert not ids & set(catalogue.LEFT_OUT)


def test_the_page_is_current() -> None:
    page = (REPOSITORY / "validate/CHECKS.md").read_text()
    assert page == listing.page(), "make generated"


def test_every_check_says_what_exactly_it_looks_at() -> None:
    assert [e.check.id for e in catalogue.all_checks() if len(e.check.probe) < 4] == []


def test_suites_run_in_the_order_of_their_places_and_others_after_them_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = catalogue.suite_names()
    assert set(catalogue.ORDER) <= set(names)
    monkeypatch.setattr(catalogue, "ORDER", {"torch": 20, "nccl": 30, "rdma": 10})
    others = sorted({*names} - {"torch", "nccl", "rdma"})
    assert catalogue.suite_names() == ["rdma", "torch", "nccl", *others]


def test_what_a_run_knows_of_components_is_there() -> None:
    suites = {*catalogue.suite_names(), *catalogue.ON_REQUEST}
    assert set(catalogue.ALIASES.values()) <= suites
    assert not set(catalogue.ALIASES) & suites
    assert {suite for one in COMPONENTS.values() for suite in one.more_suites} <= suites


def test_the_id_of_a_check_begins_with_a_name_that_only_takes() -> None:
    known = {*catalogue.suite_names(), *catalogue.ALIASES}
    ids = [entry.check.id for entry in catalogue.all_checks()]
    assert [one for one in ids if one.partition(".")[0] not in known] == []


def test_the_catalogue_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--catalogue"]) == 0
    assert capsys.readouterr().out == listing.page()


def test_every_check_has_an_id_of_its_own_and_can_be_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    checks = [check for _, check in catalogue.all_checks()]
    ids = [check.id for check in checks]
    assert len(ids) == len(set(ids))
    assert {need for check in checks for need in check.needs} <= set(ids)
    for name in ids:
        assert cli.main(["--explain", name]) == 0
    assert "proves    the image stands on the distribution" in capsys.readouterr().out


def test_every_check_that_can_fail_says_why_and_what_to_do() -> None:
    for _, check in catalogue.all_checks():
        if check.severity != "info":
            assert check.cause, check.id
        assert check.proves
        assert not check.proves.endswith(".")


def test_a_check_runs_after_what_it_needs() -> None:
    order = [check.id for _, check in catalogue.all_checks()]
    late = [
        (check.id, need)
        for _, check in catalogue.all_checks()
        for need in check.needs
        if order.index(need) > order.index(check.id)
    ]
    assert late == []


def test_skip_codes_are_words_for_a_program() -> None:
    assert all(code == code.lower() and " " not in code for code in SKIP_CODES)


def test_a_component_that_is_left_out_rests_with_the_reason_of_the_recipe(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    found = trees.findings(tmp_path, "horovod", trees.expected(tmp_path))
    assert {(one.reason, one.measured) for one in found.values()} == {
        ("not-in-recipe", "it does not compile here")
    }
