"""Test what a container tells about its image, and which instruction made which layer."""

from __future__ import annotations

from imagegen.engine.images.contents import Package, read_contents
from imagegen.engine.images.inventory import Layer, layers_of

SAID = """\
os ID=debian
os VERSION_ID="12"
promise {"components": {"torch": {"version": "1.13.1"}}}
deb ii  libc6 2.36-9+deb12u13 amd64 glibc 2.36-9+deb12u13
deb rc  gone 1 amd64 gone 1
deb ii  half
so libm.so.6 /lib/x86_64-linux-gnu/libm.so.6
so libm.so.6 /old/libm.so.6
/usr/lib/python3/dist-packages/six-1.16.0.dist-info/INSTALLER:debian
/usr/local/lib/python3.11/dist-packages/nvidia_nccl_cu12-2.21.5.dist-info/INSTALLER:pip
/usr/local/lib/python3.11/dist-packages/nvidia_nccl_cu12-2.21.5.dist-info/WHEEL:Tag: py3-none-linux
/usr/local/lib/python3.11/dist-packages/nvidia_nccl_cu12-2.21.5.dist-info/WHEEL:Tag: py3-none-any
tool /usr/bin/gcc
tool /usr/bin/gcc
file 12 /opt/conda/conda-meta/python-3.8.13-h582c2e5_0_cpython.json
file 7 /tmp/a b.tar.gz
file 0 /var/lib/apt/lists/lock
du 2048\t/usr/lib
find: nothing that is told
"""


def test_what_a_container_says() -> None:
    found = read_contents(SAID.splitlines())
    site = "/usr/local/lib/python3.11/dist-packages"
    assert found.packages == (
        Package("conda", "python", "3.8.13"),
        Package("deb", "libc6", "2.36-9+deb12u13", "amd64", "glibc 2.36-9+deb12u13"),
        Package(
            "pypi",
            "nvidia_nccl_cu12",
            "2.21.5",
            path=f"{site}/nvidia_nccl_cu12-2.21.5.dist-info",
            tags=("py3-none-any", "py3-none-linux"),
        ),
    )
    assert found.debs == {"libc6": "2.36-9+deb12u13"}
    assert found.sonames == {"libm.so.6": "/lib/x86_64-linux-gnu/libm.so.6"}
    assert found.folders == {"/usr/lib": 2048 * 1024}
    assert found.files == {"/tmp/a b.tar.gz": 7}
    assert found.tools == ("/usr/bin/gcc",)
    assert found.os == {"ID": "debian", "VERSION_ID": "12"}
    assert found.promise["components"]["torch"]["version"] == "1.13.1"


def test_a_broken_promise_is_none() -> None:
    assert read_contents(["promise {"]).promise == {}


def test_layers_and_what_made_them() -> None:
    history = [
        ("", 100),
        ("ENV A=b", 0),
        ("RUN true # buildkit", 0),
        ("/bin/sh -c #(nop)  CMD [bash]", 0),
        ("COPY a /a", 5),
        ("WORKDIR /x", 0),
    ]
    made = (Layer("x", "", 100), Layer("y", "RUN true # buildkit", 0), Layer("z", "COPY a /a", 5))
    assert layers_of(["x", "y", "z"], history) == made
    with_folder = layers_of(["x", "y", "z", "w"], history)
    assert with_folder == (*made, Layer("w", "WORKDIR /x", 0))


def test_layers_of_a_squashed_image_are_of_nobody() -> None:
    assert layers_of(["x"], [("RUN a", 5), ("RUN b", 6)]) == (Layer("x", "", -1),)
