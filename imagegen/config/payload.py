"""Find matrices, components and templates in the roots of this run.

Three roots have one layout (`dockerfiles/`, `matrices/`, `validate/`): a user's overlay, the
current directory, and what travels with the tool. An earlier root wins, file by file, so an overlay
adds a component or replaces one template without a fork.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

OS_FOLDER = "dockerfiles/os"
COMPONENTS_FOLDER = "dockerfiles/components"
VIRTUAL_FOLDER = "dockerfiles/virtual"
RELEASES_FILE = "releases.csv"
"""The releases of a component, beside its `component.yaml`, in any root."""
RULES_FOLDER = "dockerfiles/rules"
KNOWN_BAD_FOLDER = "dockerfiles/known-bad"
MATRICES_FOLDER = "matrices"
PROOFS_FOLDER = "proofs"
"""What was built and validated, a file for each matrix."""
ARTIFACTS_FILE = "artifacts.yaml"
SUFFIXES_LEFT_OUT = (".pyc", ".pyo")


@dataclass(frozen=True)
class Payload:
    """The union of the roots; where two have a file, the first one wins.

    `code_roots` leave out the current directory: an unrelated `validate/` there must not travel
    into images.
    """

    roots: tuple[Path, ...]
    code_roots: tuple[Path, ...]

    def find(self, relative: str) -> Path | None:
        """Find a path in the first root that has it; return None if none has."""
        for root in self.roots:
            if there(root / relative):
                return root / relative
        return None

    def rank(self, relative: str) -> int:
        """Return the index of the root that wins for a path; the number of roots if none has it."""
        having = (place for place, root in enumerate(self.roots) if there(root / relative))
        return next(having, len(self.roots))

    def names(self, folder: str) -> tuple[str, ...]:
        """List the names in a folder over all roots, sorted, without hidden ones."""
        found = {
            entry.name
            for root in self.roots
            if (root / folder).is_dir()
            for entry in (root / folder).iterdir()
        }
        return tuple(sorted(name for name in found if not name.startswith((".", "__"))))

    def catalog_files(self) -> tuple[Path, ...]:
        """List every file that the catalog is made of."""
        components = self.names(COMPONENTS_FOLDER)
        relative = [f"{COMPONENTS_FOLDER}/{name}/component.yaml" for name in components]
        relative += [f"{COMPONENTS_FOLDER}/{name}/{RELEASES_FILE}" for name in components]
        for folder in (OS_FOLDER, VIRTUAL_FOLDER, RULES_FOLDER, KNOWN_BAD_FOLDER, PROOFS_FOLDER):
            relative += [f"{folder}/{name}" for name in self.names(folder)]
        found = (self.find(one) for one in relative)
        return tuple(path for path in found if path is not None)

    def matrix_files(self) -> tuple[Path, ...]:
        """List every file of a matrix or of its lock."""
        found = (self.find(f"{MATRICES_FOLDER}/{name}") for name in self.names(MATRICES_FOLDER))
        return tuple(path for path in found if path is not None)

    def recipe_files(self, matrix: str, trees: Iterable[str]) -> tuple[Path, ...]:
        """List every file that the recipes of a matrix can be made of.

        `trees` are the folders that components copy. The list is empty where no matrix of these
        roots has this name.
        """
        matrix_file = self.find(f"{MATRICES_FOLDER}/{matrix}.yaml")
        if matrix_file is None:
            return ()
        found = [self.tree("dockerfiles"), *(self.code(tree) for tree in trees)]
        artifacts = self.find(ARTIFACTS_FILE)
        paths = [path for tree in found for _, path in tree]
        return (matrix_file, *paths, *([artifacts] if artifacts else []))

    def code(self, folder: str) -> tuple[tuple[str, Path], ...]:
        """List the files under a folder as `tree` does, but not those of the current directory."""
        return _tree(self.code_roots, folder)

    def context(self, folder: str, *, code: bool = False) -> tuple[tuple[str, Path], ...]:
        """List the files under a folder that go into a build context, as `code` or `tree` does.

        Raises ConfigError for what cannot go there: a link that leaves the folder, for example.
        """
        roots = self.code_roots if code else self.roots
        for root in roots:
            check_contents(root, folder)
        return _tree(roots, folder)

    def tree(self, folder: str) -> tuple[tuple[str, Path], ...]:
        """List every file under a folder as (path inside it, winning file), sorted by path."""
        return _tree(self.roots, folder)


def there(path: Path) -> bool:
    """Return whether a path exists; a name that no file can have does not."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _tree(roots: Sequence[Path], folder: str) -> tuple[tuple[str, Path], ...]:
    found: dict[str, Path] = {}
    for root in reversed(roots):
        top = root / folder
        for path in sorted(top.rglob("*")) if top.is_dir() else ():
            if path.is_file() and path.suffix not in SUFFIXES_LEFT_OUT:
                found[path.relative_to(top).as_posix()] = path
    return tuple(sorted(found.items()))


def shipped_root() -> Path:
    """Find the folder that travels with the tool: in the wheel, or in the checkout."""
    package = Path(__file__).parents[1]
    inside = package / "payload"
    return inside if inside.is_dir() else package.parent


def in_checkout() -> bool:
    """Say whether the tool runs from a checkout, where its own files may have been edited."""
    return shipped_root() == Path(__file__).parents[2]


def expose_validate() -> None:
    """Make the checks that travel with the tool importable as `validate`.

    They come before any other module of that name, such as the one that configobj installs.
    """
    root = str(shipped_root())
    if root not in sys.path:
        sys.path.insert(0, root)


def open_payload(overlay: Path | None = None, cwd: Path | None = None) -> Payload:
    """Find the roots of this run: overlay, current directory, shipped.

    Raises ConfigError when the overlay is not a folder.
    """
    if overlay is not None and not (there(overlay) and overlay.is_dir()):
        raise ConfigError.of(
            f"overlay `{overlay}` is not a directory",
            hint="give a directory that has `dockerfiles/` or `matrices/` in it",
        )
    shipped = shipped_root()
    return Payload(
        roots=_distinct(overlay, cwd or Path.cwd(), shipped), code_roots=_distinct(overlay, shipped)
    )


def _distinct(*candidates: Path | None) -> tuple[Path, ...]:
    return tuple({root.resolve(): root for root in candidates if root is not None}.values())


def shown(path: Path) -> str:
    """Write a path as a user reads it: relative to the current directory where it is below it."""
    try:
        return path.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        return str(path)


LOCK_OF_EDITOR = ".#"
"""The start of the name of a link that Emacs makes beside a file that is being edited."""


def check_contents(root: Path, folder: str) -> None:
    """Check a folder of a root, and all that is in it.

    Raises ConfigError with every problem.
    """
    top = root / folder
    if not top.is_dir():
        return
    if not leads_into(top, root):
        raise ConfigError(_leaves(top, root))
    problems = [*_problems(top)]
    if problems:
        raise ConfigError(*problems)


def leads_into(path: Path, folder: Path) -> bool:
    """Return whether a path is in a folder, after all links on its way are followed."""
    try:
        return path.resolve(strict=True).is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return False


def _problems(top: Path) -> Iterator[Problem]:
    for path in sorted(top.rglob("*")):
        if path.name.startswith(LOCK_OF_EDITOR):
            continue
        if path.is_symlink():
            if not leads_into(path, top):
                yield _leaves(path, top)
            elif path.is_dir():
                yield _no_file(path, "is a link to a folder", "copy that folder")
        elif not path.is_dir() and not path.is_file():
            yield _no_file(path, "is no file, no folder and no link", "remove it")
        if not _is_text(path.name):
            yield _no_file(path, "has a name that is not UTF-8", "rename it")


def _leaves(path: Path, folder: Path) -> Problem:
    target = path.readlink() if path.is_symlink() else path.resolve()
    return Problem(
        f"`{path}` leads out of `{folder}`, or nowhere",
        evidence=(f"it leads to `{target}`", "what it leads to would be in a build context"),
        hint="copy the file that is meant there",
    )


def _no_file(path: Path, text: str, hint: str) -> Problem:
    return Problem(f"`{path}` {text}", evidence=("a build context has files only",), hint=hint)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
