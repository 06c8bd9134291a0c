"""Test builds on a real engine: events, failures, cache, cancellation, contents of the layers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from image_builder import LABEL, Builder
from step_processes import running, wait_for

from imagegen.engine.builds.buildkit import StepError, cancel
from imagegen.engine.builds.vertex_events import (
    VertexCached,
    VertexEvent,
    VertexFailed,
    VertexFinished,
    VertexLog,
    VertexStarted,
)
from imagegen.engine.client import Engine, facts
from imagegen.engine.images import local_images
from imagegen.engine.images.layers import layers
from imagegen.model.recipe import ContextFile
from imagegen.validation.image_secrets import secrets_of

pytestmark = pytest.mark.both_engines(long=True)


def runs(events: list[VertexEvent], kind: type[VertexEvent]) -> list[str]:
    """List the RUN and COPY steps with an event of this kind, without their numbers."""
    names = [event.name for event in events if isinstance(event, kind)]
    return [name.partition("] ")[2] for name in names if "] RUN" in name or "] COPY" in name]


def test_this_engine_runs_buildkit(engine: Engine) -> None:
    found = facts(engine)
    assert found.lack is None
    assert found.version
    assert found.root_dir.startswith("/")
    assert "runc" in found.runtimes


@pytest.mark.both_engines
def test_events_come_typed_and_in_order(builder: Builder, token: str) -> None:
    step = f"RUN echo one {token}; echo two >&2; printf three"
    image_id = builder(step, "COPY d/f /f", files=(ContextFile("d/f", b"x"),))
    assert image_id.startswith("sha256:")
    told = [e for e in builder.events if "RUN" in e.name]
    kinds = [type(event) for event in told]
    assert kinds == [VertexStarted, VertexLog, VertexLog, VertexLog, VertexFinished]
    lines = {event.text for event in told if isinstance(event, VertexLog)}
    assert lines == {f"one {token}", "two", "three"}
    assert runs(builder.events, VertexFinished) == [step, "COPY d/f /f"]


def test_a_second_build_comes_from_the_cache(builder: Builder, token: str) -> None:
    steps = (f"RUN echo {token}", f"RUN echo again {token}")
    builder(*steps)
    assert runs(builder.events, VertexCached) == []
    builder(*steps)
    assert runs(builder.events, VertexCached) == list(steps)
    assert runs(builder.events, VertexLog) == []


@pytest.mark.both_engines
def test_a_failing_step_is_named_with_its_code_and_last_lines(builder: Builder, token: str) -> None:
    bad = f"RUN seq 40; echo no {token} >&2; exit 42"
    with pytest.raises(StepError) as caught:
        builder(f"RUN echo fine {token}", bad, "RUN echo never")
    error = caught.value
    assert error.step.endswith(bad)
    assert (error.exit_code, error.cause, error.cancelled) == (42, "command", False)
    assert len(error.log) == 30
    # stdout and stderr are two streams without a common order: the error may come first.
    assert f"no {token}" in error.last(4)
    assert runs(builder.events, VertexFailed) == [bad]
    assert "RUN echo never" not in runs(builder.events, VertexStarted)


@pytest.mark.parametrize(
    ("instruction", "cause"),
    [
        ("RUN echo 'tar: x: Cannot write: No space left on device' >&2; exit 2 # {}", "disk full"),
        ('RUN echo "E: Unable to locate package nope" >&2; exit 100 # {}', "upstream gone"),
        ("RNU {}", "dockerfile"),
    ],
)
def test_the_cause_of_a_failure(builder: Builder, token: str, instruction: str, cause: str) -> None:
    with pytest.raises(StepError) as caught:
        builder(instruction.format(token))
    assert caught.value.cause == cause


def test_identical_builds_side_by_side_run_a_step_once(
    engine: Engine, tiny_base: str, token: str
) -> None:
    builders = [Builder(engine, tiny_base) for _ in range(3)]
    step = f"RUN sleep 1; head -c 16 /dev/urandom > /{token}"
    with ThreadPoolExecutor(3) as pool:
        built = list(pool.map(lambda builder: builder(step), builders))
    try:
        layers = {local_images.inspect(engine, image)["RootFS"]["Layers"][-1] for image in built}
        assert len(layers) == 1
    finally:
        for builder in builders:
            builder.clean()


@pytest.mark.both_engines
def test_cancel_stops_the_step_on_the_engine(engine: Engine, builder: Builder, token: str) -> None:
    seen = threading.Event()

    def cancel_when_it_runs(event: VertexEvent) -> None:
        if isinstance(event, VertexLog) and not seen.is_set():
            assert running(token)
            seen.set()
            cancel(engine, f"test-{token}")

    with pytest.raises(StepError) as caught:
        builder(
            f"RUN echo {token}; sleep 300; echo {token}",
            on_event=cancel_when_it_runs,
            build_id=f"test-{token}",
        )
    assert seen.is_set()
    assert (caught.value.cancelled, caught.value.cause) == (True, "cancelled")
    wait_for(token, runs=False)


def test_an_interrupt_stops_the_step_on_the_engine(
    engine: Engine, builder: Builder, token: str
) -> None:
    def interrupt(event: VertexEvent) -> None:
        if isinstance(event, VertexLog):
            assert running(token)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builder(
            f"RUN echo {token}; sleep 300; echo {token}",
            on_event=interrupt,
            tag=f"imagegen/test:{token}",
        )
    wait_for(token, runs=False)
    assert local_images.find(engine, f"imagegen/test:{token}") is None


def test_cancelling_what_does_not_run_is_no_error(engine: Engine) -> None:
    cancel(engine, "test-never-was")


@pytest.mark.both_engines
def test_a_private_key_is_found_in_the_layer_that_a_later_one_hides(
    engine: Engine, builder: Builder, token: str
) -> None:
    base_layers = len(local_images.inspect(engine, builder.base)["RootFS"]["Layers"])
    key = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{token}\n".encode()
    image_id = builder(
        "COPY id_test /root/.ssh/id_test",
        "RUN rm -r /root/.ssh",
        "RUN echo '-----BEGIN CERTIFICATE-----' > /cert.pem",
        files=(ContextFile("id_test", key, 0o600),),
    )
    found = secrets_of(engine, image_id)
    assert [*found] == [f"private key in layer {base_layers + 1}: /root/.ssh/id_test"]


def test_images_are_listed_tagged_and_removed(engine: Engine, builder: Builder, token: str) -> None:
    ref = f"imagegen/test:{token}"
    image_id = builder(f"RUN echo {token}", tag=ref)
    (listed,) = [image for image in local_images.list_labelled(engine, LABEL) if ref in image.tags]
    assert listed.id == image_id
    assert listed.size_bytes > 0
    found = local_images.find(engine, ref)
    assert found is not None
    assert found.labels[LABEL] == listed.labels[LABEL]
    local_images.tag(engine, image_id, f"{ref}-2")
    local_images.remove(engine, ref)
    assert local_images.find(engine, ref) is None
    assert local_images.find(engine, f"{ref}-2") is not None
    local_images.remove(engine, f"{ref}-2")
    local_images.remove(engine, f"{ref}-2")


def test_folders_and_modes_of_a_context_arrive(engine: Engine, builder: Builder) -> None:
    image_id = builder("COPY tree /tree", files=(ContextFile("tree/a/run", b"x", 0o755),))
    *_, (_, last) = ((name, layer.getmembers()) for name, layer in layers(engine, image_id))
    modes = {member.name.rstrip("/"): member.mode & 0o7777 for member in last}
    assert modes == {"tree": 0o755, "tree/a": 0o755, "tree/a/run": 0o755}
