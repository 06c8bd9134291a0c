"""Launch an image, run `validate` in it, keep the record, and remove the container in every case.

Some things are not visible in a container: a secret that one layer has and a later one deletes, and
those in labels, build arguments and the history. They are searched here, and become more checks of
the report.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from imagegen.engine.client import engine_errors
from imagegen.engine.containers import containers
from imagegen.engine.images import local_images
from imagegen.errors import ConfigError, EngineError, ValidationError
from imagegen.model.labels import LABEL_CONTRACT
from imagegen.model.recipe import EXPECTATION_PATH
from imagegen.model.validation import ValidationRecord
from imagegen.text import human_bytes
from imagegen.validation.foreign import foreign_launch, is_foreign, program
from imagegen.validation.image_secrets import secrets_of
from imagegen.validation.reports import read_report, with_check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from imagegen.engine.client import Engine
    from imagegen.engine.images.local_image import LocalImage
    from imagegen.model.launch import Contract
    from imagegen.model.validation import Report
    from imagegen.validation.image_secrets import ImageSecrets

    Command = Callable[[containers.Container], tuple[str, ...]]

REPORT_FOLDER = "/run/imagegen"
"""A new folder for the report, because the image's folders for temporary files may be broken."""
REPORT_PATH = f"{REPORT_FOLDER}/report.json"
EXPECT_PATH = f"{REPORT_FOLDER}/expect.json"
INFER_SECONDS = 120.0
FULL_SECONDS = 1800.0
NOT_LOADED = "error: a suite does not load"
"""The begin of a line in which `validate` names a suite that is therefore not in the report."""

MOST_NAMED = 6
"""The most secrets that one check names."""

USAGE, NOT_FOUND, NOT_EXECUTABLE = 2, 127, 126
"""Exit codes; the first one is also that of an image without a usable expectation file."""

PROGRAM = "/usr/local/bin/validate"
"""Where every image has it: the image's PATH may be what is wrong."""


@dataclass(frozen=True)
class ValidationRequest:
    """Say what to run: `static` or all suites, more arguments for `validate`, a time limit.

    The limit `timeout` is in seconds. `expect` is an expectation file of this host that counts in
    place of the image's own.
    """

    static: bool = False
    arguments: tuple[str, ...] = ()
    look_into_layers: bool = True
    timeout: float = FULL_SECONDS
    expect: str = ""

    @property
    def tier(self) -> str:
        """Return `static`, `full`, or `partial` where only some suites were asked for."""
        if "--only" in self.arguments:
            return "partial"
        return "static" if self.static else "full"

    @property
    def argv(self) -> list[str]:
        """Return the command that runs in the container."""
        static = ["--static"] if self.static else []
        expect = ["--expect", EXPECT_PATH] if self.expect else []
        return [PROGRAM, *static, "--json", REPORT_PATH, *expect, *self.arguments]


def launch_spec(image_id: str, contract: Contract) -> containers.LaunchSpec:
    """Describe the container that the image's own contract asks for, with a private network."""
    return containers.LaunchSpec(
        image=image_id,
        command=("sleep", "infinity"),
        caps=tuple(contract.get("caps", ())),
        devices=tuple(contract.get("devices", ())),
        ulimits=dict(contract.get("ulimits", {})),
        shm_bytes=int(contract.get("shm_bytes", 0)),
    )


def validate_image(
    engine: Engine,
    ref: str,
    request: ValidationRequest,
    on_line: Callable[[str], None],
    on_start: Callable[[str], None] = lambda _: None,
) -> ValidationRecord:
    """Validate exactly the image that `ref` names now; call `on_start` with the container's id.

    A failed check gives a record that did not pass. ValidationError is raised where `validate`
    itself could not run: no such image, no expectation file, a container that died.
    """
    image = _found(engine, ref)
    started = time.monotonic()
    with (
        _launch(engine, image, ref) as (spec, command),
        containers.running(engine, spec) as container,
    ):
        on_start(container.id)
        for note in container.notes:
            on_line(f"note: {note}")
        report = _run(container, ref, request, command, on_line)
    if request.look_into_layers:
        # The engine only exports an image as a whole; that takes minutes for some GB.
        on_line(f"looking for secrets in all layers, {human_bytes(image.size_bytes)}")
        found = secrets_of(engine, image.id)
        report = with_secrets(report, found)
        for secret in found:
            on_line(f"image  failed  {secret}")
    return ValidationRecord(
        image_id=image.id,
        tag=ref,
        tier=request.tier,
        passed=report["exit_code"] == 0,
        counts=report["counts"],
        seconds=time.monotonic() - started,
        report=report,
    )


def infer(engine: Engine, ref: str) -> str:
    """Return the expectation file of what is found in an image, as JSON.

    Raises ValidationError where there is no such image, or `validate` cannot run in it.
    """
    image = _found(engine, ref)
    with (
        _launch(engine, image, ref) as (spec, command),
        containers.running(engine, spec) as container,
    ):
        if not container.alive():
            raise _died(container, ref)
        result = container.exec([*command(container), "--infer"], INFER_SECONDS)
    if result.code != 0:
        raise _no_report(ref, result.code, _tail(result.out + result.err))
    return result.out


def _found(engine: Engine, ref: str) -> LocalImage:
    image = local_images.find(engine, ref)
    if image is None:
        raise ValidationError.of(
            f"the engine has no image `{ref}`",
            hint="build it first: `imagegen build`, or pull it",
        )
    return image


@contextmanager
def _launch(
    engine: Engine, image: LocalImage, ref: str
) -> Iterator[tuple[containers.LaunchSpec, Command]]:
    """Describe how an image is started, and what its `validate` is: its own, or one brought."""
    contract = contract_of(ref, image.labels)
    if is_foreign(engine, image.id, image.labels, PROGRAM):
        with foreign_launch(image.id) as spec:
            yield spec, lambda container: program(container, ref)
    else:
        yield launch_spec(image.id, contract), lambda _: (PROGRAM,)


def contract_of(ref: str, labels: Mapping[str, str]) -> Contract:
    """Read what an image needs at its launch.

    Raises ValidationError where its label is not a JSON object.
    """
    try:
        found = json.loads(labels.get(LABEL_CONTRACT, "{}"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValidationError.of(
            f"the contract label of `{ref}` is not a JSON object",
            evidence=[f"{LABEL_CONTRACT}={labels.get(LABEL_CONTRACT)}"],
            hint="build the image again",
        )
    return cast("Contract", found)


def _run(
    container: containers.Container,
    ref: str,
    request: ValidationRequest,
    command: Command,
    on_line: Callable[[str], None],
) -> Report:
    if not container.alive():
        raise _died(container, ref)
    try:
        container.make_folder(REPORT_FOLDER)
        if request.expect:
            container.write_file(EXPECT_PATH, Path(request.expect).read_bytes())
        argv = [*command(container), *request.argv[1:]]
        result = container.exec(argv, request.timeout, on_output=on_line)
    except EngineError:
        if container.alive():
            raise
        raise _died(container, ref) from None  # between the look at it and the command
    if not container.alive():
        raise _died(container, ref)
    if result.timed_out:
        raise ValidationError.of(
            f"`validate` in `{ref}` did not end within {request.timeout:.0f} s",
            evidence=_tail(result.out + result.err),
            hint=f"look inside: `docker run -it {ref} bash`, then `validate --list`",
        )
    try:
        report = read_report(container.read_file(REPORT_PATH))
    except (FileNotFoundError, ValueError):
        raise _no_report(ref, result.code, _tail(result.out + result.err)) from None
    unloaded = [line for line in result.err.splitlines() if line.startswith(NOT_LOADED)]
    if unloaded:
        report["unloaded"] = unloaded
    return {**report, "exit_code": result.code}


def _died(container: containers.Container, ref: str) -> Exception:
    return ValidationError.of(
        f"the container of `{ref}` died before `validate` ended",
        evidence=_tail(container.logs()),
        hint=f"start it by hand to see more: `docker run -it {ref}`",
    )


def _no_report(ref: str, code: int | None, tail: Sequence[str]) -> Exception:
    if code in (NOT_FOUND, NOT_EXECUTABLE):
        return ValidationError.of(
            f"`{ref}` has no {PROGRAM}", evidence=tail, hint="build it with imagegen"
        )
    if code == USAGE and not any(EXPECTATION_PATH in line for line in tail):
        return ConfigError.of(f"`validate` in `{ref}` refused to run", evidence=tail)
    if code == USAGE:
        return ValidationError.of(
            f"`validate` in `{ref}` does not know what to expect",
            evidence=tail,
            hint="build the image with imagegen, which writes /etc/imagegen/image.json",
        )
    return ValidationError.of(f"`validate` in `{ref}` left no report (exit {code})", evidence=tail)


def _tail(text: str, lines: int = 12) -> list[str]:
    return [line for line in text.splitlines() if line.strip()][-lines:]


def with_secrets(report: Report, found: ImageSecrets) -> Report:
    """Add the checks of secrets in layers, settings and history to a report."""
    for check, secrets, none in (
        ("image.private-key-in-layer", found.keys, "no private key in any layer"),
        ("image.secret-in-layer", found.credentials, "no credential in any layer"),
        ("image.secret-in-settings", found.settings, "none in settings and history"),
    ):
        measured = "; ".join(secrets[:MOST_NAMED]) or none
        measured += f"; and {len(secrets) - MOST_NAMED} more" if secrets[MOST_NAMED:] else ""
        report = with_check(report, check, "failed" if secrets else "passed", measured)
    return report


def stop(engine: Engine, container_id: str) -> None:
    """Stop a validation by killing its container; one that has ended is no error."""
    with suppress(EngineError), engine_errors("stop a validation"):
        engine.api.kill(container_id)
