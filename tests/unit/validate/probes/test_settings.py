"""Test which settings of MPI, UCX, NCCL, Gloo and PyTorch are found, and what removes them."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.probes.conffiles import Line, changed_lines
from validate.probes.settings import OURS, Setting, effect, foreign_settings, without_settings

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.catalog import Catalog


HOME = {"HOME": "/root"}
PACKAGED = "# Open MPI\nmtl = ^ofi\n# a = b\nbtl = ^uct,openib,ofi\npml = ^ucx"
"""The file of Debian's package: its last line has no end."""
SYSTEM = "/etc/openmpi/openmpi-mca-params.conf"


def _digest(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def _found(root: Path, env: dict[str, str] | None = None, **recipe: str) -> list[str]:
    return [
        str(one) for one in foreign_settings(str(root), {**HOME, **(env or {})}, recipe, "/opt/mpi")
    ]


def test_variables_of_the_field_are_found_and_those_of_the_recipe_are_not(tmp_path: Path) -> None:
    env = {"OMPI_MCA_pml": "ucx", "UCX_TLS": "rc", "GLOO_X": "", "TORCH_A": "1", "PATH": "/bin"}
    here = "in the environment"
    named = [
        f"GLOO_X {here}",
        f"OMPI_MCA_pml=ucx {here}",
        f"TORCH_A=1 {here}",
        f"UCX_TLS=rc {here}",
    ]
    assert _found(tmp_path, env) == named
    assert f"UCX_TLS=rc {here}" not in _found(tmp_path, env, UCX_TLS="rc")
    assert f"UCX_TLS=rc {here}" in _found(tmp_path, env, UCX_TLS="dc")


def test_what_mpirun_gives_its_ranks_is_no_setting(tmp_path: Path) -> None:
    env = {
        "OMPI_COMM_WORLD_RANK": "0",
        "OMPI_MCA_pml": "ob1",
        "PMIX_RANK": "0",
        "NCCL_ALGO": "Tree",
    }
    assert _found(tmp_path, env) == ["NCCL_ALGO=Tree in the environment"]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/etc/environment", 'UCX_TLS="rc"'),
        ("/root/.bashrc", "export UCX_TLS=rc NOT_OURS=1"),
        ("/root/.profile", "[ -n \"$PS1\" ] && export UCX_TLS='rc'; true"),
        ("/etc/profile.d/cluster.sh", "UCX_TLS=rc; export UCX_TLS"),
        ("/root/.cshrc", "setenv UCX_TLS rc"),
        ("/etc/security/pam_env.conf", "UCX_TLS DEFAULT=rc"),
        ("/etc/ssh/sshd_config.d/own.conf", "SetEnv UCX_TLS=rc"),
        ("/root/.ssh/environment", "UCX_TLS=rc"),
        ("/etc/ucx/ucx.conf", "UCX_TLS = rc  # of the old cluster"),
        ("/root/ucx.conf", "UCX_TLS=rc"),
    ],
)
def test_a_setting_in_a_file_is_found_and_its_remedy_removes_it(
    tmp_path: Path, path: str, line: str
) -> None:
    file = trees.write(tmp_path, path, f"# UCX_TLS=dc\n{line}\n$UCX_TLS\n# end\n")
    (one,) = foreign_settings(str(tmp_path), HOME, {})
    assert str(one) == f"UCX_TLS=rc in {path}"
    command = without_settings([one]).replace(path, shlex.quote(str(file)))
    subprocess.run(["sh", "-c", command], check=True)
    assert foreign_settings(str(tmp_path), HOME, {}) == []
    assert file.read_text() == "# UCX_TLS=dc\n$UCX_TLS\n# end\n"


def test_a_variable_that_a_file_repeats_is_one_setting(tmp_path: Path) -> None:
    trees.write(tmp_path, "/etc/environment", 'UCX_TLS="rc"\n')
    (one,) = foreign_settings(str(tmp_path), {**HOME, "UCX_TLS": "rc"}, {})
    assert str(one) == "UCX_TLS=rc in the environment and /etc/environment"
    assert not one.of_sessions
    (other,) = foreign_settings(str(tmp_path), HOME, {})
    assert other.of_sessions


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        (SYSTEM, "pml = ucx # x", "pml = ucx"),
        ("/root/.openmpi/mca-params.conf", "btl=tcp", "btl = tcp"),
        ("/opt/mpi/etc/openmpi-mca-params.conf", "btl = tcp", "btl = tcp"),
        ("/opt/mpi/etc/openmpi-mca-params-override.conf", "btl = tcp", "btl = tcp"),
        ("/root/.prte/mca-params.conf", "plm = slurm", "plm = slurm"),
        ("/etc/pmix-mca-params.conf", "gds = hash", "gds = hash"),
        ("/etc/openmpi/openmpi-default-hostfile", "node7 slots=8", "the host node7"),
        ("/etc/nccl.conf", "NCCL_ALGO=Tree", "NCCL_ALGO=Tree"),
        ("/root/.nccl.conf", "NCCL_ALGO=Tree", "NCCL_ALGO=Tree"),
    ],
)
def test_files_that_programs_read_themselves(
    tmp_path: Path, path: str, text: str, said: str
) -> None:
    trees.write(tmp_path, path, f"# nothing\n\n{text}\n")
    assert _found(tmp_path) == [f"{said} in {path}"]


def test_what_a_package_put_into_its_file_is_its_own(tmp_path: Path) -> None:
    trees.write(tmp_path, SYSTEM, PACKAGED)
    status = f"Package: openmpi-bin\nConffiles:\n {SYSTEM} {_digest(PACKAGED)}\n"
    trees.write(tmp_path, "/var/lib/dpkg/status", status)
    assert _found(tmp_path) == []
    trees.write(tmp_path, SYSTEM, f"{PACKAGED}\nbtl = tcp,self\n")
    assert _found(tmp_path) == [f"btl = tcp,self in {SYSTEM}"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (PACKAGED, []),
        (PACKAGED + "\n", []),
        (PACKAGED + "\nbtl = tcp\n", [Line("btl = tcp")]),
        (PACKAGED.replace("# a = b", "# a = b\nx = 1\ny = 2"), [Line("x = 1"), Line("y = 2")]),
        (PACKAGED + "btl = tcp\n", [Line("pml = ^ucxbtl = tcp", "pml = ^ucx")]),
        (PACKAGED.replace("= ^ofi", "= ofi"), [Line("mtl = ofi", "mtl = ^ofi")]),
        (PACKAGED.replace("# a = b", "a = b"), [Line("a = b", "# a = b")]),
    ],
)
def test_the_lines_that_are_not_the_packages(text: str, lines: list[Line]) -> None:
    assert changed_lines(text.encode(), _digest(PACKAGED)) == lines


def test_a_file_that_was_written_anew_is_named_as_a_whole() -> None:
    found = changed_lines(b"a = 1\nb = 2\n", _digest(PACKAGED))
    assert found == [Line("a = 1"), Line("b = 2")]


@pytest.mark.parametrize(
    ("name", "value", "of_launch"),
    [
        ("NCCL_SOCKET_IFNAME", "eth0", True),
        ("GLOO_SOCKET_IFNAME", "eth0", True),
        ("NCCL_DEBUG", "INFO", True),
        ("OMPI_MCA_btl_tcp_if_include", "eth0", True),
        ("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile", True),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", True),
        ("NCCL_IB_DISABLE", "0", True),
        ("NCCL_IB_DISABLE", "1", False),
        ("NCCL_P2P_DISABLE", "1", False),
        ("OMPI_MCA_pml", "ucx", False),
        ("OMPI_MCA_btl", "tcp,self", False),
        ("UCX_TLS", "rc", False),
        ("GLOO_DEVICE_TRANSPORT", "TCP_TLS", False),
        ("TORCH_NCCL_BLOCKING_WAIT", "1", False),
    ],
)
def test_what_a_launch_says_is_no_finding(name: str, value: str, of_launch: bool) -> None:
    assert Setting(name, value, ("the environment",)).of_launch is of_launch
    assert not Setting(name, value, ("/root/.bashrc",)).of_launch


def test_no_variable_of_a_launch_by_imagegen_is_a_finding(shipped: Catalog) -> None:
    said = [
        variable.setting
        for component in shipped.components.values()
        for variable in component.launch.variables
    ]
    assert len(said) > 5
    for text in said:
        name, _, value = text.partition("=")
        one = Setting(name, value, ("the environment",))
        assert not OURS.match(name) or one.of_launch, text


@pytest.mark.parametrize(
    "name", ["pml", "OMPI_MCA_pml", "UCX_TLS", "NCCL_P2P_DISABLE", "the host a"]
)
def test_the_effect_of_what_is_known_is_said(name: str) -> None:
    assert effect(name)
    assert effect("OMPI_MCA_coll_x", "as the program says") == "as the program says"
