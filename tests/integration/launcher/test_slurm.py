"""Run the script for Slurm with the slurmctld and slurmd of Debian, in the files of an image.

There is no pyxis in Debian, so the node has the files of the image itself (`--runtime none`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from imagegen.engine.containers.containers import Container, LaunchSpec, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from command_line import CommandLine

    from imagegen.engine.client import Engine

CELL = "cpu/debian13-none"
BENCHMARK = "/opt/imagegen/validate/benchmark/synthetic.py"
INSTALL = """
apt-get update -q
apt-get install -y -q --no-install-recommends slurmd slurmctld slurm-client munge
"""
START = """
set -e
mkdir -p /etc/slurm /var/spool/slurmctld /var/spool/slurmd /run/munge /run/slurm
cat > /etc/slurm/slurm.conf << END
ClusterName=test
SlurmctldHost=$(hostname)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
MpiDefault=none
NodeName=$(hostname) CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=YES
END
echo CgroupPlugin=disabled > /etc/slurm/cgroup.conf
[ -e /etc/munge/munge.key ] || /usr/sbin/mungekey --create
chown -R munge /run/munge /etc/munge /var/log/munge /var/lib/munge
su -s /bin/sh munge -c /usr/sbin/munged
slurmctld
slurmd
for i in $(seq 60); do sinfo -h -o %T | grep -q idle && exit 0; sleep 1; done
sinfo
exit 1
"""
"""Make this container a cluster of one node, without control groups, and wait for the node."""


@pytest.fixture(scope="module")
def cluster(this_engine: Engine, cpu_family: dict[str, str]) -> Iterator[Container]:
    spec = LaunchSpec(
        cpu_family[CELL.removeprefix("cpu/")],
        ("sleep", "infinity"),
        shm_bytes=1 << 28,
        hostname="node-1",
    )
    with running(this_engine, spec) as container:
        for script, seconds in ((INSTALL, 300), (START, 120)):
            done = container.exec(["bash", "-c", script], seconds)
            assert done.code == 0, done.out + done.err
        yield container


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.long)])
def test_slurm_runs_the_script(cluster: Container, command_line: CommandLine, ranks: int) -> None:
    asked = ("--as", "sbatch", "--runtime", "none", "--gpus-per-node", str(ranks))
    script = (BENCHMARK, "--model", "small", "--batch-size", "4", "--length", "quick")
    ended = command_line("launch", CELL, *asked, "--format", "json", "--", *script)
    cluster.write_file("/tmp/bench.sh", str(ended.result["command"]).encode())
    done = cluster.exec(
        ["bash", "-c", "cd /tmp && rm -f slurm-*.out && sbatch --wait bench.sh; cat slurm-*.out"],
        300,
    )
    assert done.code == 0, done.out + done.err
    totals = re.findall(r"^Total img/sec on (\d+) CPU\(s\): ", done.out, re.MULTILINE)
    assert totals == [str(ranks)], done.out
    state = cluster.exec(["bash", "-c", "scontrol show job | grep JobState | tail -n 1"], 30)
    assert "COMPLETED" in state.out
