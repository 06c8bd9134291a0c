"""Test what the finished images of the matrix `cpu` are like for somebody who works in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from running_image import SLEEP, said, started

from imagegen.engine.containers.containers import (
    Container,
    LaunchSpec,
    network,
    running,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.engine.client import Engine

LAUNCHER = "/usr/local/openmpi/bin/mpirun"


@pytest.fixture(scope="module")
def lab(engine: Engine, cpu_family: dict[str, str]) -> Iterator[Container]:
    """Run a container of the Debian 12 image without RDMA."""
    spec = LaunchSpec(cpu_family["debian12-none"], SLEEP, caps=("SYS_PTRACE",), shm_bytes=1 << 30)
    with started(engine, spec) as container:
        yield container


def test_what_only_compiled_horovod_is_not_in_the_image(lab: Container) -> None:
    tools = ("gcc", "g++", "cmake", "make", "cc1plus")
    found = [tool for tool in tools if lab.exec(["which", tool], 30).code == 0]
    assert found == []
    packages = said(lab, "dpkg-query", "-W", "-f", "${db:Status-Abbrev}${Package}\n")
    assert [line for line in packages.split("\n") if line.startswith("ii") and "-dev" in line] == []


def test_no_package_list_and_no_package_file_is_left(lab: Container) -> None:
    places = ("/var/lib/apt/lists", "/var/cache/apt", "/mnt", "/tmp")
    kept = said(lab, "find", *places, "-type", "f", "-size", "+0", "-not", "-name", "lock")
    assert kept == ""
    assert lab.exec(["test", "-e", "/root/.cache"], 30).code == 1


def test_a_session_over_ssh_has_the_path_of_the_container(lab: Container) -> None:
    here = said(lab, "sh", "-c", "echo $PATH").strip()
    there = said(lab, "ssh", "localhost", "env")
    assert f"PATH={here}" in there.splitlines()
    assert here.startswith("/usr/local/openmpi/bin:")


def test_a_session_over_ssh_has_the_settings_given_at_launch(
    engine: Engine, cpu_family: dict[str, str]
) -> None:
    given = {"NCCL_DEBUG": "INFO", "OMPI_MCA_btl_tcp_if_include": "eth0"}
    env = {**given, "HF_TOKEN": "secret"}
    with started(engine, LaunchSpec(cpu_family["debian13-none"], SLEEP, env=env)) as container:
        there = said(container, "ssh", "localhost", "env").splitlines()
    assert {f"{name}={value}" for name, value in given.items()} <= set(there)
    assert not [line for line in there if "secret" in line]


def test_keys_are_another_container_s_own(engine: Engine, cpu_family: dict[str, str]) -> None:
    def fingerprints() -> tuple[str, str]:
        with started(engine, LaunchSpec(cpu_family["debian13-none"], SLEEP)) as container:
            host = said(container, "cat", "/etc/ssh/ssh_host_ed25519_key.pub").split()[1]
            user = said(container, "cat", "/root/.ssh/id_ed25519.pub").split()[1]
            return host, user

    first, second = fingerprints(), fingerprints()
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_a_mounted_key_is_used_and_none_is_made(
    engine: Engine, cpu_family: dict[str, str], lab: Container
) -> None:
    private = said(lab, "cat", "/root/.ssh/id_ed25519")
    public = said(lab, "cat", "/root/.ssh/id_ed25519.pub")
    made_here = {"id_ed25519": private, "authorized_keys": public}
    prepare = "mkdir -p /root/.ssh; " + "; ".join(
        f"printf '%s' \"$K{number}\" > /root/.ssh/{name}" for number, name in enumerate(made_here)
    )
    entrypoint = f"{prepare}; exec /usr/local/bin/imagegen-entrypoint sleep infinity"
    env = {f"K{number}": text for number, text in enumerate(made_here.values())}
    spec = LaunchSpec(cpu_family["debian12-none"], ("sh", "-c", entrypoint), env=env)
    with started(engine, spec) as container:
        assert said(container, "cat", "/root/.ssh/id_ed25519") == private


@pytest.mark.parametrize("cell", ["debian12-none", "debian13-none"])
def test_the_benchmark_prints_horovods_lines(
    engine: Engine, cpu_family: dict[str, str], cell: str
) -> None:
    spec = LaunchSpec(cpu_family[cell], SLEEP, caps=("SYS_PTRACE",), shm_bytes=1 << 30)
    with running(engine, spec) as container:
        out = said(container, "validate", "--only", "limits", "--benchmark", "--num-iters", "2",
                   seconds=200)  # fmt: skip
    lines = out.splitlines()
    assert sum(line.startswith("Iter #") for line in lines) == 2
    assert all(line.endswith("img/sec per CPU") for line in lines if line.startswith("Iter #"))
    assert sum(line.startswith("Total img/sec on 1 CPU(s): ") for line in lines) == 1
    assert sum(line.startswith("Img/sec per CPU: ") for line in lines) == 1


def test_two_ranks_reduce_for_real(lab: Container) -> None:
    out = said(lab, "validate", "--only", "limits", "--benchmark", "--ranks", "2", "--num-iters",
               "1", seconds=200)  # fmt: skip
    (allreduce,) = [line for line in out.splitlines() if line.startswith("bench.allreduce")]
    assert allreduce.split()[1] == "ok"
    assert "Total img/sec on 2 CPU(s): " in out


def test_ranks_start_on_two_hosts(engine: Engine, cpu_family: dict[str, str], token: str) -> None:
    """Both containers get one public key, as a user would do it."""
    image = cpu_family["debian12-none"]
    hosts = ("left", "right")
    with network(engine, f"test-{token}") as net:
        left, right = (LaunchSpec(image, SLEEP, network=net, hostname=host) for host in hosts)
        with started(engine, left) as one, started(engine, right) as other:
            public = said(one, "cat", "/root/.ssh/id_ed25519.pub")
            other.write_file("/root/.ssh/authorized_keys", public.encode(), 0o600)
            out = said(one, LAUNCHER, "-np", "2", "-H", "left:1,right:1", "--allow-run-as-root",
                       "-map-by", "slot", "-x", "PATH", "hostname")  # fmt: skip
    assert sorted(out.split()) == ["left", "right"]
