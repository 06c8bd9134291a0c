"""Make a base of about 30 MB for tests that need just any image: Debian 12 without Perl and apt.

To build, save, push and search it takes a fraction of the time that Debian's own base takes.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import yaml
from debian_root import one_process
from image_builder import DEBIAN_12

from imagegen.engine.builds.buildkit import BuildRequest, build
from imagegen.engine.builds.context import pack_context
from imagegen.engine.images import local_images
from imagegen.engine.images.bases import ensure_base
from imagegen.model.image import base_alias
from imagegen.model.labels import LABEL_HOW

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.engine.client import Engine

TINY_12 = replace(DEBIAN_12, id="tiny12", image="debian:tiny12-of-the-tests", bootstrap=False)
REF = base_alias(TINY_12)
LABEL = "io.imagegen.test.recipe"

DOCKERFILE = f"""\
FROM {base_alias(DEBIAN_12)} AS whole
RUN lib=/usr/lib/x86_64-linux-gnu && \\
    rm -rf /usr/share/locale /usr/share/perl* /usr/share/zoneinfo /usr/share/doc /usr/lib/apt \\
      /usr/bin/perl* /usr/bin/apt* /var/cache/* /var/lib/apt "$lib"/perl* "$lib"/gconv \\
      "$lib"/libperl* "$lib"/libapt* "$lib"/libstdc++* "$lib"/libgnutls* "$lib"/libunistring* \\
      "$lib"/libp11* "$lib"/libdb-*
FROM scratch
COPY --from=whole / /
LABEL {LABEL_HOW}=bootstrap
CMD ["bash"]
"""
RECIPE = hashlib.sha256(DOCKERFILE.encode()).hexdigest()


def debian_12(engine: Engine) -> str:
    """Return the reference of a minimal Debian 12. It stays, as do the images on top of it."""
    with one_process("base"):
        return ensure_base(engine, DEBIAN_12, "auto", lambda _: None).ref


def tiny_12(engine: Engine) -> str:
    """Return the reference of the small base. It stays for the next run."""
    debian_12(engine)
    with one_process("small-base"):
        found = local_images.find(engine, REF)
        if found is None or found.labels.get(LABEL) != RECIPE:
            context = pack_context(DOCKERFILE, ())
            request = BuildRequest(context, "test-small-base", labels={LABEL: RECIPE}, tag=REF)
            build(engine, request, lambda _: None)
    return REF


def describe(overlay: Path) -> None:
    """Describe the base in an overlay as the OS `tiny12`."""
    path = overlay / f"dockerfiles/os/{TINY_12.id}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        yaml.safe_dump(
            {
                "id": TINY_12.id,
                "family": TINY_12.family,
                "release": {"ID": TINY_12.os_id, "VERSION_ID": TINY_12.version_id},
                "suite": TINY_12.suite,
                "image": TINY_12.image,
                "glibc": TINY_12.glibc,
                "lib_dir": TINY_12.lib_dir,
                "bootstrap": TINY_12.bootstrap,
                "source": "a test",
            }
        )
    )
