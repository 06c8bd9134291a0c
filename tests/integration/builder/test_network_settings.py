"""Test that the host's network settings reach the build steps and are in no image."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import tarfile
from typing import TYPE_CHECKING

from imagegen.engine.images import local_images
from imagegen.engine.images.layers import layers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tiny_family import TinyFamily

    from imagegen.engine.client import Engine

STEP = """\
RUN --mount=type=bind,source=build-env,target=/mnt \\
    . /mnt/env.sh && \\
    for file in "${PIP_CERT}" "${SSL_CERT_FILE}" "${REQUESTS_CA_BUNDLE}" "${CURL_CA_BUNDLE}"; do \\
      test "$(sha256sum < "${file}")" = "<bundle>  -" || exit 11; \\
    done && \\
    (apt-config dump | grep -q 'CaInfo "/mnt/ca.crt"' || exit 12) && \\
    (test "$(sha256sum < "${PIP_CONFIG_FILE}")" = "<pip>  -" || exit 13) && \\
    (test "$(echo -n "${HTTPS_PROXY}" | sha256sum)" = "<proxy>  -" || exit 14) && \\
    (test "$(echo -n "${https_proxy}" | sha256sum)" = "<proxy>  -" || exit 15) && \\
    (test "$(echo -n "${NO_PROXY}" | sha256sum)" = "<no-proxy>  -" || exit 16) && \\
    echo TOKEN > /reached
"""
"""Finds the settings by their sha256, because a step's own text is in the history of the image."""


def _history(engine: Engine, ref: str) -> object:
    return engine.api.history(ref)  # type: ignore[no-untyped-call]


def everything(engine: Engine, ref: str) -> Iterator[tuple[str, bytes]]:
    """Yield every name and content of every layer, and all metadata of the image."""
    for number, (_, layer) in enumerate(layers(engine, ref)):
        for member in layer:
            content = layer.extractfile(member) if member.isreg() else None
            yield f"layer {number}: {member.name}", content.read() if content else b""
    yield "description", json.dumps(dict(local_images.inspect(engine, ref))).encode()
    yield "history", json.dumps(_history(engine, ref)).encode()
    saved = io.BytesIO(b"".join(engine.api.get_image(ref)))
    with tarfile.open(fileobj=saved) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name.endswith("json") else None
            yield member.name, content.read() if content else b""


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_they_reach_the_steps_and_are_in_no_image(tiny: TinyFamily, tmp_path: Path) -> None:
    # A random mark: if it is found in the image, it came with the settings.
    mark = f"mark{secrets.token_hex(8)}"
    proxy, nowhere = f"http://user:{mark}@proxy.invalid:3128", f"{mark}.invalid"
    index = f"https://user:{mark}@index.invalid/simple"
    bundle = f"-----BEGIN CERTIFICATE-----\n{mark}\n-----END CERTIFICATE-----\n"
    certificate = tmp_path / f"ca-{mark}.pem"
    certificate.write_text(bundle)
    hashes = {
        "<bundle>": sha256(bundle),
        "<pip>": sha256(f"[global]\nindex-url = {index}\n"),
        "<proxy>": sha256(proxy),
        "<no-proxy>": sha256(nowhere),
    }
    tiny.component("online", re.sub("|".join(hashes), lambda found: hashes[found[0]], STEP))
    tiny.write_matrix({"os": ["debian12"]}, {"online": "1"})
    environ = {"PIP_CERT": str(certificate), "PIP_INDEX_URL": index, "NO_PROXY": nowhere}
    environ |= {"HTTPS_PROXY": proxy, "https_proxy": proxy, "PIP_CONFIG_FILE": os.devnull}
    ended = tiny.command("build", "--no-validate", environ=environ)

    assert f"build steps use CA bundle {certificate} (PIP_CERT)" in ended.err
    assert "build steps use pip index settings of this host" in ended.err
    assert "build steps use HTTPS_PROXY of this host" in ended.err
    found = dict(everything(tiny.engine, tiny.image("debian12")))
    assert tiny.token.encode() in found[next(name for name in found if name.endswith(" reached"))]
    assert tiny.token.encode() in found["history"]
    assert [name for name in found if mark in name] == []
    assert [name for name, data in found.items() if mark.encode() in data] == []
    # The mount points of the settings are not in the image either.
    assert [name for name in found if name.endswith(("mnt/ca.crt", "mnt/pip.conf"))] == []


def test_ca_bundle_option_wins_and_is_checked(tiny: TinyFamily, tmp_path: Path) -> None:
    tiny.component("part", "RUN echo TOKEN > /part")
    tiny.write_matrix({"os": ["debian12"]}, {"part": "1"})
    none, text = tmp_path / "none.pem", tmp_path / "text.pem"
    text.write_text("no certificate\n")
    lost = tiny.build("--ca-bundle", str(none), code=2)
    assert f"error: the CA bundle `{none}` cannot be read" in lost.err
    assert "named by --ca-bundle" in lost.err
    wrong = tiny.build("--ca-bundle", str(text), code=2)
    assert f"error: `{text}` holds no certificate in PEM form" in wrong.err
    assert tiny.built() == {}


def test_settings_of_the_network_make_nothing_stale(tiny: TinyFamily, tmp_path: Path) -> None:
    tiny.component("part", "RUN echo TOKEN > /part")
    tiny.write_matrix({"os": ["debian12"]}, {"part": "1"})
    tiny.build("--no-validate")
    bundle = tmp_path / "other.pem"
    bundle.write_text("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
    ended = tiny.build("--no-validate", "--ca-bundle", str(bundle))
    assert ended.err.count("up to date") == 1
