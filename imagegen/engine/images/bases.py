"""Make base images, from a registry or bootstrapped from a package archive."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from imagegen.engine import sdk
from imagegen.engine.client import (
    CALL_SECONDS,
    HINT_FIX,
    Engine,
    engine_errors,
    error_of,
    reason,
)
from imagegen.engine.host import process
from imagegen.engine.images import local_images
from imagegen.errors import EngineError
from imagegen.model.image import base_alias
from imagegen.model.labels import LABEL_HOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from imagegen.model.release import OsRelease

REACH_SECONDS = 8
PULL_SECONDS = 600

Mode = Literal["auto", "registry", "bootstrap"]

# As in the `slim` images of the registries: no manual pages, and no documentation but the licences.
# dpkg keeps this rule, so it also holds for everything that is installed on top of the base.
_SLIM = (
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
)

# Also from those images (docker-apt-speedup): an image is written to the disk when it is packed, so
# dpkg need not wait for the disk after each file. That wait is long while a large layer is written.
_UNSAFE_IO = "force-unsafe-io"

# mmdebstrap copies the host's name and resolver into the chroot; neither belongs in an image.
_FORGET_HOST = 'rm -f "$1/etc/hostname" "$1/etc/resolv.conf"'


@dataclass(frozen=True)
class BaseImage:
    """Describe a base image on the engine; `how` is `registry` or `bootstrap`."""

    ref: str
    id: str
    how: str


def ensure_base(
    engine: Engine, os: OsRelease, mode: Mode, on_line: Callable[[str], None], mirror: str = ""
) -> BaseImage:
    """Make sure that `base_alias(os)` is a base image; keep one that was made by `mode` before.

    `auto` prefers the local image `os.image`, then the registry if it answers (`mirror` is pulled
    instead, if given), then a bootstrap. Raises EngineError.
    """
    present = _present(engine, os)
    if present and mode in ("auto", present.how):
        return present
    if mode != "bootstrap" and _from_registry(engine, os, mode, on_line, mirror or os.image):
        return _base(engine, os, "registry")
    _bootstrap(engine, os, on_line)
    return _base(engine, os, "bootstrap")


def why_no_base(engine: Engine, os: OsRelease, mode: Mode, mirror: str = "") -> str:
    """Say why `ensure_base` could not make a base; empty where it could.

    It only looks, so it may be wrong. Raises EngineError where the engine does not answer.
    """
    present = _present(engine, os)
    if present and mode in ("auto", present.how):
        return ""
    if mode != "bootstrap":
        here = local_images.find(engine, os.image)
        why = "" if here else why_out_of_reach(engine, mirror or os.image)
        if not why or mode == "registry" or not os.bootstrap:
            return why
    if not os.bootstrap:
        return "it cannot be bootstrapped from a package archive"
    return "" if shutil.which("mmdebstrap") else "mmdebstrap is missing, which bootstraps it"


def why_out_of_reach(engine: Engine, image: str) -> str:
    """Say why the registry of `image` does not answer for it; empty where it does."""
    try:
        with engine.fresh(timeout=REACH_SECONDS) as api:
            api.inspect_distribution(image)  # type: ignore[no-untyped-call]
    except sdk.transport_errors() as error:
        return reason(error)
    return ""


def identity(engine: Engine, ref: str) -> str:
    """Identify the root file system of a base image.

    It is the digest that its registry gave, or the digest of its one layer where it did not come
    from a registry. An image id would change with the time of the import.
    """
    described = local_images.inspect(engine, ref)
    for named in described.get("RepoDigests") or ():
        return str(named).rpartition("@")[2]
    layers = described["RootFS"]["Layers"]
    return str(layers[-1]) if len(layers) == 1 else ",".join(map(str, layers))


def bootstrap_command(suite: str, target: str) -> list[str]:
    """Make the command of mmdebstrap, which uses the host's archive settings.

    The base gets no package lists.
    """
    options = [f"--dpkgopt={option}" for option in (*_SLIM, _UNSAFE_IO)]
    return [
        "mmdebstrap",
        "--variant=minbase",
        "--include=ca-certificates",
        *options,
        f"--customize-hook={_FORGET_HOST}",
        suite,
        target,
    ]


def _present(engine: Engine, os: OsRelease) -> BaseImage | None:
    image = local_images.find(engine, base_alias(os))
    if image is None:
        return None
    return BaseImage(base_alias(os), image.id, image.labels.get(LABEL_HOW, "registry"))


def _base(engine: Engine, os: OsRelease, how: str) -> BaseImage:
    return BaseImage(base_alias(os), str(local_images.inspect(engine, base_alias(os))["Id"]), how)


def _from_registry(
    engine: Engine, os: OsRelease, mode: Mode, on_line: Callable[[str], None], wanted: str
) -> bool:
    """Tag `os.image` if it is local, else pull `wanted`; False where `auto` has to bootstrap."""
    found = os.image
    if local_images.find(engine, os.image) is None:
        found, why = wanted, why_out_of_reach(engine, wanted)
        if why and mode == "auto" and os.bootstrap:
            on_line(f"{wanted} is not in reach, bootstrapping {os.suite}: {why}")
            return False
        if why:
            raise _no_base(os, wanted, why)
        on_line(f"pulling {wanted}")
        _pull(engine, wanted)
    local_images.tag(engine, found, base_alias(os))
    return True


def _no_base(os: OsRelease, wanted: str, why: str) -> Exception:
    hint = f"docker pull {os.image}, on a machine that reaches it, then docker save and load"
    if os.bootstrap:
        hint = "set `base: bootstrap`"
    return EngineError.of(f"base image `{wanted}` is not in reach", evidence=[why], hint=hint)


def _pull(engine: Engine, reference: str) -> None:
    repository, tag = local_images.split_reference(reference)
    with engine_errors(f"pull `{reference}`"), engine.fresh(timeout=PULL_SECONDS) as api:
        for message in api.pull(repository, tag, stream=True, decode=True):
            if "error" in message:
                raise sdk.errors.DockerException(message["error"])


def _bootstrap(engine: Engine, os: OsRelease, on_line: Callable[[str], None]) -> None:
    if not os.bootstrap:
        text = f"`{os.id}` cannot be bootstrapped from a package archive"
        raise EngineError.of(text, hint=f"set `base: registry` to take `{os.image}`")
    if shutil.which("mmdebstrap") is None:
        text = f"mmdebstrap is missing, which bootstraps the base of `{os.id}`"
        raise EngineError.of(text, hint=HINT_FIX)
    with tempfile.TemporaryDirectory(prefix="imagegen-base-") as folder:
        rootfs = Path(folder, "rootfs.tar")
        argv = bootstrap_command(os.suite, str(rootfs))
        # With a fixed time, equal packages give equal bytes.
        ended = process.run(argv, on_line, {"SOURCE_DATE_EPOCH": "0"})
        if ended.code != 0:
            text = f"mmdebstrap did not bootstrap `{os.suite}` (exit code {ended.code})"
            raise EngineError.of(text, evidence=ended.tail, hint="imagegen doctor")
        _import(engine, rootfs, base_alias(os))


def _import(engine: Engine, rootfs: Path, ref: str) -> None:
    repository, tag = local_images.split_reference(ref)
    params = {
        "fromSrc": "-",
        "repo": repository,
        "tag": tag,
        "changes": [f"LABEL {LABEL_HOW}=bootstrap", 'CMD ["bash"]'],
    }
    with engine_errors(f"import `{ref}`"), rootfs.open("rb") as data, engine.fresh() as api:
        answer = api.post(
            engine.url("/images/create"),
            params=params,
            data=data,
            headers={"Content-Type": "application/x-tar"},
            timeout=(CALL_SECONDS, PULL_SECONDS),
        )
        if not answer.ok or b'"error"' in answer.content:
            raise sdk.errors.DockerException(error_of(answer.content))
