"""Start the containers of an MPIJob as mpi-operator does, and run its launcher in them.

The operator is not here: what it does is written down from its controller (v2beta1). It mounts a
Secret at `sshAuthMountPath`, with links to files of mode 0600, gives the launcher a hostfile and
variables of Open MPI, and starts the workers with what the manifest says, or with
`/usr/sbin/sshd -De` where that says nothing.
"""

from __future__ import annotations

import json
import re
import secrets
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from imagegen.engine.containers.containers import Container, LaunchSpec, network, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from command_line import CommandLine

    from imagegen.engine.client import Engine

NAMES = ("bench-worker-0.bench", "bench-worker-1.bench")
"""The names of the workers in the hostfile, with the domain of their service."""
SECONDS = 300
SCRIPT = (
    *("/opt/imagegen/validate/benchmark/synthetic.py", "--model", "small"),
    *("--batch-size", "4", "--length", "quick"),
)
HOSTFILE = "/etc/mpi/hostfile"


def manifest(run: CommandLine, cell: str) -> dict[str, Any]:
    """Return the job as it is printed."""
    asked = ("--as", "mpijob", "--nodes", "2", "--name", "bench", "--format", "json")
    ended = run("launch", cell, *asked, "--", *SCRIPT)
    text = str(ended.result["command"])
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def of_operator(slots: int, names: tuple[str, ...]) -> tuple[dict[str, str], str]:
    """Return the variables and the hostfile of a launcher."""
    env = {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": HOSTFILE,
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    }
    return env, "".join(f"{name} slots={slots}\n" for name in names)


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a Secret as Kubernetes mounts it: links into a folder of its own, mode 0600."""
    folder = tmp_path_factory.mktemp("secret")
    data = folder / "..data"
    data.mkdir()
    argv = ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(data / "id_rsa")]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    (data / "id_rsa.pub").replace(data / "authorized_keys")
    for file in data.iterdir():
        file.chmod(0o600)
        (folder / file.name).symlink_to(f"..data/{file.name}")
    return folder


def pod(image: str, net: str, name: str, container: dict[str, Any], secret: Path) -> LaunchSpec:
    """Describe a container of the job; `command` is the entrypoint, `args` the command."""
    args = container.get("args")
    command = container.get("command")
    if not args and not command:
        command = ["/usr/sbin/sshd", "-De"]
    rights = container.get("securityContext", {}).get("capabilities", {}).get("add", [])
    return LaunchSpec(
        image,
        tuple(args) if args else None,
        entrypoint=tuple(command) if command else None,
        caps=tuple(rights),
        shm_bytes=1 << 30,
        network=net,
        hostname=name,
        mounts=((str(secret), "/root/.ssh", "ro"),),
    )


def await_ready(launcher: Container, port: int) -> None:
    """Wait for the workers as the operator does: until each answers the probe of the manifest."""
    loop = "until (: > /dev/tcp/{}/{}) 2> /dev/null; do sleep 0.5; done"
    text = "; ".join(loop.format(name, port) for name in NAMES)
    done = launcher.exec(["bash", "-c", text], SECONDS)
    assert done.code == 0, done.out + done.err


def containers_of(job: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = job["spec"]["mpiReplicaSpecs"][kind]["template"]["spec"]["containers"]
    return dict(found)


@pytest.fixture
def started(
    this_engine: Engine, cpu_family: dict[str, str], secret: Path
) -> Iterator[Callable[..., Container]]:
    """Return what starts the workers of a job, and a container like its launcher."""
    with ExitStack() as stack:

        def start(cell: str, job: dict[str, Any], *, bare: bool) -> Container:
            net = stack.enter_context(network(this_engine, f"launch-{secrets.token_hex(6)}"))
            worker = containers_of(job, "Worker")
            if bare:
                worker.pop("args")
            image = cpu_family[cell.removeprefix("cpu/")]
            for name in NAMES:
                spec = pod(image, net, name, worker, secret)
                stack.enter_context(running(this_engine, spec))
            launcher = {**containers_of(job, "Launcher"), "args": ["sleep", "infinity"]}
            return stack.enter_context(
                running(this_engine, pod(image, net, "bench-launcher", launcher, secret))
            )

        yield start


@pytest.mark.parametrize(
    ("cell", "bare"),
    [
        pytest.param("cpu/debian12-none", False, id="workers with args"),
        pytest.param("cpu/debian12-none", True, id="workers without", marks=pytest.mark.long),
        pytest.param("cpu/debian13-none", False, id="DDP, Open MPI 5", marks=pytest.mark.long),
    ],
)
def test_a_job_runs_as_the_operator_starts_it(
    started: Callable[..., Container], command_line: CommandLine, cell: str, bare: bool
) -> None:
    job = manifest(command_line, cell)
    launcher = started(cell, job, bare=bare)
    env, hostfile = of_operator(job["spec"]["slotsPerWorker"], NAMES)
    launcher.make_folder("/etc/mpi")
    launcher.write_file(HOSTFILE, hostfile.encode(), 0o644)
    args = containers_of(job, "Launcher")["args"]
    await_ready(launcher, containers_of(job, "Worker")["readinessProbe"]["tcpSocket"]["port"])
    done = launcher.exec(args, SECONDS, env)
    assert done.code == 0, done.out + done.err
    assert len(re.findall(r"^Total img/sec on 2 CPU\(s\): ", done.out, re.MULTILINE)) == 1
    start = args[: args.index("-x")]
    hosts = launcher.exec([*start, "hostname"], SECONDS, env)
    assert sorted(hosts.out.split()) == [*NAMES], hosts.err


def test_what_is_printed_is_one_document(command_line: CommandLine) -> None:
    job = manifest(command_line, "cpu/debian12-none")
    assert json.loads(json.dumps(job)) == job
    assert "command" not in containers_of(job, "Worker")
