"""Build the images of the zoo, which are broken on purpose, and run `validate` on them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nccl_parts
import yaml
from nccl_parts import at_hand, compiled, on_disk

from imagegen.engine.builds.buildkit import BuildRequest, build
from imagegen.engine.builds.context import pack_context
from imagegen.engine.images import local_images
from imagegen.validation.in_container import ValidationRequest, validate_image

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from imagegen.engine.builds.context import HostFile
    from imagegen.engine.client import Engine
    from imagegen.model.recipe import ContextFile

LABEL = "io.imagegen.test"
HERE = Path(__file__).parent
ZOO, BASES = HERE / "zoo", HERE / "zoo_bases"
SECONDS = 300.0
NCCL, CUDART = "nvidia-nccl-cu12==2.21.5", "nvidia-cuda-runtime-cu12==12.4.127"

CUDNN = "unsigned long cudnnGetVersion(void) {{ return {0}; }}\n"
CUDNN += "unsigned long cudnnGetCudartVersion(void) {{ return 12040; }}\n"
OTHER_NCCL = """
#include <dlfcn.h>
const char said[] = "NCCL version 2.20.5+cuda12.4", symbol[] = "ncclNetPlugin_v8";
int ncclGetVersion(int *v) { *v = 22005; return 0; }
int ncclGetUniqueId(void *id) { (void)id; return !dlopen("libnccl-net.so", RTLD_NOW); }
"""
STUB_OF_THE_DRIVER = "int cuInit(unsigned flags) { (void)flags; return 34; }\n"


_QUICK = {"small": 1, "harp": 2}
"""Healthy images that are checked quickly, the quickest first; those of the family take longest."""


@dataclass(frozen=True)
class Animal:
    """Hold the recipe of a broken image, and what `validate` has to find.

    `image` names the healthy image below it; `run` holds the arguments; `fails` and `warns` are the
    ids beyond the warnings of the healthy image; `code` is the exit code of `validate`; `silent`
    are the failures of zoo/silent_failures.yaml that it makes. `elsewhere` maps checks to the kind
    of their remedy; the remedy of all others is for a shell of the container. `says` maps checks to
    words that their cause has.
    """

    name: str
    image: str
    fails: tuple[str, ...] = ()
    warns: tuple[str, ...] = ()
    run: tuple[str, ...] = ("--static",)
    code: int | None = None
    silent: tuple[str, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    says: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        return self.code if self.code is not None else int(bool(self.fails))

    @property
    def tier(self) -> tuple[str, ...]:
        return ("--static",) if "--static" in self.run else ()

    @property
    def in_the_image(self) -> bool:
        """Return whether its fault is in a layer or a setting, and in none of its containers."""
        return any(name.startswith("image.") for name in self.fails)

    @property
    def named(self) -> set[str]:
        return {*self.fails, *self.warns}

    @property
    def classes(self) -> set[str]:
        """Return its classes: a suite that fails or warns, an exit code of its own."""
        found = {f"{name.partition('.')[0]} fails" for name in self.fails}
        found |= {f"{name.partition('.')[0]} warns" for name in self.warns}
        return found | ({f"exit code {self.code}"} if self.code is not None else set())


def animals() -> list[Animal]:
    """Read all animals, by name."""
    return [_animal(path.parent) for path in sorted(ZOO.glob("*/Dockerfile"))]


def examples(all_of_them: Iterable[Animal]) -> set[str]:
    """Choose animals that cover every class, each class on the image that is checked fastest.

    What stands on a cell of another matrix than `cpu` is no example: such an image is built first.
    """
    found: dict[str, str] = {}
    usual = [one for one in all_of_them if "/" not in one.image]
    for animal in sorted(usual, key=lambda one: (_QUICK.get(one.image, 3), one.name)):
        for one in animal.classes:
            found.setdefault(one, animal.name)
    return {*found.values()}


def _animal(folder: Path) -> Animal:
    said: dict[str, Any] = yaml.safe_load((folder / "expect.yaml").read_text())
    for name in ("fails", "warns", "silent"):
        said[name] = tuple(said.get(name, ()))
    if "run" in said:
        said["run"] = tuple(said["run"].split())
    return Animal(folder.name, **said)


@dataclass
class Keeper:
    """Build images that the tests remove, and check them."""

    engine: Engine
    folder: Path
    made: list[str] = field(default_factory=list)

    def make(
        self,
        recipe: Path,
        on: str,
        files: Iterable[ContextFile] = (),
        large: Iterable[HostFile] = (),
    ) -> str:
        """Build a recipe on an image and return a tag, because `FROM` takes no image id."""
        tag = f"test-zoo/{recipe.name}:{secrets.token_hex(6)}"
        request = BuildRequest(
            context=pack_context((recipe / "Dockerfile").read_text(), files, large),
            build_id=f"test-{secrets.token_hex(6)}",
            # Its own label protects it from other runs; those of the healthy image are emptied.
            labels={
                LABEL: secrets.token_hex(6), "io.imagegen.recipe": "", "io.imagegen.matrix": "",
            },
            buildargs={"IMAGE": on},
            tag=tag,
        )  # fmt: skip
        build(self.engine, request, lambda _: None)
        self.made.append(tag)
        return tag

    def small(self, on: str) -> str:
        """Build a real image that promises less."""
        return self.make(BASES / "small", on)

    def harp(self, on: str) -> str:
        """Build the small image with NCCL, CUDA's run time, and stand-ins for cuDNN and HARP."""
        files = [
            at_hand("components.json", (BASES / "harp/components.json").read_bytes()),
            *(at_hand(f"lib/{name}", data) for name, data in self._libraries().items()),
            *(at_hand(f"spare/{name}", data) for name, data in self._spares().items()),
        ]
        runtime = nccl_parts.out_of_wheel(
            self.folder, CUDART, "nvidia/cuda_runtime/lib/libcudart.so.12"
        )
        large = [
            on_disk("lib/libnccl.so.2.21.5", nccl_parts.nccl_library(self.folder, NCCL)),
            on_disk("lib/libcudart.so.12.4.127", runtime),
        ]
        return self.make(BASES / "harp", on, files, large)

    def _libraries(self) -> dict[str, bytes]:
        return {
            "libnccl-net.so": nccl_parts.plugin(self.folder, 4, 6, 8),
            "libcudnn.so.9.1.0": self._named("libcudnn.so.9", CUDNN.format(90100)),
            "libcudnn_ops.so.9.1.0": self._named("libcudnn_ops.so.9", CUDNN.format(90100)),
        }

    def _spares(self) -> dict[str, bytes]:
        """Return files that the recipes put in the place of other ones."""
        self._named("libtfabric.so", "int tfabric_open(void) { return 0; }\n")
        needs = ["-DNEEDS_MORE", "-Wl,--no-as-needed", str(self.folder / "libtfabric.so")]
        return {
            "plugin-v4.so": nccl_parts.plugin(self.folder, 4),
            "plugin-needs-more.so": nccl_parts.plugin(self.folder, 4, 6, 8, more=needs),
            "nccl-2.20.5.so": self._named("libnccl.so.2", OTHER_NCCL),
            "cudnn-9.0.0.so": self._named("libcudnn.so.9", CUDNN.format(90000)),
            "cudnn-ops.so": self._named("libcudnn_ops.so.9", CUDNN.format(90300)),
            "libcuda-stub.so": self._named("libcuda.so.1", STUB_OF_THE_DRIVER),
        }

    def _named(self, name: str, source: str) -> bytes:
        return compiled(self.folder, name, source, [f"-Wl,-soname,{name}"])

    def look(self, ref: str, run: Iterable[str], look_into_layers: bool = False) -> dict[str, Any]:
        """Return the report of `validate` with these arguments."""
        asked = list(run)
        static = "--static" in asked
        arguments = tuple(part for part in asked if part != "--static")
        request = ValidationRequest(
            static, arguments, look_into_layers=look_into_layers, timeout=SECONDS
        )
        return dict(validate_image(self.engine, ref, request, lambda _: None).report)

    def remove(self, tag: str) -> None:
        local_images.remove(self.engine, tag, force=True)
        self.made.remove(tag)

    def clean(self) -> None:
        for tag in reversed(self.made[:]):
            self.remove(tag)


@dataclass
class Zoo:
    """Hold the healthy images, each checked once, and the animals on top of them."""

    keeper: Keeper
    family: Mapping[str, str]
    other_family: Callable[[str], Mapping[str, str]]
    _reports: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = field(default_factory=dict)
    _bases: dict[str, str] = field(default_factory=dict)

    def healthy(self, name: str, tier: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the report on a cell of the family, or on one of the bases."""
        if (name, tier) not in self._reports:
            self._reports[name, tier] = self.keeper.look(self.image(name), tier)
        return self._reports[name, tier]

    def look_at(self, animal: Animal) -> dict[str, Any]:
        ref = self.keeper.make(ZOO / animal.name, self.image(animal.image))
        try:
            return self.keeper.look(ref, animal.run, look_into_layers=animal.in_the_image)
        finally:
            self.keeper.remove(ref)

    def image(self, name: str) -> str:
        """Return the healthy image of this name: a cell, or one of the bases."""
        if name in self.family:
            return self.family[name]
        if "/" in name:
            return self.other_family(name.partition("/")[0])[name]
        if name not in self._bases:
            make = {"small": self._small, "harp": self._harp}[name]
            self._bases[name] = make()
        return self._bases[name]

    def _small(self) -> str:
        return self.keeper.small(self.family["debian13-rdma-core"])

    def _harp(self) -> str:
        return self.keeper.harp(self.image("small"))


def ids(report: Mapping[str, Any], outcome: str) -> list[str]:
    """List the checks with an outcome."""
    return [check["id"] for check in report["checks"] if check["outcome"] == outcome]
