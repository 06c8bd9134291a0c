"""Test `imagegen validate` from outside: containers that end early, images that lack something."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from command_line import ended
from outside import from_outside, verdicts
from running_image import SLEEP, said, started

from imagegen.engine.containers.containers import Container, LaunchSpec, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from command_line import CommandLine
    from image_builder import Builder
    from tiny_family import TinyFamily

    from imagegen.engine.client import Engine

DIES = "RUN printf '#!/bin/sh\\nseq 50\\necho last words {token}\\nsleep 1\\nexit 5\\n' > /entry"
"""A main process that ends while `validate` runs."""


@pytest.fixture(autouse=True)
def nothing_left(engine: Engine, builder: Builder) -> Iterator[None]:
    """Check after each test, before its images are removed, that none of its containers is left."""
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
    own = f"RUN echo {token} > /usr/local/bin/validate"
    image = builder(own, 'ENTRYPOINT ["/bin/sh", "-c", "echo gone >&2; exit 3"]')
    end = command_line("validate", image, code=7)
    assert "died before `validate` ended" in end.err
    assert "gone" in end.err


def test_a_container_that_cannot_start(
    builder: Builder, token: str, command_line: CommandLine
) -> None:
    own = f"RUN echo {token} > /usr/local/bin/validate"
    image = builder(own, 'ENTRYPOINT ["/no-such-program"]')
    end = command_line("validate", image, code=9)
    assert f"error: `{image}` does not start" in end.err
    assert "no-such-program" in end.err


def test_an_image_without_validate(builder: Builder, token: str, command_line: CommandLine) -> None:
    image = builder(f"RUN echo {token}", "LABEL io.imagegen.recipe=another")
    end = command_line("validate", image, code=7)
    assert f"error: `{image}` has no /usr/local/bin/validate" in end.err
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
    tiny.write_matrix({"os": ["tiny12"], "check": ["1", "2"]}, {})
    tiny.build("--no-validate")
    good = tiny.command("validate", "--format", "json", "*-1").result
    assert [(row["passed"], row["tier"]) for row in good] == [(True, "full")]
    assert good[0]["id"] == tiny.built()["tiny12-1"].id
    assert [check["id"] for check in good[0]["report"]["checks"]] == [
        "tiny.verdict",
        "image.private-key-in-layer",
        "image.secret-in-layer",
        "image.secret-in-settings",
    ]
    bad = tiny.command("validate", "--static", "--format", "json", code=7).documents
    assert [(row["passed"], row["tier"]) for row in bad[-2]] == [
        (True, "static"),
        (False, "static"),
    ]
    (problem,) = bad[-1]["errors"]
    assert problem["text"] == f"`{tiny.image('tiny12-2')}` did not pass"
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
    end = command_line("validate", "--static", image)
    assert "no expectation file; found: " in end.out
    assert "torch 1.13" in end.out


KUBECTL = """\
#!/bin/sh
# In place of a cluster: the pod `NAME`, container `main`, of namespace `training` is a container
# of the engine. It knows `kubectl -n NAMESPACE -c CONTAINER exec [-i] POD -- COMMAND...`.
[ "$1 $2 $3 $4 $5" = "-n training -c main exec" ] || { echo "error: what is $*" >&2; exit 1; }
shift 5
case $1 in -i) stdin=-i; shift;; esac
pod=$1
shift 2
if [ "$pod" != NAME ]; then
  echo "Error from server (NotFound): pods \\"$pod\\" not found" >&2
  exit 1
fi
exec docker exec $stdin "$pod" "$@"
"""
PLACE = "?namespace=training&container=main"
ONLY = ("--static", "--only", "validate,ssh")


@pytest.fixture(scope="module")
def host(engine: Engine, cpu_family: dict[str, str]) -> Iterator[Container]:
    with started(engine, LaunchSpec(cpu_family["debian13-none"], SLEEP)) as container:
        yield container


def inside(host: Container) -> dict[str, tuple[str, str]]:
    found: dict[str, Any] = json.loads(host.exec(["validate", *ONLY, "--json", "-"], 300).out)
    return verdicts(found)


def test_a_machine_over_ssh(host: Container, engine: Engine, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    known = key.with_suffix(".pub").read_text()
    said(host, "sh", "-c", f"echo '{known.strip()}' >> /root/.ssh/authorized_keys")
    settings = {
        "IdentityFile": key,
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
    }
    config = tmp_path / "config"
    lines = [f"{name} {value}\n" for name, value in settings.items()]
    config.write_text("Host *\n" + "".join(lines))
    address = engine.api.inspect_container(host.name)["NetworkSettings"]["IPAddress"]
    spec = f"ssh://root@{address}:2222?ssh_config={config}"
    (own,) = from_outside("--hosts", spec, *ONLY)["hosts"]
    assert own["how"] == "its own validate"
    assert verdicts(own) == inside(host)


def test_a_pod(host: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the pod's own checks, and ours, which are sent through stdin."""
    stand_in(tmp_path, monkeypatch, host.name)
    spec = f"kubectl://{host.name}{PLACE}"
    (own,) = from_outside("--hosts", spec, *ONLY)["hosts"]
    (brought,) = from_outside("--hosts", spec, "--bring", *ONLY)["hosts"]
    assert (own["how"], brought["how"]) == ("its own validate", "checks brought along")
    assert verdicts(own) == verdicts(brought) == inside(host)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    program = folder / "kubectl"
    program.write_text(KUBECTL.replace("NAME", name))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_hosts_that_cannot_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: CommandLine
) -> None:
    stand_in(tmp_path, monkeypatch, "worker-0")
    hosts = f"ssh://root@127.0.0.1:1,kubectl://worker-1{PLACE},docker://no-such-container"
    end = command_line("validate", "--hosts", hosts, code=7)
    assert "127.0.0.1 port 1: Connection refused" in end.err
    assert 'pods "worker-1" not found' in end.err
    assert "No such container: no-such-container" in end.err
    assert "hint: docker://NAME, podman://NAME, kubectl://POD" in end.err
    assert "Traceback" not in end.out + end.err


OLD_PYTHON = """\
#!/bin/sh
# A stand-in for a Python before 3.6: the checks only ask for its version and for pip.
case "$*" in
  *"-m pip"*) echo "No module named pip" >&2; exit 1 ;;
  *) echo '{"version": "3.5.2", "prefix": "/usr"}' ;;
esac
"""


def test_an_image_whose_python_is_too_old(engine: Engine, debian_base: str, tmp_path: Path) -> None:
    recipe = {
        "schema": 1,
        "os": {"ID": "debian", "VERSION_ID": "12", "arch": "x86_64", "glibc": "2.36"},
        "components": {
            "python": {"version": "3.5.2", "facts": {"interpreter": "/usr/bin/python3"}}
        },
        "suites": ["os", "python"],
    }
    expect = tmp_path / "image.json"
    expect.write_text(json.dumps(recipe))
    with running(engine, LaunchSpec(debian_base, SLEEP)) as container:
        container.write_file("/usr/bin/python3", OLD_PYTHON.encode(), 0o755)
        spec = f"docker://{container.name}"
        arguments = ("--hosts", spec, "--static", "--only", "python", "--expect", str(expect))
        (report,) = from_outside(*arguments)["hosts"]
    assert report["how"] == "checks brought along"
    found = verdicts(report)
    assert found["py.version"] == ("passed", "")
    assert found["py.pip-check"] == ("skipped", "not-installed")
