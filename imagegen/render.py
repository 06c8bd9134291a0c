"""ImageSpec + layer order -> Recipe: Dockerfile text, context files and the digest over both.

Same inputs, same bytes: no clock, no network, no environment, no dictionary order.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from imagegen import __version__
from imagegen.base import base_of
from imagegen.errors import RenderError
from imagegen.expectation import as_json, contract, environment, expectation, stage_env
from imagegen.model import EXPECTATION_PATH, ContextFile, Recipe, StepOrigin
from imagegen.replay import Replay
from imagegen.templates import Mark, Templates, split_marks, without_marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from imagegen.model import Catalog, ImageSpec, Pin, Release
    from imagegen.payload import Payload

BUILD_ENV = "build-env"
"""Context folder that the downloading steps mount; certificates join it at build time only."""


_OWN = "image/"
"""Context folder of what is written for this image alone."""

_EMPTY_LINES = re.compile(r"\n{3,}")


class _Body(NamedTuple):
    """What a template came to: text, and where its instructions came from."""

    text: str
    marks: tuple[Mark, ...]
    origins: tuple[StepOrigin, ...]


class _Shared(NamedTuple):
    """Context files that images of the same components share, in order, with the part of the
    digest that they make: those before an image's own files, and those after."""

    before: tuple[ContextFile, ...]
    after: tuple[ContextFile, ...]
    digested: tuple[bytes, bytes]


class Renderer:
    """Renders any number of images from one payload; templates are compiled once."""

    def __init__(self, payload: Payload, catalog: Catalog) -> None:
        self._payload = payload
        self._catalog = catalog
        self._templates = Templates(payload)
        self._folders: dict[str, tuple[ContextFile, ...]] = {}
        self._bodies: Replay[_Body] = Replay()
        self._shared: dict[tuple[str, ...], _Shared] = {}
        self._ways: dict[tuple[str, int], Release] = {}

    def recipe(self, spec: ImageSpec, order: Sequence[str]) -> Recipe:
        """The recipe of one image.

        Raises RenderError when a template fails, or none goes the way of a row or of the OS.
        """
        _need_apt(spec)
        base_steps, origins = self._base_steps(spec)
        stages, more = self._stages(spec, [name for name in order if spec.pin(name)])
        context = {
            "image": spec,
            "os": spec.os,
            "base": base_of(spec).image,
            "base_steps": base_steps,
            "stages": stages,
            "last": _last_stage(spec, order),
            "entrypoint": self._entrypoint(spec),
            "expectation_path": EXPECTATION_PATH,
            "tool": __version__,
        }
        text = without_marks(self._templates.render("Dockerfile.j2", context, spec.tag))
        dockerfile = _tidy(text)
        document = expectation(spec, order, self._catalog)
        own = _own_files(document)
        shared = self._shared_files(spec)
        before, after = shared.digested
        return Recipe(
            spec=spec,
            dockerfile=dockerfile,
            files=(*shared.before, *own, *shared.after),
            origins=(*origins, *more),
            contract=contract(spec, self._catalog),
            digest=_digest(dockerfile, [before, *map(_digested, own), after]),
            templates=self._templates.hashes,
        )

    def _base_steps(self, spec: ImageSpec) -> tuple[list[str], tuple[StepOrigin, ...]]:
        """What components do to the base before anything is installed on it."""
        texts: list[str] = []
        origins: list[StepOrigin] = []
        for name in sorted(pin.component for pin in spec.pins):
            if self._templates.has(f"components/{name}/base.j2"):
                body = self._body(spec, name, "base")
                texts += [body.text] if body.text.strip() else []
                origins += _origins("base", name, body.marks, len(origins))
        return texts, tuple(origins)

    def _stages(
        self, spec: ImageSpec, order: Sequence[str]
    ) -> tuple[list[str], tuple[StepOrigin, ...]]:
        texts: list[str] = []
        origins: list[StepOrigin] = []
        previous, path = "base", environment(spec, (), self._catalog)["PATH"]
        for name in order:
            self._need_a_way(spec, name)
            base = self._build_base(name, order)
            for kind, parent in (("build", base), ("install", previous)):
                if not self._templates.has(f"components/{name}/{kind}.j2"):
                    continue
                stage = _stage(name, kind)
                body = self._body(spec, name, kind)
                if kind == "build" and not body.text.strip():
                    continue  # this row needs nothing compiled
                env = self._stage_env(spec, name, path) if kind == "install" else {}
                texts.append("\n".join([f"FROM {parent} AS {stage}", *_env_lines(env), body.text]))
                origins += body.origins
                path = env.get("PATH", path)
            previous = name
        return texts, tuple(origins)

    def _stage_env(self, spec: ImageSpec, name: str, path: str) -> dict[str, str]:
        pin = spec.pin(name)
        assert pin is not None
        return stage_env(self._catalog.components[name], pin.release, path)

    def _need_a_way(self, spec: ImageSpec, name: str) -> None:
        """A row may be in the catalog before a template can install it; an image may not."""
        pin = spec.pin(name)
        assert pin is not None
        if self._ways.get((name, id(pin.release))) is pin.release:
            return
        ways, installs = ways_of(pin.release), self._catalog.components[name].installs
        has_template = self._templates.has(f"components/{name}/install.j2")
        if has_template and (not installs or set(ways) & set(installs)):
            self._ways[name, id(pin.release)] = pin.release
            return
        raise RenderError.of(
            f"{pin.release.where} cannot be installed yet: no template goes its way",
            evidence=[
                f"`{spec.tag}` asks for it",
                f"it is had by: {', '.join(ways) or 'nothing that the row says'}",
                f"dockerfiles/components/{name} installs: {', '.join(installs) or 'nothing'}",
            ],
            hint=f"choose another release of {name}, or write its template and add to `installs`",
        )

    def _build_base(self, name: str, order: Sequence[str]) -> str:
        """The earliest stage of the chain that has all that a build stage needs."""
        needs = self._catalog.components[name].needs
        at = [order.index(need) for need in needs if need in order]
        return order[max(at)] if at else "base"

    def _body(self, spec: ImageSpec, name: str, kind: str) -> _Body:
        """What a template comes to; rendered again only for an image that reads another way."""
        entrypoint = self._catalog.components[name].entrypoint

        def rendered(seen: Mapping[str, Any]) -> _Body:
            image, pins = seen["image"], seen["pins"]
            context = {
                "image": image,
                "os": image.os,
                "release": pins[name],
                "pins": pins,
                "entrypoint": entrypoint,
            }
            template = f"components/{name}/{kind}.j2"
            text, marks = split_marks(self._templates.render(template, context, spec.tag))
            return _Body(text, marks, tuple(_origins(_stage(name, kind), name, marks)))

        subjects = {"image": spec, "pins": _releases(spec.pins)}
        try:
            return self._bodies.made((name, kind), subjects, rendered)
        except RenderError:
            return rendered(subjects)  # raises again, in the names that a template's author knows

    def _entrypoint(self, spec: ImageSpec) -> str:
        found = [self._catalog.components[pin.component].entrypoint for pin in spec.pins]
        return next((entrypoint for entrypoint in found if entrypoint), "")

    def _shared_files(self, spec: ImageSpec) -> _Shared:
        names = tuple(pin.component for pin in spec.pins)
        if names not in self._shared:
            files = sorted(self._files(names), key=lambda file: file.path)
            before = tuple(file for file in files if file.path < _OWN)
            after = tuple(file for file in files if file.path >= _OWN)
            digested = b"".join(map(_digested, before)), b"".join(map(_digested, after))
            self._shared[names] = _Shared(before, after, digested)
        return self._shared[names]

    def _files(self, names: Sequence[str]) -> Iterator[ContextFile]:
        yield from self._folder("dockerfiles/build-env", BUILD_ENV)
        for name in names:
            yield from self._folder(f"dockerfiles/components/{name}/files", name)
            for target, tree in self._catalog.components[name].trees.items():
                yield from self._folder(tree, target, code=True)

    def _folder(self, source: str, target: str, *, code: bool = False) -> tuple[ContextFile, ...]:
        if source not in self._folders:
            tree = self._payload.code(source) if code else self._payload.tree(source)
            self._folders[source] = tuple(
                ContextFile(f"{target}/{name}", path.read_bytes()) for name, path in tree
            )
        return self._folders[source]


def _need_apt(spec: ImageSpec) -> None:
    """Every template installs with apt: the catalog knows more families than they serve."""
    if spec.os.family != "debian":
        raise RenderError.of(
            f"no template installs anything on {spec.os.id} yet: all of them speak to apt",
            evidence=[f"`{spec.tag}` asks for it", f"{spec.os.file}: family {spec.os.family}"],
            hint="choose an OS of the Debian family, such as ubuntu22.04 or debian12",
        )


def ways_of(release: Release) -> tuple[str, ...]:
    """How the bits of a row can be had: the data that it carries for a template."""
    data = {
        "apt": release.apt,
        "wheels": release.wheels,
        "index": release.index,
        "tarball": release.tarball,
        "artifact": release.artifact,
        "conda": release.variant == "conda",
        "base": "image" in release.facts,
    }
    return tuple(name for name, there in data.items() if there)


def _releases(pins: Sequence[Pin]) -> Mapping[str, object]:
    return {pin.component: pin.release for pin in pins}


def _stage(name: str, kind: str) -> str:
    return name if kind == "install" else f"{name}-build"


def _last_stage(spec: ImageSpec, order: Sequence[str]) -> str:
    present = [name for name in order if spec.pin(name)]
    return present[-1] if present else "base"


def _env_lines(env: Mapping[str, str]) -> list[str]:
    if not env:
        return []
    return ["ENV " + " \\\n    ".join(f"{name}={value}" for name, value in env.items())]


def _origins(stage: str, component: str, marks: Sequence[Mark], first: int = 0) -> list[StepOrigin]:
    return [
        StepOrigin(stage, index, component, f"dockerfiles/{mark.template}", mark.line)
        for index, mark in enumerate(marks, first)
    ]


def _tidy(text: str) -> str:
    """One final newline, no trailing blanks, never two empty lines in a row."""
    lines = "\n".join(map(str.rstrip, text.split("\n")))
    return _EMPTY_LINES.sub("\n\n", lines).strip() + "\n"


def _own_files(document: Mapping[str, Any]) -> tuple[ContextFile, ...]:
    """In the order of their paths."""
    lines = [f'{name}="{value}"\n' for name, value in document["env"].items()]
    return (
        ContextFile(f"{_OWN}environment", "".join(lines).encode()),
        ContextFile(f"{_OWN}image.json", as_json(document)),
    )


def _digest(dockerfile: str, files: Iterable[bytes]) -> str:
    """sha256 over the Dockerfile and every context file with its path and mode."""
    total = hashlib.sha256(dockerfile.encode())
    for digested in files:
        total.update(digested)
    return f"sha256:{total.hexdigest()}"


def _digested(file: ContextFile) -> bytes:
    head = f"\0{file.path}\0{file.mode:o}\0".encode()
    return head + hashlib.sha256(file.data).digest()
