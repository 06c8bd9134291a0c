"""Push images to a registry and move tags there, by digest.

The protocol is the OCI distribution specification. Only pushing layers needs an engine. Credentials
are those that `docker login` keeps.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import tenacity

from imagegen.engine import sdk
from imagegen.engine.builds.causes import cause_of
from imagegen.engine.client import Engine, engine_errors, reason
from imagegen.engine.images import local_images
from imagegen.engine.registry.distribution import Refused, Session, remote_reference
from imagegen.errors import PublishError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ATTEMPTS = 4
PUSH_SECONDS = 3600


class _Interruption(Exception):
    """Report a push that the network cut short; another attempt may succeed."""


def _may_pass(error: BaseException) -> bool:
    lost = (sdk.requests.ConnectionError, sdk.requests.Timeout, _Interruption)
    return isinstance(error, lost)


_retry = tenacity.retry(
    retry=tenacity.retry_if_exception(_may_pass),
    stop=tenacity.stop_after_attempt(ATTEMPTS),
    wait=tenacity.wait_random_exponential(multiplier=0.5, max=10),
    reraise=True,
)


def push(engine: Engine, image_id: str, ref: str, on_line: Callable[[str], None]) -> str:
    """Push an image into the repository of `ref`, but leave the tag of `ref` as it is.

    The image gets the tag `imagegen-<image id>`, which stays in the registry, because a registry
    may delete an image without a tag. Returns the digest (`sha256:…`) that the registry reports.
    Raises PublishError; EngineError where the engine does not answer.
    """
    repository, _ = local_images.split_reference(ref)
    tag = f"imagegen-{image_id.removeprefix('sha256:')[:16]}"
    staged = f"{repository}:{tag}"
    local_images.tag(engine, image_id, staged)
    try:
        with _publish_errors(f"`{staged}` was not pushed", staged):
            pushed = _push(engine, repository, tag, on_line)
        digest = digest_of(staged, engine)
    finally:
        _untag(engine, staged)
    if digest is None or (pushed and pushed != digest):
        text = f"`{staged}` is not in the registry as it was pushed"
        raise PublishError.of(text, evidence=[f"pushed {pushed}, the registry has {digest}"])
    return digest


def digest_of(ref: str, engine: Engine | None = None) -> str | None:
    """Return the digest that a tag has in its registry; None where there is no such tag.

    Loopback addresses, and those that `engine` lists as insecure, are reached over plain HTTP.
    """
    target = remote_reference(ref, engine)
    doing = f"the registry does not say what `{ref}` is"
    with _publish_errors(doing, ref), Session(target) as session:
        return _retry(session.digest)(target.reference)


def remote_labels(ref: str, engine: Engine | None = None) -> Mapping[str, str]:
    """Return the labels of the image that a tag has in its registry; empty where there is none.

    Nothing is pulled. Raises PublishError where the registry does not answer.
    """
    target = remote_reference(ref, engine)
    doing = f"the registry does not say what `{ref}` is"
    with _publish_errors(doing, ref), Session(target) as session:
        return _retry(session.labels)(target.reference)


def move_tag(repository_ref: str, digest: str, tag: str, engine: Engine | None = None) -> None:
    """Make `tag` name the manifest `digest`, in the registry alone, without moving layers.

    `repository_ref` is `host/name`; a tag in it is ignored. Raises PublishError.
    """
    target = remote_reference(repository_ref, engine)
    doing = f"tag `{tag}` was not moved to {digest}"
    with _publish_errors(doing, repository_ref), Session(target) as session:
        kind, manifest = _retry(session.manifest)(digest)
        stored = _retry(session.put_manifest)(tag, kind, manifest)
    if stored != digest:
        text = f"tag `{tag}` names another manifest than it should"
        raise PublishError.of(text, evidence=[f"wanted {digest}, the registry has {stored}"])


def _untag(engine: Engine, staged: str) -> None:
    """Remove the temporary tag, unless it is the image's last tag.

    With its last tag the engine would remove the image.
    """
    image = local_images.find(engine, staged)
    if image and len(image.tags) > 1:
        local_images.remove(engine, staged)


def _push(engine: Engine, repository: str, tag: str, on_line: Callable[[str], None]) -> str:
    """Push with retries; return the digest that the engine reports, empty where it reports none."""
    return str(_retry(_push_once)(engine, repository, tag, on_line))


def _push_once(engine: Engine, repository: str, tag: str, on_line: Callable[[str], None]) -> str:
    digest = ""
    doing = f"push `{repository}:{tag}`"
    with engine_errors(doing), engine.fresh(timeout=PUSH_SECONDS) as api:
        for message in api.push(repository, tag, stream=True, decode=True):
            if "error" in message:
                raise _push_error(str(message["error"]))
            digest = str(message.get("aux", {}).get("Digest", digest))
            if "status" in message and not message.get("progressDetail"):
                on_line(": ".join(filter(None, (message.get("id", ""), message["status"]))))
    return digest


def _push_error(text: str) -> Exception:
    return _Interruption(text) if cause_of(text) == "network" else Refused(text)


@contextmanager
def _publish_errors(text: str, ref: str) -> Iterator[None]:
    try:
        yield
    except sdk.transport_errors(Refused, _Interruption) as error:
        host, _ = sdk.auth.split_repo_name(ref)
        answered = isinstance(error, Refused)
        why = str(error) if answered or isinstance(error, _Interruption) else reason(error)
        raise PublishError.of(text, evidence=[why], hint=_hint(host, why, answered)) from error


def _hint(host: str, why: str, answered: bool) -> str:
    if any(word in why.lower() for word in ("401", "403", "unauthorized", "denied")):
        return f"docker login {host}"
    return "" if answered else f"make sure that `{host}` is in reach from here"
