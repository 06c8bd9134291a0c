"""Bring the parts of builds onto this host, and check each of them before any build starts."""

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
    """The places that parts come from.

    `cache` keeps downloads; `allow_unverified` accepts a tarball whose row has no sha256.
    """

    artifacts: Artifacts
    mirrors: Mapping[str, str]
    cache: Path
    ca_bundle: Path | None = None
    allow_unverified: bool = False


def open_store(
    payload: Payload, ca_bundle: Path | None = None, *, allow_unverified: bool = False
) -> Store:
    """Read artifacts.yaml and mirrors.yaml.

    Raises ConfigError for what is wrong in them.
    """
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
    """Return the file of every part, with its sha256 checked; download missing ones in parallel.

    Raises the problems of all parts at once: ConfigError where one is not listed, missing, or not
    the expected file; BuildError where one cannot be downloaded now.
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
    """List what is wrong with parts, as far as it shows without a download."""
    return [problem for part in parts if (problem := _unready(part, store))]


def missing_upstream(parts: Iterable[Part], store: Store) -> dict[Part, Problem]:
    """Find the parts whose server says that it does not have them.

    The servers are asked in parallel. A part that was downloaded before is not asked for. A server
    that does not answer is not reported: it may have the part.
    """
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
    """Find what is wrong with a part, as far as it shows without a download."""
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
    """Find what is wrong with the file at `path`; None if it is right, or if there is a `url`.

    Raises nothing: a file that cannot be read is a problem like a missing one.
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
    """Return the file of a part, its sha256 checked; download it into `cache` if it has a `url`.

    Raises ConfigError where the file is missing or not the expected one, BuildError where it cannot
    be downloaded now.
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
