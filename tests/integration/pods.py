"""Start containers as Kubernetes starts pods: with a user, a Secret of keys, and a command."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.engine.containers.containers import Container, network

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.engine.client import Engine

LIKE_KUBERNETES = """\
set -e
data=/keys/..2026_11_22
mkdir "$data"
ssh-keygen -q -t ecdsa -N '' -f "$data/id_rsa"
cp "$data/id_rsa.pub" "$data/authorized_keys"
chmod {mode} "$data"/*
ln -s ..2026_11_22 /keys/..data
for name in id_rsa id_rsa.pub authorized_keys; do ln -s "..data/$name" "/keys/$name"; done
chown -R {owner} /keys
chmod 1777 /keys
"""
"""A Secret is links to files in a folder of a date, in a folder that anyone may write."""
READY_SECONDS = 30


@dataclass(frozen=True)
class Pod:
    """Say how the containers of a job start.

    An empty `user` is that of the image. `mode` and `owner` are those of the files of the Secret;
    without a `mode` there is none. With an `entrypoint`, that of the image is left out.
    """

    image: str
    home: str = "/root"
    user: str = ""
    mode: str = ""
    owner: str = "0:0"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ("sleep", "infinity")
    groups: tuple[str, ...] = ()


@contextmanager
def secret(engine: Engine, pod: Pod) -> Iterator[str]:
    """Make a volume with a pair of keys, as the controller of an MPIJob does."""
    name = f"test-{secrets.token_hex(6)}"
    engine.api.create_volume(name)
    try:
        script = LIKE_KUBERNETES.format(mode=pod.mode, owner=pod.owner)
        maker = Pod(pod.image, user="0", entrypoint=("sh", "-c"), command=(script,))
        with started(engine, maker, binds=[f"{name}:/keys"]) as container:
            assert engine.api.wait(container.id)["StatusCode"] == 0, container.logs()
        yield name
    finally:
        engine.api.remove_volume(name, force=True)


@contextmanager
def started(
    engine: Engine, pod: Pod, name: str = "", net: str = "", binds: list[str] | None = None
) -> Iterator[Container]:
    """Start one container, and remove it."""
    config = engine.api.create_host_config(
        binds=binds or [], group_add=[*pod.groups] or None, network_mode=net or "bridge"
    )
    joined = None
    if net:
        endpoint = engine.api.create_endpoint_config(aliases=[name])
        # The SDK accepts a map here; its type stubs know a single endpoint only.
        joined = engine.api.create_networking_config({net: endpoint})  # type: ignore[arg-type]
    made = engine.api.create_container(
        pod.image,
        [*pod.command],
        entrypoint=[*pod.entrypoint] or None,
        user=pod.user or None,
        hostname=name or None,
        environment={"NCCL_DEBUG": "WARN", "MY_TOKEN": "not-for-sessions"},
        host_config=config,
        networking_config=joined,
    )
    try:
        engine.api.start(made["Id"])
        yield Container(engine, made["Id"], made["Id"])
    finally:
        engine.api.remove_container(made["Id"], force=True)


@contextmanager
def job(engine: Engine, pod: Pod) -> Iterator[tuple[Container, Container]]:
    """Start the two containers `left` and `right` of a job on a private network."""
    with ExitStack() as stack:
        net = stack.enter_context(network(engine, f"test-{secrets.token_hex(6)}"))
        binds = []
        if pod.mode:
            binds.append(f"{stack.enter_context(secret(engine, pod))}:{pod.home}/.ssh:ro")
        left, right = (
            stack.enter_context(started(engine, pod, name, net, binds))
            for name in ("left", "right")
        )
        yield left, right


def until(container: Container, *argv: str) -> str:
    """Run a command until it succeeds, at most 30 s; return what it printed."""
    end = time.monotonic() + READY_SECONDS
    result = container.exec(list(argv), READY_SECONDS)
    while result.code != 0 and time.monotonic() < end:
        time.sleep(0.2)
        result = container.exec(list(argv), READY_SECONDS)
    assert result.code == 0, result.out + result.err + container.logs()
    return result.out
