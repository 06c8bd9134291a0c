"""Test jobs over two containers as root, as another user, and as a number that a cluster chooses.

Each container starts as a pod of an MPIJob may: with or without the entrypoint, and with the
keys of the job mounted read-only from a Secret.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from command_line import command_line_in
from pods import Pod, job, started, until
from running_image import said
from unit.conftest import REPOSITORY

from imagegen.engine.images import local_images
from imagegen.model.labels import LABEL_MATRIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.engine.client import Engine
    from imagegen.engine.containers.containers import Container

SSHD = "/usr/sbin/sshd"
HOME = "/home/mpiuser"
LONG = pytest.mark.long
MATRIX = """\
name: {name}
tag: "test-rights/{name}:{{os}}"
base: bootstrap
{user}
axes: {{os: [debian12]}}
components: {{python: any, openmpi: any, ssh: any, validate: any}}
"""
USERS = {"root": "", "mpiuser": "user: {name: mpiuser, uid: 1000}"}

OF_USER = Pod("mpiuser", HOME, mode="0644")
OF_ROOT = Pod("root", mode="0600")
OPENSHIFT = replace(OF_USER, user="123456:0")
FORK = ("-De", "-f", f"{HOME}/.sshd_config")
"""The arguments of mpi-operator's examples."""


@pytest.fixture(scope="module")
def images(
    this_engine: Engine, debian_base: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, str]]:
    """Build an image for root and one for another user; the gate validates them as that user."""
    del debian_base
    folder = tmp_path_factory.mktemp("rights")
    (folder / "matrices").mkdir()
    run, token = command_line_in(folder), secrets.token_hex(6)
    names = {user: f"{user}-{token}" for user in USERS}
    try:
        for user, name in names.items():
            text = MATRIX.format(name=name, user=USERS[user])
            (folder / f"matrices/{name}.yaml").write_text(text)
            run("build", "--overlay", str(folder), "--matrix", name)
        yield {user: f"test-rights/{name}:debian12" for user, name in names.items()}
    finally:
        for name in names.values():
            for image in local_images.list_labelled(this_engine, f"{LABEL_MATRIX}={name}"):
                local_images.remove(this_engine, image.id, force=True)


def checks(container: Container, *arguments: str) -> dict[str, dict[str, Any]]:
    result = container.exec(["validate", "--json", "-", *arguments], 120)
    return {check["id"]: check for check in json.loads(result.out)["checks"]}


@pytest.mark.parametrize(
    ("pod", "user"),
    [
        pytest.param(OF_USER, "mpiuser 1000", id="a user"),
        pytest.param(
            replace(OF_USER, mode="0600", owner="1000:1000"),
            "mpiuser 1000",
            id="a user, keys 0600",
            marks=LONG,
        ),
        pytest.param(
            replace(OF_USER, mode="0640", owner="0:2000", groups=("2000",)),
            "mpiuser 1000",
            id="a user, keys by fsGroup",
            marks=LONG,
        ),
        pytest.param(
            replace(OF_USER, entrypoint=(SSHD,), command=FORK),
            "mpiuser 1000",
            id="a user, sshd with the file of the home",
        ),
        pytest.param(
            replace(OF_USER, entrypoint=(SSHD,), command=("-De",)),
            "mpiuser 1000",
            id="a user, sshd alone",
            marks=LONG,
        ),
        pytest.param(OPENSHIFT, "mpiuser 123456", id="a number"),
        pytest.param(
            replace(OPENSHIFT, mode="0600", owner="123456:0"),
            "mpiuser 123456",
            id="a number, keys 0600",
            marks=LONG,
        ),
        pytest.param(
            replace(OPENSHIFT, entrypoint=(SSHD,), command=FORK),
            "mpiuser 123456",
            id="a number, sshd with the file of the home",
            marks=LONG,
        ),
        pytest.param(
            replace(OF_ROOT, entrypoint=(SSHD,), command=("-De",)), "root 0", id="root, sshd alone"
        ),
        pytest.param(
            replace(OF_ROOT, mode="0644", entrypoint=(SSHD,), command=("-De",)),
            "root 0",
            id="root, sshd alone, keys 0644",
            marks=LONG,
        ),
        pytest.param(
            replace(OF_ROOT, image="mpiuser", user="0"),
            "root 0",
            id="root in an image for a user",
            marks=LONG,
        ),
    ],
)
def test_a_job_runs_over_two_containers(
    this_engine: Engine, images: Mapping[str, str], pod: Pod, user: str
) -> None:
    pod = replace(pod, image=images[pod.image])
    show = 'echo "$(hostname) $(id -un) $(id -u) $HOME $NCCL_DEBUG"'
    with job(this_engine, pod) as (left, right):
        until(left, "ssh", "left", "true")
        until(left, "ssh", "right", "true")
        launch = ["mpirun", "--allow-run-as-root", "-np", "2", "-H", "left:1,right:1"]
        ranks = said(left, *launch, "-mca", "btl", "^openib", "sh", "-c", show)
        wanted = [f"{host} {user} {pod.home} WARN" for host in ("left", "right")]
        assert sorted(ranks.splitlines()) == wanted
        # A number that a cluster chose has the account of the image, and root keeps its own.
        accounts = said(left, "getent", "passwd", "0", user.split()[1]).splitlines()
        assert [one.partition(":")[0] for one in accounts] == ["root", user.split()[0]]
        # What a session gets is the environment of its container, without what may be a secret.
        assert "MY_TOKEN" not in said(left, "ssh", "right", "env")
        found = checks(left, "--only", "ssh,peers,limits", "--peers", "right")
        assert [name for name, one in found.items() if one["outcome"] == "failed"] == []
        passed = {name for name, one in found.items() if one["outcome"] == "passed"}
        assert {"ssh.conf", "ssh.login", "ssh.start", "peers.login", "peers.ranks"} <= passed
        # Keys are in no layer: each container has its own.
        keys = [said(one, "ssh-keyscan", "-p", "2222", "-t", "ed25519", "localhost") for one in
                (left, right)]  # fmt: skip
        assert keys[0] != keys[1]


def test_keys_that_the_user_may_not_read_are_named_with_what_helps(
    this_engine: Engine, images: Mapping[str, str]
) -> None:
    pod = replace(OF_USER, image=images["mpiuser"], mode="0600")
    with job(this_engine, pod) as (left, _):
        until(left, "test", "-s", "/run/imagegen-user/started")
        assert f"user id 1000 may not read {HOME}/.ssh/id_rsa" in left.logs()
        assert "set defaultMode 0644 for the Secret, or fsGroup for the pod" in left.logs()
        found = checks(left, "--only", "ssh")["ssh.perms"]
        assert found["outcome"] == "failed"
        assert f"user id 1000 may not read {HOME}/.ssh/id_rsa" in found["cause"]
        assert found["remedy"].startswith("securityContext: {fsGroup: 1000}")


def test_a_user_in_an_image_for_root_has_what_needs_root_skipped(
    this_engine: Engine, images: Mapping[str, str]
) -> None:
    with started(this_engine, Pod(images["root"], user="1000")) as container:
        found = checks(container, "--only", "ssh,limits")
    assert {one["outcome"] for one in found.values()} <= {"passed", "warned", "skipped"}
    assert found["ssh.sshd"]["reason"] == "needs-root"
    assert "the image is for root" in found["ssh.sshd"]["measured"]


def test_an_upgrade_of_the_package_keeps_the_program_of_the_recipe(
    this_engine: Engine, images: Mapping[str, str]
) -> None:
    """The new package has another sshd; dpkg puts it where the old one was."""
    package = """\
set -e
mkdir -p /tmp/p/DEBIAN /tmp/p/usr/sbin
printf '%s\\n' 'Package: openssh-server' 'Version: 1:99' 'Architecture: amd64' \\
  'Maintainer: a test <test@localhost>' 'Description: a test' > /tmp/p/DEBIAN/control
printf '#!/bin/sh\\necho new sshd\\n' > /tmp/p/usr/sbin/sshd && chmod 755 /tmp/p/usr/sbin/sshd
dpkg-deb --build /tmp/p /tmp/p.deb
dpkg --install --force-all /tmp/p.deb
"""
    pod = Pod(images["root"], entrypoint=("sleep",), command=("infinity",))
    with started(this_engine, pod) as container:
        said(container, "sh", "-c", package)
        assert said(container, "/usr/lib/imagegen/sshd") == "new sshd\n"
        assert "imagegen-entrypoint" in said(container, "cat", SSHD)
        # A question makes no keys; a start does, and then the new program runs.
        assert said(container, SSHD, "-t") == "new sshd\n"
        assert "ssh_host" not in said(container, "ls", "/etc/ssh")
        assert said(container, SSHD, "-De") == "new sshd\n"
        assert "ssh_host_rsa_key" in said(container, "ls", "/etc/ssh")


def test_sshd_listens_on_one_port_beside_the_file_of_ubuntu_16_04(
    this_engine: Engine, images: Mapping[str, str]
) -> None:
    """That file has an active `Port 22`; the step of the recipe is run on it."""
    recipe = (REPOSITORY / "tests/golden/cu90/ubuntu16.04/Dockerfile").read_text()
    step = re.search(r"RUN (sed -i -E 's/.*?sshd_config && .*?done)", recipe, re.DOTALL)
    assert step is not None
    theirs = "Port 22\nProtocol 2\nPermitRootLogin prohibit-password\nUsePAM yes\n"
    before = f"""\
mkdir -p /etc/ssh/imagegen && mv /etc/ssh/sshd_config.d/imagegen.conf /etc/ssh/imagegen/s && \\
mv /etc/ssh/imagegen/s /etc/ssh/imagegen/sshd_imagegen.conf && \\
cp /etc/ssh/ssh_config.d/imagegen.conf /etc/ssh/imagegen/ssh_imagegen.conf && \\
printf '{theirs}' > /etc/ssh/sshd_config
"""
    listens = f"ssh-keygen -A > /dev/null; {SSHD} -T | grep -i -e ^port -e ^listen"
    with started(this_engine, Pod(images["root"])) as container:
        until(container, "test", "-s", "/run/imagegen/started")
        said(container, "sh", "-c", before)
        assert "port 22\n" in said(container, "sh", "-c", listens)
        said(container, "sh", "-c", step[1])
        assert {line.rpartition(":")[2].rpartition(" ")[2] for line in
                said(container, "sh", "-c", listens).splitlines()} == {"2222"}  # fmt: skip
        found = checks(container, "--only", "ssh")
        assert found["ssh.conf"]["outcome"] == "passed", found["ssh.conf"]
        said(container, "sh", "-c", "echo 'Port 22' >> /etc/ssh/sshd_config")
        found = checks(container, "--only", "ssh")
        assert found["ssh.conf"]["measured"] == "sshd Port 2222 22"
