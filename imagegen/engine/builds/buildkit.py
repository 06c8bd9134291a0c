"""Build with BuildKit through the Engine API, without a CLI, a plugin or a session.

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
    """Describe one build of a `context` (see `pack_context`).

    `build_id` is what `cancel` needs; `tag` and `network` may be empty.
    """

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
    """Report that a build failed.

    `step` is empty where no step ran, for example for a Dockerfile that cannot be parsed. `log` are
    the last lines of that step, `errors` the last lines that it wrote to stderr. `exit_code` is
    None where the step was not a command.
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
        """Return whether the build was stopped, by `cancel` or by closing its connection."""
        return "context canceled" in self.error

    @property
    def cause(self) -> str:
        """Return the cause in one or two words, for a summary: see `engine.causes`."""
        return cause_of(self.error, (*self.log, *self.errors))

    def last(self, count: int) -> tuple[str, ...]:
        """Return the last lines to show, `count` of them (2 or more), up to half of them errors.

        The engine reads both streams in parallel and promises no order between them: without this,
        a long output could hide the one line that says why.
        """
        errors = self.errors[-(count // 2) :]
        for room in range(count, 0, -1):
            log = self.log[-room:]
            lost = tuple(line for line in errors if line not in log)
            if len(lost) + len(log) <= count:
                break
        return (*lost, *log)


def build(engine: Engine, request: BuildRequest, on_event: Callable[[VertexEvent], None]) -> str:
    """Run a build and return the image id (`sha256:…`); call `on_event` for each event.

    Raises StepError when the build fails, and EngineError when the engine refuses it or dies. On
    Ctrl-C, or any exception of `on_event`, it first cancels the build on the engine.
    """
    with engine_errors("build"):
        # It needs its own connection, because several builds run at the same time.
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
    """Stop a build; a build that does not run (any more) is no error."""
    with engine_errors("cancel the build"):
        engine.api.post(
            engine.url("/build/cancel"), params={"id": build_id}, timeout=CONNECT_SECONDS
        )


def parameters(request: BuildRequest) -> dict[str, str]:
    """Make the query of `/build`. Source: Docker Engine API reference, ImageBuild."""
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
    """Start the build, without a read limit, because a step may print nothing for hours."""
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
    """Read the JSON objects of the answer, each as soon as its chunk has come."""
    chunks = answer.iter_content(chunk_size=None)
    return cast("Iterator[BuildMessage]", sdk.utils.json_stream.json_stream(chunks))


def _step_error(tracker: VertexTracker, error: str) -> StepError:
    step, log, errors = tracker.failure()
    code = re.search(r"exit code: (\d+)", error)
    return StepError(step, error, int(code[1]) if code else None, log, errors)
