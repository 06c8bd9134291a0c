"""Bring the parts of builds onto this host: every one of them checked before any build starts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from imagegen.config.state import state_folder
from imagegen.engine.builds.context import HostFile
from imagegen.engine.host.download import (
    Download,
    fetch,
    fetch_unverified,
    sha256_of,
)
from imagegen.engine.host.probe import probe, without_secrets
from imagegen.errors import ConfigError, ImagegenError, Problem
from imagegen.model.recipe import UNVERIFIED, Part
from imagegen.sources.artifacts import Artifact, Artifacts, artifact_for, read_artifacts
from imagegen.sources.mirrors import read_mirrors, rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from imagegen.config.payload import Payload

MOST_AT_ONCE = 4


@dataclass(frozen=True)
class Store:
    """Where parts come from. `cache` keeps downloads; `allow_unverified` takes a tarball whose row
    has no sha256."""

    artifacts: Artifacts
    mirrors: Mapping[str, str]
    cache: Path
    ca_bundle: Path | None = None
    allow_unverified: bool = False


def open_store(
    payload: Payload, ca_bundle: Path | None = None, *, allow_unverified: bool = False
) -> Store:
    """Read artifacts.yaml and mirrors.yaml. Raises ConfigError for what is wrong in them."""
    return Store(
        artifacts=read_artifacts(payload),
        mirrors=read_mirrors(payload),
        cache=state_folder() / "parts",
        ca_bundle=ca_bundle,
        allow_unverified=allow_unverified,
    )


def supply(
    parts: Iterable[Part], store: Store, on_line: Callable[[str], None] = lambda _: None
) -> dict[Part, HostFile]:
    """The file of every part, its sha256 checked; what has to be downloaded is, side by side.

    Raises the problems of all parts at once: ConfigError where one is not listed, missing, or
    another file than it should be; BuildError where one cannot be downloaded now.
    """
    wanted = list(dict.fromkeys(parts))
    problems = lacking(wanted, store)
    if problems:
        raise ConfigError(*problems)
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        tasks = {part: pool.submit(_bring, part, store, on_line) for part in wanted}
    errors = [e for task in tasks.values() if isinstance(e := task.exception(), ImagegenError)]
    if errors:
        raise type(errors[0])(*(problem for error in errors for problem in error.problems))
    return {part: task.result() for part, task in tasks.items()}


def lacking(parts: Iterable[Part], store: Store) -> list[Problem]:
    """What is wrong with parts as far as it can be seen without downloading anything."""
    return [problem for part in parts if (problem := _unready(part, store))]


def missing_upstream(parts: Iterable[Part], store: Store) -> dict[Part, Problem]:
    """The parts whose server says that it does not have them, asked side by side; what was brought
    in before is not asked for, and a server that does not answer now may have it."""
    wanted = [
        part
        for part in dict.fromkeys(parts)
        if part.url and not (store.cache / part.sha256).is_file()
    ]
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        urls = [rewrite(part.url, store.mirrors) for part in wanted]
        answers = [*pool.map(lambda url: probe(url, store.ca_bundle), urls)]
    return {
        part: Problem(f"{part} cannot be had: {answer.evidence}", evidence=(without_secrets(url),))
        for part, url, answer in zip(wanted, urls, answers, strict=True)
        if answer.state == "missing"
    }


def _unready(part: Part, store: Store) -> Problem | None:
    """What can be seen to be wrong before anything is downloaded."""
    if part.sha256 == UNVERIFIED and not store.allow_unverified:
        return Problem(
            f"nothing vouches for the tarball of {part.row}: its sha256 is `unverified`",
            evidence=(part.url,),
            hint="give the row its sha256, or build with `--allow-unverified`; a label says so",
        )
    if part.url:
        return None
    try:
        return problem_of(artifact_for(store.artifacts, part.name, part.version, part.os))
    except ConfigError as error:
        return _needed_by(error.problems[0], part)


def _needed_by(problem: Problem, part: Part) -> Problem:
    evidence = (f"needed by {part.row}", *problem.evidence)
    return Problem(problem.text, problem.file, problem.line, evidence=evidence, hint=problem.hint)


def _bring(part: Part, store: Store, on_line: Callable[[str], None]) -> HostFile:
    if not part.url:
        listed = artifact_for(store.artifacts, part.name, part.version, part.os)
        path = obtain(listed, store.mirrors, store.cache, store.ca_bundle, on_line)
        return HostFile(f"{part.folder}/{listed.file_name}", path, listed.sha256)
    wanted = Download(rewrite(part.url, store.mirrors), part.sha256, upstream=part.url)
    name = unquote(urlsplit(part.url).path).rpartition("/")[2]
    if part.sha256 == UNVERIFIED:
        path = fetch_unverified(wanted, store.cache, store.ca_bundle, on_line)
    else:
        path = fetch(wanted, store.cache, store.ca_bundle, on_line)
    return HostFile(f"{part.folder}/{name}", path, sha256_of(path))


def problem_of(part: Artifact) -> Problem | None:
    """What is wrong with the file that `path` names; None where it is right, or there is a `url`.

    Raises nothing: a file that cannot be read is a problem like one that is not there.
    """
    if part.path is None:
        return None
    try:
        size, found = part.path.stat().st_size, sha256_of(part.path)
    except OSError as error:
        why = "is not there" if isinstance(error, FileNotFoundError) else "cannot be read"
        return _file_problem(part, why, error.strerror or str(error))
    if found == part.sha256:
        return None
    text = "is another file than the one that is listed"
    return _file_problem(part, text, f"sha256 is {found}, wanted {part.sha256}; {size} bytes")


def obtain(
    part: Artifact,
    mirrors: Mapping[str, str],
    cache: Path,
    ca_bundle: Path | None = None,
    on_line: Callable[[str], None] = lambda _: None,
) -> Path:
    """The part's file, its sha256 checked; one with a `url` is downloaded into `cache` first.

    Raises ConfigError where it is missing or another file, BuildError where it cannot be had now.
    """
    problem = problem_of(part)
    if problem:
        raise ConfigError(problem)
    if part.path is not None:
        return part.path
    url = rewrite(part.url, mirrors)
    return fetch(Download(url, part.sha256, part.size_bytes, part.url), cache, ca_bundle, on_line)


def _file_problem(part: Artifact, text: str, evidence: str) -> Problem:
    return Problem(
        f"`{part.path}`, the vendor part `{part.name}` {part.version}, {text}",
        part.listed,
        part.line,
        evidence=(evidence, f"licence: {part.licence}"),
        hint=f"put {part.file_name} with sha256 {part.sha256} at `{part.path}`",
    )
