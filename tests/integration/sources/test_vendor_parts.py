"""Test tarballs and vendors' parts in builds: mounted, in no layer, and rebuilt after a change."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
import yaml

from imagegen.model.labels import LABEL_PARTS

if TYPE_CHECKING:
    from pathlib import Path

    from tiny_family import TinyFamily

INSTALL = """\
RUN --mount=type=bind,source=artifacts/{},target=/srv \\
    cat /srv/{} > /{} && ls /srv > /names && stat -c %Y /srv/* > /times # TOKEN"""


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def row(path: Path, **keys: object) -> None:
    """Add keys to the only release of a component."""
    described = yaml.safe_load(path.read_text())
    described["releases"][0] |= keys
    path.write_text(yaml.safe_dump(described, sort_keys=False))


def list_light(tiny: TinyFamily, data: bytes) -> None:
    (tiny.root / "light-1.whl").write_bytes(data)
    part = {"name": "light", "version": "1", "file": "light-1-py3-none-any.whl"}
    part |= {"path": "light-1.whl", "sha256": sha(data), "licence": "ask the vendor"}
    (tiny.root / "artifacts.yaml").write_text(yaml.safe_dump({"artifacts": [part]}))


@pytest.fixture
def vendors(tiny: TinyFamily) -> TinyFamily:
    """Give the family a tarball of 8 MB that gzip cannot shrink, and a vendor's wheel."""
    tiny.root.mkdir(parents=True, exist_ok=True)
    tarball = tiny.root / "source-1.tgz"
    tarball.write_bytes(hashlib.shake_128(tiny.token.encode()).digest(8_000_000))
    address = {"url": tarball.as_uri(), "sha256": sha(tarball.read_bytes())}
    for name, mount, extra in (
        ("source", "source/1", {"tarball": address}),
        ("vendor", "light/1", {"artifact": "light"}),
    ):
        template = tiny.component(name, INSTALL.format(mount, "*", name))
        row(template.parent / "component.yaml", **extra)
    tiny.check()
    tiny.write_matrix({"os": ["tiny12"]}, {"source": "any", "vendor": "any", "check": "1"})
    list_light(tiny, b"wheel one")
    return tiny


def test_parts_are_mounted_and_a_changed_one_is_built_again(vendors: TinyFamily) -> None:
    vendors.build()
    (image,) = vendors.built().values()
    tarball = (vendors.root / "source-1.tgz").read_bytes()
    sums = {"light 1": sha(b"wheel one"), "source 1": sha(tarball)}
    assert json.loads(image.labels[LABEL_PARTS]) == sums
    kept = vendors.run.state / "parts" / sha(tarball)
    assert kept.read_bytes() == tarball
    assert "up to date" in vendors.build().text
    list_light(vendors, b"wheel two")
    vendors.build()
    (changed,) = vendors.built().values()
    assert changed.id != image.id
    assert json.loads(changed.labels[LABEL_PARTS])["light 1"] == sha(b"wheel two")


def test_what_is_missing_is_told_before_anything_is_built(vendors: TinyFamily) -> None:
    (vendors.root / "light-1.whl").unlink()
    row(
        vendors.root / "dockerfiles/components/source/component.yaml",
        tarball={"url": (vendors.root / "source-1.tgz").as_uri(), "sha256": "unverified"},
    )
    ended = vendors.build(code=2)
    assert "nothing vouches for the tarball of source 1 (" in ended.err
    assert "light-1.whl`, the vendor part `light` 1, is not there" in ended.err
    assert f"hint: put light-1-py3-none-any.whl with sha256 {sha(b'wheel one')} at `" in ended.err
    assert vendors.built() == {}
