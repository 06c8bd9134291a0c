"""Test what differs between two images, and how it is shown."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from imagegen.console.console import make_console
from imagegen.engine.images.contents import ImageContents, Package
from imagegen.engine.images.inventory import Inventory, Layer
from imagegen.inspection.diff import (
    Change,
    Weight,
    component_versions,
    difference,
    weights,
)
from imagegen.inspection.diff_tables import in_words, show
from imagegen.inspection.leftovers import Leftover, leftovers
from imagegen.model.labels import LABEL_INPUTS

BASE, OLD, NEW = (
    Layer("sha256:base", "", 100),
    Layer("sha256:old", "RUN a", 20),
    Layer("sha256:new", "RUN b", 90),
)
CONTENTS = ImageContents(
    packages=(
        Package("deb", "libc6", "2.36", "amd64"),
        Package("deb", "perl", "5", "amd64"),
        Package("pypi", "numpy", "1.26.4", path="/a"),
        Package("pypi", "numpy", "2.0.0", path="/b"),
    ),
    sonames={"libm.so.6": "/lib/libm.so.6", "libold.so.1": "/lib/libold.so.1"},
    folders={"/": 120, "/usr": 100},
    os={"ID": "debian", "VERSION_ID": "12"},
    promise={"components": {"torch": {"version": "1.13.1", "variant": "cpu"}}},
)
A = Inventory(
    ref="imagegen/x:a",
    id="sha256:aaaaaaaaaaaa0",
    created="",
    size_bytes=120,
    labels={"io.imagegen.contract": '{"network": "host", "caps": []}', LABEL_INPUTS: '{"os": "1"}'},
    env={"PATH": "/bin", "OLD": "1"},
    layers=(BASE, OLD),
    contents=CONTENTS,
)
B = replace(
    A,
    ref="imagegen/x:b",
    id="sha256:bbbbbbbbbbbb0",
    size_bytes=190,
    labels={"io.imagegen.contract": '{"network": "none", "caps": []}', LABEL_INPUTS: '{"os": "2"}'},
    env={"PATH": "/bin:/usr/bin"},
    layers=(BASE, NEW),
    contents=replace(
        CONTENTS,
        packages=(
            Package("deb", "libc6", "2.41", "amd64"),
            Package("pypi", "numpy", "2.0.0", path="/b"),
        ),
        sonames={"libm.so.6": "/lib/libm.so.6", "libnew.so.2": "/lib/libnew.so.2"},
        folders={"/": 190, "/usr": 170},
        promise={"components": {"torch": {"version": "2.6.0", "variant": ""}}},
    ),
)


def told(before: Inventory, after: Inventory, most: int | None = None) -> str:
    out = io.StringIO()
    show(difference(before, after), make_console("plain", out, out), most)
    return out.getvalue()


def test_everything_that_differs() -> None:
    made = difference(A, B)
    assert made.components == (Change("torch", "1.13.1 cpu", "2.6.0"),)
    assert made.packages == (
        Change("libc6", "2.36", "2.41", "deb"),
        Change("perl", "5", "", "deb"),
        Change("numpy", "1.26.4, 2.0.0", "2.0.0", "pypi"),
    )
    assert [change.name for change in made.sonames] == ["libnew.so.2", "libold.so.1"]
    assert made.env == (Change("OLD", "1", ""), Change("PATH", "/bin", "/bin:/usr/bin"))
    assert made.labels == (Change("io.imagegen.contract network", '"host"', '"none"'),)
    assert made.inputs == ("os",)
    assert (made.before.layers, made.after.layers, made.shared) == ((OLD,), (NEW,), (BASE,))
    assert made.folders == (Weight("/usr", 100, 170),)
    assert not made.same


def test_an_image_differs_in_nothing_from_one_that_holds_the_same() -> None:
    twin = replace(A, id="sha256:twin")
    assert difference(A, twin).same
    assert "nothing differs\n" in told(A, twin)
    unread = replace(twin, missing=("system packages: it has no dpkg",))
    assert "B  not read: system packages: it has no dpkg\n" in told(A, unread)
    assert "nothing differs in what could be read\n" in told(A, unread)


def test_what_was_not_read_is_not_told_as_gone() -> None:
    made = difference(A, replace(B, contents=ImageContents(), missing=("what is inside",)))
    assert not [change for change in made.packages if change.kind == "deb"]
    assert (made.sonames, made.folders) == ((), ())
    assert made.env == difference(A, B).env


def test_components_without_a_promise_come_from_the_label() -> None:
    label = json.dumps({"release torch": "2.6.0 (cuda) 0123456789ab", "os": "1"})
    image = replace(A, labels={LABEL_INPUTS: label}, contents=ImageContents())
    assert component_versions(image) == {"torch": "2.6.0 (cuda)"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"/": 10, "/a": 5}, {"/": 10, "/a": 5}, []),
        ({"/": 10}, {"/": 110, "/a": 100, "/a/b": 99, "/a/b/c": 50}, ["/a/b"]),
        ({"/": 100, "/a": 50, "/b": 50}, {"/": 100, "/a": 90, "/b": 10}, ["/a", "/b"]),
        ({"/": 100}, {"/": 200, "/a": 3}, ["/"]),
    ],
)
def test_the_deepest_folders_that_explain_the_difference(
    before: dict[str, int], after: dict[str, int], expected: list[str]
) -> None:
    assert [one.path for one in weights(before, after)] == expected


def test_people_read_what_changed_first_and_how_much_is_left_out() -> None:
    text = told(A, B, 1)
    assert text.startswith("A  imagegen/x:a  aaaaaaaaaaaa  120 B\n")
    assert "B is 70 B larger\n" in text
    assert text.index("component  A") < text.index("dpkg ") < text.index("shared library")
    assert "1 changed, 1 only in A; 1 not shown (`--all`)\n" in text
    assert "a layer is shared: 100 B that are on the disk once\n" in text
    assert "not shown" not in told(A, B)


FILES = {
    "/var/lib/apt/lists/x_Packages": 5,
    "/root/.cache/pip/y": 7,
    "/usr/lib/python3.11/ensurepip/_bundled/pip-23.0.1-py3-none-any.whl": 2_000_000,
    "/srv/torch-2.6.0-cp313-none-linux_x86_64.whl": 700_000_000,
    "/usr/lib/python3/dist-packages/numpy/tests/data/small.tar.gz": 900,
    "/opt/openmpi-4.1.4.tar.bz2": 9_000_000,
}


def test_what_a_build_left() -> None:
    found = leftovers(replace(A, contents=replace(CONTENTS, files=FILES, tools=("/usr/bin/gcc",))))
    assert found[0] == Leftover(
        "wheels", 1, 700_000_000, ("/srv/torch-2.6.0-cp313-none-linux_x86_64.whl",)
    )
    assert [one.kind for one in found] == [
        "wheels", "archives", "package caches", "apt's lists", "build tools",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "components",
    [
        {},
        {"gcc": {"version": "12"}},
        {"cuda": {"version": "12.4", "facts": {"flavour": "devel"}}},
    ],
)
def test_build_tools_that_an_image_may_have(components: dict[str, object]) -> None:
    contents = replace(CONTENTS, tools=("/usr/bin/gcc",), promise={"components": components})
    assert leftovers(replace(A, contents=contents)) == ()


def test_bytes_that_later_layers_hide() -> None:
    fat = (Layer("x", "", 50_000_000), Layer("y", "RUN rm", 10))
    contents = replace(CONTENTS, folders={"/": 20_000_000})
    (found,) = leftovers(replace(A, layers=fat, contents=contents))
    assert (found.kind, found.size_bytes) == ("bytes that later layers hide", 30_000_010)
    assert leftovers(replace(A, layers=(*fat, Layer("z")), contents=contents)) == ()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("frame", "the Dockerfile around its stages"),
        ("promise cell", "in image.json: cell"),
        ("release torch", "the release of torch"),
        ("step torch/0", "step torch/0"),
    ],
)
def test_inputs_of_recipes_have_words(name: str, words: str) -> None:
    assert in_words(name) == words
