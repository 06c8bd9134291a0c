"""Compile and render Jinja templates: sandboxed, strict, each compiled once, with line marks.

Others import this module where they first use it: Jinja takes longer to load than a family of
images that was kept from the last run.
"""

from __future__ import annotations

import hashlib
import traceback
from typing import TYPE_CHECKING

from jinja2 import (
    FileSystemLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
)

from imagegen.config.payload import leads_into
from imagegen.errors import Problem, RenderError
from imagegen.renderer.limits import MOST_TEXT, TooMuch, allow
from imagegen.renderer.marks import marked
from imagegen.renderer.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from jinja2 import Environment

    from imagegen.config.payload import Payload

_HASH_LETTERS = 12
_HINT = "correct the template, or add what it asks for to the component's release"
_HINT_LIMIT = "let the template do less: its limits are in imagegen/renderer/limits.py"


class _MarkingLoader(FileSystemLoader):
    def __init__(self, folders: list[Path]) -> None:
        super().__init__(folders)
        self._folders = folders
        self.hashes: dict[str, str] = {}

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        self._check(template)
        source, filename, uptodate = super().get_source(environment, template)
        self.hashes[template] = hashlib.sha256(source.encode()).hexdigest()[:_HASH_LETTERS]
        return marked(source, template), filename, uptodate

    def _check(self, template: str) -> None:
        """Raise TemplateSyntaxError for a link that leads out of its folder, and a huge file."""
        paths = [folder / template for folder in self._folders]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            return
        text = ""
        if not any(leads_into(path, folder) for folder in self._folders):
            text = f"template `{template}` is a link that leads out of its folder"
        elif (size := path.stat().st_size) > MOST_TEXT:
            text = f"template `{template}` has {size} bytes, {MOST_TEXT} are allowed"
        if text:
            raise TemplateSyntaxError(text, 1, template, str(path))


class Templates:
    """All templates under `dockerfiles/` of all roots; the first root that has one wins."""

    def __init__(self, payload: Payload) -> None:
        folders: list[Path] = [root / "dockerfiles" for root in payload.roots]
        loader = _MarkingLoader(folders)
        self.hashes: Mapping[str, str] = loader.hashes
        """The hash of every template used so far, by its path below `dockerfiles/`."""
        self._environment = Sandbox(
            loader=loader,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
            autoescape=False,
            cache_size=-1,
            auto_reload=False,
        )
        self._there: dict[str, bool] = {}

    def has(self, name: str) -> bool:
        """Say whether there is a template of this name."""
        if name not in self._there:
            self._there[name] = self._has(name)
        return self._there[name]

    def _has(self, name: str) -> bool:
        try:
            self._environment.get_template(name)
        except TemplateNotFound:
            return False
        except _FAILURES as error:
            raise _as_problem(name, error) from None
        return True

    def render(self, name: str, context: Mapping[str, object], image: str) -> str:
        """Render a template; the marks stay in the text.

        Raises RenderError with template, line and the image that it was for.
        """
        self._environment.budget.begin()
        try:
            text = self._environment.get_template(name).render(context)
            allow(len(text))
        except _FAILURES as error:
            raise _as_problem(name, error, image) from None
        return text


_FAILURES = (
    TemplateError,
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
    ArithmeticError,
    SyntaxError,  # of Python: more than 20 loops in one another
    RecursionError,
)


def _as_problem(name: str, error: Exception, image: str = "") -> RenderError:
    line = getattr(error, "lineno", 0) or 0
    file = getattr(error, "filename", "") or ""
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.endswith(".j2"):
            file, line = frame.filename, frame.lineno or 0
    text = str(error).strip() or type(error).__name__
    if isinstance(error, TemplateNotFound):
        text = f"there is no template `{error.name}`"
    if isinstance(error, (SyntaxError, RecursionError)):
        text = f"it is nested too deeply ({text})"
    return RenderError(
        Problem(
            text,
            file=file or f"dockerfiles/{name}",
            line=line,
            evidence=(f"while rendering `{image}`",) if image else (),
            hint=_HINT_LIMIT if isinstance(error, TooMuch) else _HINT,
        )
    )
