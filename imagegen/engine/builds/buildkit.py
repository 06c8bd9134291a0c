"""Build with BuildKit through the Engine API: no CLI, no plugin, no session.

The engine runs BuildKit when a context is posted to `/build?version=2`, and streams its trace.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from imagegen.engine import sdk
from imagegen.engine.builds.causes import cause_of
from imagegen.engine.builds.trace import decode
from imagegen.engine.builds.vertex_tracker import VertexTracker
from imagegen.engine.client import Engine, engine_errors, error_of
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import requests

    from imagegen.engine.answers import BuildMessage
    from imagegen.engine.builds.vertex_events import VertexEvent

CONNECT_SECONDS = 10


@dataclass(frozen=True)
class BuildRequest:
    """One build of a `context` (see `pack_context`). `build_id` names it for `cancel`; `tag` and
    `network` may be empty."""

    context: Iterable[bytes] = field(repr=False)
    build_id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    buildargs: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    no_cache: bool = False
    network: str = ""
    tag: str = ""


@dataclass(eq=False)
class StepError(Exception):
    """A build failed. `step` is empty where no step ran, as for a Dockerfile that does not parse.

    `log` holds the last lines of that step, `errors` the last of what it wrote to stderr;
    `exit_code` is None where it was no command.
    """

    step: str
    error: str
    exit_code: int | None = None
    log: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.step}: {self.error}" if self.step else self.error

    @property
    def cancelled(self) -> bool:
        """Whether somebody stopped the build, with `cancel` or by closing its connection."""
        return "context canceled" in self.error

    @property
    def cause(self) -> str:
        """Why it failed, in one word for a summary: see `engine.causes`."""
        return cause_of(self.error, (*self.log, *self.errors))

    def last(self, count: int) -> tuple[str, ...]:
        """The last lines to show, `count` of them (2 or more), up to half of them errors.

        The engine reads both streams side by side and promises no order between them: without
        this, a long output hides the one line that says why.
        """
        errors = self.errors[-(count // 2) :]
        for room in range(count, 0, -1):
            log = self.log[-room:]
            lost = tuple(line for line in errors if line not in log)
            if len(lost) + len(log) <= count:
                break
        return (*lost, *log)


def build(engine: Engine, request: BuildRequest, on_event: Callable[[VertexEvent], None]) -> str:
    """Build, calling `on_event` as it goes; the image id (`sha256:…`).

    Raises StepError when the build fails and EngineError when the engine refuses it or dies.
    On Ctrl-C, or any exception of `on_event`, the build is cancelled on the engine first.
    """
    with engine_errors("build"):
        # A connection of its own: several builds run side by side.
        api = engine.fresh()
        try:
            with _post(api, engine.url("/build"), request) as answer:
                return _follow(answer, on_event)
        except (StepError, EngineError):
            raise
        except BaseException:
            with suppress(Exception):
                cancel(engine, request.build_id)
            raise
        finally:
            api.close()


def cancel(engine: Engine, build_id: str) -> None:
    """Stop a build. One that is not running (any more) is no error."""
    with engine_errors("cancel the build"):
        engine.api.post(
            engine.url("/build/cancel"), params={"id": build_id}, timeout=CONNECT_SECONDS
        )


def parameters(request: BuildRequest) -> dict[str, str]:
    """The query of `/build` for a request. Source: Docker Engine API reference, ImageBuild."""
    wanted = {
        "buildid": request.build_id,
        "labels": json.dumps(dict(request.labels), sort_keys=True),
        "buildargs": json.dumps(dict(request.buildargs), sort_keys=True),
        "target": request.target,
        "nocache": "1" if request.no_cache else "",
        "networkmode": request.network,
        "t": request.tag,
    }
    return {"version": "2"} | {key: value for key, value in wanted.items() if value}


def _post(api: requests.Session, url: str, request: BuildRequest) -> requests.Response:
    """Start the build, without a read limit: a silent step may take hours."""
    answer = api.post(
        url,
        params=parameters(request),
        data=request.context,
        headers={"Content-Type": "application/x-tar"},
        stream=True,
        timeout=(CONNECT_SECONDS, None),
    )
    if not answer.ok:
        text = "the engine refused the build"
        raise EngineError.of(text, evidence=[error_of(answer.content)], hint="imagegen doctor")
    return answer


def _follow(answer: requests.Response, on_event: Callable[[VertexEvent], None]) -> str:
    tracker, image_id = VertexTracker(), ""
    for message in _messages(answer):
        if "error" in message:
            raise _step_error(tracker, message["error"])
        kind, aux = message.get("id"), message.get("aux")
        if kind == "moby.buildkit.trace" and isinstance(aux, str):
            for event in tracker.feed(decode(base64.b64decode(aux))):
                on_event(event)
        elif kind == "moby.image.id" and isinstance(aux, dict):
            image_id = aux["ID"]
    if not image_id:
        text = "the engine closed the connection before the build ended"
        raise EngineError.of(text, hint="imagegen doctor")
    return image_id


def _messages(answer: requests.Response) -> Iterator[BuildMessage]:
    """The JSON objects of the answer, each as soon as its chunk came."""
    chunks = answer.iter_content(chunk_size=None)
    return cast("Iterator[BuildMessage]", sdk.utils.json_stream.json_stream(chunks))


def _step_error(tracker: VertexTracker, error: str) -> StepError:
    step, log, errors = tracker.failure()
    code = re.search(r"exit code: (\d+)", error)
    return StepError(step, error, int(code[1]) if code else None, log, errors)
