"""Test `kill -9` of imagegen and of the engine at random moments: the next run repairs everything.

There are four kills; `make test-long` makes ten, `make kill` fifty. Each failure names the moment
of its kill.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from command_line import command_line_in, ended
from own_engine import OwnEngine, own_engine
from tiny_family import TinyFamily

from imagegen.engine.containers.containers import Container
from imagegen.engine.images import local_images
from imagegen.model.labels import LABEL_MATRIX

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from imagegen.engine.client import Engine

KILLS = int(os.environ.get("IMAGEGEN_KILLS", "2"))
SECONDS = 60
STEP = "RUN sleep 0.2; echo {} {{{{ release.version }}}} TOKEN > /{}"

Signature = dict[str, Any]


@pytest.fixture(scope="module")
def victim(
    engine: Engine, tiny_base: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OwnEngine]:
    with own_engine(tmp_path_factory.mktemp("engine"), engine, tiny_base) as made:
        yield made


class Family:
    """Hold four cells on the engine to kill, their build time, and their undisturbed images."""

    def __init__(self, victim: OwnEngine, tiny: TinyFamily) -> None:
        self.victim, self.tiny = victim, tiny
        self.environ = {"DOCKER_HOST": victim.address}
        begun = time.monotonic()
        self.end("build", "--matrix", tiny.matrix, "--overlay", str(tiny.root), "--no-validate")
        self.seconds = time.monotonic() - begun
        self.reference = self.signatures()
        assert len(self.reference) == 4

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return self.tiny.run.start(*arguments, environ=self.environ)

    def end(self, *arguments: str, code: int = 0) -> str:
        return self.tiny.run(*arguments, code=code, environ=self.environ).text

    def begin(self) -> subprocess.Popen[str]:
        argv = self.tiny.argv("build", "--no-validate", "--jobs", "2")
        return self.start(*argv)

    def forget(self) -> None:
        """Remove the family's images and everything in the build cache."""
        with closing(self.victim.connected().api) as api:
            for image in api.images(filters={"label": f"{LABEL_MATRIX}={self.tiny.matrix}"}):
                api.remove_image(image["Id"], force=True)
            api.post(f"{api.base_url}/v{api.api_version}/build/prune", params={"all": "1"})

    def signatures(self) -> dict[str, Signature]:
        """Map each tag to all of its image that does not depend on the time of the build."""
        connected = self.victim.connected()
        with closing(connected.api):
            self.tiny.engine = connected
            return {tag: signature(connected, one.id) for tag, one in self.tiny.built().items()}

    def assert_whole(self, moment: str) -> None:
        """Check that every tagged image is complete and that the journal can be read."""
        for tag, found in self.signatures().items():
            assert found == self.reference[tag], f"{tag} is half an image after {moment}"
        with closing(sqlite3.connect(self.tiny.run.state / "journal.db")) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",), moment

    def assert_heals(self, moment: str) -> None:
        self.end(*self.tiny.argv("build", "--no-validate"))
        assert self.signatures() == self.reference, moment


def signature(engine: Engine, image_id: str) -> Signature:
    config = local_images.inspect(engine, image_id)
    return {
        "history": local_images.history(engine, image_id),
        "config": {k: config["Config"][k] for k in ("Labels", "Env", "Cmd", "Entrypoint")},
        "files": {name: file_of(engine, image_id, name) for name in ("common", "left", "right")},
    }


def file_of(engine: Engine, image_id: str, name: str) -> bytes:
    created = engine.api.create_container(image_id, ["none"])
    try:
        return Container(engine, created["Id"], image_id).read_file(f"/{name}")
    finally:
        engine.api.remove_container(created["Id"])


@pytest.fixture(scope="module")
def family(victim: OwnEngine, tmp_path_factory: pytest.TempPathFactory) -> Family:
    folder = tmp_path_factory.mktemp("kill")
    connected = victim.connected()
    tiny = TinyFamily(folder / "overlay", os.urandom(6).hex(), connected, command_line_in(folder))
    tiny.component("common", STEP.format("common", "common"), seconds="60")
    tiny.component("left", STEP.format("left", "left"), ("1", "2"))
    tiny.component("right", STEP.format("right", "right"), ("1", "2"))
    tiny.write_matrix({"left": ["1", "2"], "right": ["1", "2"]}, {"os": "tiny12", "common": "1"})
    made = Family(victim, tiny)
    connected.api.close()
    return made


def moments(family: Family) -> list[float]:
    """Choose moments anywhere in a build, in seconds after its start."""
    return [random.uniform(0.1, family.seconds) for _ in range(KILLS)]


@pytest.mark.timeout(60 + 120 * KILLS)
def test_imagegen_is_killed(family: Family) -> None:
    for number, at in enumerate(moments(family)):
        moment = f"kill {number} of imagegen, {at:.2f} s after its start"
        family.forget()
        with family.begin() as process:
            time.sleep(at)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=SECONDS)
        family.assert_whole(moment)
        family.assert_heals(moment)


@pytest.mark.timeout(60 + 120 * KILLS)
def test_the_engine_is_killed(family: Family, victim: OwnEngine) -> None:
    for number, at in enumerate(moments(family)):
        moment = f"kill {number} of the engine, {at:.2f} s into a build"
        family.forget()
        with family.begin() as process:
            time.sleep(at)
            victim.stop(signal.SIGKILL)
            process.wait(SECONDS)
            # The kill may come before, in or after the build: it always ends without a traceback.
            assert process.returncode in (0, 9), moment
            ended(process, process.returncode)
        victim.start()
        family.assert_whole(moment)
        family.assert_heals(moment)
