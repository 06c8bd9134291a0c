"""Start containers that know each other's keys, as those of one job do."""

from __future__ import annotations

import secrets
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from running_image import SLEEP, said, started

from imagegen.engine.containers.containers import Container, LaunchSpec, network

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from imagegen.engine.client import Engine

KEYS = "/root/.ssh/authorized_keys"


@contextmanager
def one_job(engine: Engine, image: str, names: Sequence[str]) -> Iterator[list[Container]]:
    """Start a container for each name, in one network; each knows the keys that the others made."""
    with ExitStack() as stack:
        net = stack.enter_context(network(engine, f"test-{secrets.token_hex(6)}"))
        hosts = [
            stack.enter_context(
                started(
                    engine,
                    LaunchSpec(
                        image,
                        SLEEP,
                        caps=("SYS_PTRACE",),
                        shm_bytes=1 << 30,
                        network=net,
                        hostname=name,
                    ),
                )
            )
            for name in names
        ]
        public = "".join(said(one, "cat", "/root/.ssh/id_ed25519.pub") for one in hosts)
        for one in hosts:
            one.write_file(KEYS, public.encode(), 0o600)
        yield hosts
