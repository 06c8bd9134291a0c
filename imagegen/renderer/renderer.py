"""Render the recipe of an image: Dockerfile text, context files and the digest over both.

The same inputs give the same bytes: nothing depends on the clock, the network, the environment or
the order of a dictionary.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from imagegen import __version__
from imagegen.errors import RenderError
from imagegen.model.image import base_of
from imagegen.model.recipe import Recipe, StepOrigin
from imagegen.renderer.context_files import ContextFiles, digest, digested, own_files
from imagegen.renderer.dockerfile import OWN_FOLDER
from imagegen.renderer.image_json import BASE_ENV, BASE_PATH, expectation, stage_env
from imagegen.renderer.marks import Mark, split_marks, without_marks
from imagegen.renderer.memo import Replay, Subjects
from imagegen.renderer.templates import Templates
from imagegen.renderer.ways import need_apt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from imagegen.config.payload import Payload
    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec
    from imagegen.model.release import Release
    from imagegen.renderer.marks import Mark


class _Seen(TypedDict):
    """The values that a template of a component reads."""

    image: ImageSpec
    pins: Mapping[str, Release]


class _Place(TypedDict):
    """The place of a component in a Dockerfile.

    These are the stages that its own stages start from, and the PATH there.
    """

    previous: str
    base: str
    path: str


class _Placed(_Seen):
    """The values that the stages of a component are made from."""

    place: _Place


class _Part(NamedTuple):
    """The part of a Dockerfile that a component makes.

    These are its texts, the origins of their instructions, and the PATH after them.
    """

    texts: tuple[str, ...]
    origins: tuple[StepOrigin, ...]
    path: str = ""


class Renderer:
    """Renders any number of images from one payload; templates are compiled once."""

    def __init__(self, payload: Payload, catalog: Catalog) -> None:
        self._catalog = catalog
        self._templates = Templates(payload)
        self._context_files = ContextFiles(payload, catalog)
        self._parts: Replay[_Part] = Replay()

    def recipe(self, spec: ImageSpec, order: Sequence[str]) -> Recipe:
        """Render the recipe of one image.

        Raises RenderError when a template fails, or when no template can install a row or use the
        OS.
        """
        need_apt(spec)
        pins = {pin.component: pin.release for pin in spec.pins}
        present = [name for name in order if name in pins]
        base_steps, origins = self._base_steps(spec, pins)
        stages, more = self._stages(spec, pins, present)
        context = {
            "image": spec,
            "os": spec.os,
            "base": base_of(spec).image,
            "base_env": BASE_ENV,
            "base_steps": base_steps,
            "stages": stages,
            "last": present[-1] if present else "base",
            "user_steps": self._user_steps(spec, pins),
            "entrypoint": self._entrypoint(spec),
            "own_folder": OWN_FOLDER,
            "tool": __version__,
        }
        text = without_marks(self._templates.render("Dockerfile.j2", context, spec.tag))
        dockerfile = _tidy(text)
        document = expectation(spec, order, self._catalog)
        own = own_files(document)
        shared = self._context_files.shared(tuple(pins))
        before, after = shared.digested
        return Recipe(
            spec=spec,
            dockerfile=dockerfile,
            files=(*shared.before, *own, *shared.after),
            origins=(*origins, *more),
            contract=document["contract"],
            digest=digest(dockerfile, [before, *map(digested, own), after]),
            templates=self._templates.hashes,
        )

    def _base_steps(
        self, spec: ImageSpec, pins: Mapping[str, Release]
    ) -> tuple[list[str], list[StepOrigin]]:
        """Render what components change in the base before anything is installed on it."""
        texts: list[str] = []
        origins: list[StepOrigin] = []
        subjects: _Seen = {"image": spec, "pins": pins}
        for name in sorted(pins):
            if self._templates.has(f"components/{name}/base.j2"):
                part = self._made("base", name, subjects, partial(self._base_step, name, spec.tag))
                texts += part.texts
                first = len(origins)
                origins += [
                    one if one.index == at else replace(one, index=at)
                    for at, one in enumerate(part.origins, first)
                ]
        return texts, origins

    def _base_step(self, name: str, tag: str, seen: _Seen) -> _Part:
        text, marks = self._body(name, "base", tag, seen)
        return _Part((text,) if text.strip() else (), _origins("base", name, marks))

    def _user_steps(self, spec: ImageSpec, pins: Mapping[str, Release]) -> list[str]:
        """Render what components do in an image for a user other than root."""
        if spec.cell.user is None:
            return []
        seen: _Seen = {"image": spec, "pins": pins}
        names = [name for name in sorted(pins) if self._templates.has(f"components/{name}/user.j2")]
        return [self._body(name, "user", spec.tag, seen)[0] for name in names]

    def _stages(
        self, spec: ImageSpec, pins: Mapping[str, Release], order: Sequence[str]
    ) -> tuple[list[str], list[StepOrigin]]:
        texts: list[str] = []
        origins: list[StepOrigin] = []
        previous, path = "base", spec.cell.env.get("PATH", BASE_PATH)
        for name in order:
            base = self._build_base(name, order)
            place: _Place = {"previous": previous, "base": base, "path": path}
            subjects: _Placed = {"image": spec, "pins": pins, "place": place}
            part = self._made("stages", name, subjects, partial(self._part, name, spec.tag))
            texts += part.texts
            origins += part.origins
            previous, path = name, part.path
        return texts, origins

    def _made(
        self,
        kind: str,
        name: str,
        subjects: Subjects,
        make: Callable[[Subjects], _Part],
    ) -> _Part:
        """Reuse a part that was made for an image with the same values, or make it."""
        try:
            return self._parts.made((kind, name), subjects, make)
        except RenderError:
            return make(subjects)  # raises again, with the names that the template uses

    def _part(self, name: str, tag: str, seen: _Placed) -> _Part:
        """Render the stages of a component: one to compile it, if needed, and one to install it."""
        release, place = seen["pins"][name], seen["place"]
        self._need_a_way(release, tag)
        texts: list[str] = []
        origins: list[StepOrigin] = []
        path = place["path"]
        for kind, parent in (("build", place["base"]), ("install", place["previous"])):
            if not self._templates.has(f"components/{name}/{kind}.j2"):
                continue
            stage = name if kind == "install" else f"{name}-build"
            text, marks = self._body(name, kind, tag, seen)
            if kind == "build" and not text.strip():
                continue  # this row needs nothing compiled
            component = self._catalog.components[name]
            env = stage_env(component, release, path) if kind == "install" else {}
            texts.append("\n".join([f"FROM {parent} AS {stage}", *_env_lines(env), text]))
            origins += _origins(stage, name, marks)
            path = env.get("PATH", path)
        return _Part(tuple(texts), tuple(origins), path)

    def _need_a_way(self, release: Release, tag: str) -> None:
        """Raise RenderError for a release that no template can install.

        The catalog may have a release before a template can install it; an image may not.
        """
        name = release.component
        component, ways = self._catalog.components[name], release.ways
        has_template = self._templates.has(f"components/{name}/install.j2")
        if has_template and component.installs_one(release):
            return
        installs = component.installs
        raise RenderError.of(
            f"{release.where} cannot be installed yet: no template installs it",
            evidence=[
                f"`{tag}` asks for it",
                f"the release needs: {', '.join(ways) or 'nothing that its row names'}",
                f"the templates of {name} install: {', '.join(installs) or 'nothing'}",
            ],
            hint=f"choose another release of {name}, or write its template and add to `installs`",
        )

    def _build_base(self, name: str, order: Sequence[str]) -> str:
        """Find the earliest stage of the chain that has everything a build stage needs."""
        needs = self._catalog.components[name].needs
        at = [order.index(need) for need in needs if need in order]
        return order[max(at)] if at else "base"

    def _body(self, name: str, kind: str, tag: str, seen: _Seen) -> tuple[str, tuple[Mark, ...]]:
        image, pins = seen["image"], seen["pins"]
        context = {
            "image": image,
            "os": image.os,
            "release": pins[name],
            "pins": pins,
            "entrypoint": self._catalog.components[name].entrypoint,
        }
        return split_marks(self._templates.render(f"components/{name}/{kind}.j2", context, tag))

    def _entrypoint(self, spec: ImageSpec) -> str:
        found = [self._catalog.components[pin.component].entrypoint for pin in spec.pins]
        return next((entrypoint for entrypoint in found if entrypoint), "")


def _env_lines(env: Mapping[str, str]) -> list[str]:
    if not env:
        return []
    return ["ENV " + " \\\n    ".join(f"{name}={value}" for name, value in env.items())]


def _origins(stage: str, component: str, marks: Sequence[Mark]) -> tuple[StepOrigin, ...]:
    return tuple(
        StepOrigin(stage, index, component, f"dockerfiles/{mark.template}", mark.line)
        for index, mark in enumerate(marks)
    )


def _tidy(text: str) -> str:
    """Remove trailing blanks and repeated empty lines; end the text with one newline."""
    tidy = "\n".join(map(str.rstrip, text.split("\n")))
    while "\n\n\n" in tidy:
        tidy = tidy.replace("\n\n\n", "\n\n")
    return tidy.strip() + "\n"
