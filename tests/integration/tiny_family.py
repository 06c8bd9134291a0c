"""Make families of images that build in a second or two, from components of one line each.

Every family has a token of its own in its names and steps, so nothing comes from the cache of an
earlier run. The label of its matrix finds everything that it leaves on the engine.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import small_base
import yaml
from command_line import CommandLine, Ended, command_line_in

from imagegen.engine.images import local_images
from imagegen.model.labels import LABEL_MATRIX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from imagegen.engine.client import Engine
    from imagegen.engine.images.local_image import LocalImage

VALIDATE = """\
#!/bin/sh
# All that the tool needs of `validate`: a command with --json FILE that ends in 0 or 1.
tier=full
while [ $# -gt 0 ]; do
  case "$1" in
    --json) report="$2"; shift ;;
    --static) tier=static ;;
  esac
  shift
done
read -r verdict < /etc/verdict
echo "tiny.verdict  $verdict"
cat > "$report" <<END
{"schema": 1, "tier": "$tier", "counts": {"$verdict": 1}, "checks": [{"id": "tiny.verdict",
 "suite": "tiny", "tier": "static", "severity": "fail", "proves": "the verdict is good",
 "outcome": "$verdict", "measured": "the verdict of release $(cat /etc/release)", "reason": "",
 "cause": "release 2 fails", "remedy": "take release 1", "seconds": 0}]}
END
[ "$verdict" = passed ]
"""


@dataclass
class TinyFamily:
    """Hold the overlay, its one matrix, and the command line that works on them."""

    root: Path
    token: str
    engine: Engine
    run: CommandLine

    def __post_init__(self) -> None:
        small_base.describe(self.root)

    @property
    def matrix(self) -> str:
        return f"tiny-{self.token}"

    def image(self, tag: str) -> str:
        """Return the reference of a cell's image."""
        return f"test-tiny/{self.token}:{tag}"

    def component(
        self,
        name: str,
        install: str,
        releases: Sequence[str] = ("1",),
        files: Mapping[str, str] | None = None,
        **keys: Any,
    ) -> Path:
        """Write a component and return its template; `TOKEN` in it is this family's token."""
        folder = self.root / "dockerfiles/components" / name
        (folder / "files").mkdir(parents=True, exist_ok=True)
        described: dict[str, Any] = {"name": name, "title": f"{name} for a test", "seconds": "1"}
        described |= {"suites": ["os"], **keys}
        described["releases"] = [
            {"version": version, "origin": "a test", "source": "a test"} for version in releases
        ]
        (folder / "component.yaml").write_text(yaml.safe_dump(described, sort_keys=False))
        template = folder / "install.j2"
        template.write_text(install.replace("TOKEN", self.token) + "\n")
        for path, text in (files or {}).items():
            (folder / "files" / path).write_text(text)
        return template

    def check(self) -> None:
        """Write a component `check` whose `validate` passes in release 1 and fails in release 2."""
        verdict = "{{ 'passed' if release.version == '1' else 'failed' }}"
        install = [
            "COPY check/validate /usr/local/bin/validate",
            f"RUN chmod 755 /usr/local/bin/validate && echo {verdict} > /etc/verdict && \\",
            "    echo {{ release.version }} > /etc/release # TOKEN",
        ]
        self.component("check", "\n".join(install), ("1", "2"), {"validate": VALIDATE})

    def write_matrix(
        self, axes: Mapping[str, Sequence[str]], components: Mapping[str, Any], **keys: Any
    ) -> Path:
        """Write the matrix; the image of a cell is tagged with the cell's values, in order."""
        data: dict[str, Any] = {"name": self.matrix}
        data["tag"] = f"test-tiny/{self.token}:" + "-".join(f"{{{axis}}}" for axis in axes)
        data |= {"axes": dict(axes), "components": dict(components), **keys}
        path = self.root / "matrices" / f"{self.matrix}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(data, sort_keys=False))
        return path

    def command(
        self,
        verb: str,
        *arguments: str,
        code: int = 0,
        environ: Mapping[str, str] | None = None,
    ) -> Ended:
        """Run a verb on this family's matrix."""
        return self.run(*self.argv(verb, *arguments), code=code, environ=environ)

    def argv(self, verb: str, *arguments: str) -> list[str]:
        return [verb, "--matrix", self.matrix, "--overlay", str(self.root), *arguments]

    def build(self, *arguments: str, code: int = 0) -> Ended:
        return self.command("build", *arguments, code=code)

    def built(self) -> dict[str, LocalImage]:
        """Map each tag of this family on the engine to its image."""
        found = local_images.list_labelled(self.engine, f"{LABEL_MATRIX}={self.matrix}")
        prefix = self.image("")
        return {
            tag.removeprefix(prefix): image
            for image in found
            for tag in image.tags
            if tag.startswith(prefix)
        }

    def clean(self) -> None:
        for image in local_images.list_labelled(self.engine, f"{LABEL_MATRIX}={self.matrix}"):
            local_images.remove(self.engine, image.id, force=True)


class TinyMaker:
    """Make families, each in a folder of its own, and remove all of their images."""

    def __init__(self, engine: Engine, new_folder: Callable[[], Path], address: str = "") -> None:
        self._engine, self._new_folder, self._address = engine, new_folder, address
        self._made: list[TinyFamily] = []

    def __call__(self) -> TinyFamily:
        folder = self._new_folder()
        run = command_line_in(folder, self._address)
        family = TinyFamily(folder / "overlay", secrets.token_hex(6), self._engine, run)
        self._made.append(family)
        return family

    def clean(self) -> None:
        for family in self._made:
            family.clean()
