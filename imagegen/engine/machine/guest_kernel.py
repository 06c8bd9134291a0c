"""Make the kernel and the initial root file system of the Soft-RoCE machine.

The initial root mounts the root of the image. The kernel is Debian's; it is unpacked from its
package and never installed. So is busybox, which the initial root runs. The host's own apt
downloads both once; they are kept as two small files.
"""

from __future__ import annotations

import hashlib
import lzma
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.engine.host import process
from imagegen.engine.host.file_lock import one_at_a_time
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

META_PACKAGE, BUSYBOX = "linux-image-amd64", "busybox-static"
READY = "imagegen: the image is mounted"
"""The last line that the initial root prints. Later lines on the console are the job's."""

MODULES = (
    "virtio_pci",
    "virtio_blk",
    "squashfs",
    "overlay",
    "virtio_net",
    # rdma_rxe asks the kernel's crypto for it by name, so `depends` does not list it.
    "crc32_generic",
    "rdma_rxe",
    "ib_uverbs",
    "ib_umad",
    "rdma_ucm",
)

# The address is set before the RDMA device is added, so that row 1 of the GID table is RoCE v2 with
# IPv4.
INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs dev /dev && mount -t proc proc /proc && mount -t sysfs sys /sys
exec >/dev/ttyS0 2>&1 </dev/null
for module in $(cat /modules/order); do insmod /modules/$module || exit 1; done
mount -t squashfs -o ro /dev/vda /lower && mount -t tmpfs tmpfs /upper || exit 1
mkdir /upper/changed /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/changed,workdir=/upper/work image /image ||
  exit 1
ip link set lo up && ip address add 10.0.2.15/24 dev eth0 && ip link set eth0 up
hostname soft-roce && echo '127.0.0.1 localhost soft-roce' > /image/etc/hosts
for folder in dev proc sys; do mkdir -p /image/$folder && mount --move /$folder /image/$folder; done
mkdir -p /image/dev/shm /image/dev/pts && mount -t devpts devpts /image/dev/pts
mkdir -p /image/run && cp /job /image/run/imagegen-job
echo '{READY}'
chroot /image /bin/sh /run/imagegen-job
poweroff -f
"""

_FOLDERS = ("bin", "dev", "image", "lower", "modules", "proc", "sys", "upper")
_FOLDER, _PROGRAM, _FILE = 0o40755, 0o100755, 0o100644


@dataclass(frozen=True)
class GuestKernel:
    """Name the files that QEMU boots; `initrd` is without the job, which `with_job` appends."""

    kernel: Path
    initrd: Path


def ensure_kernel(cache: Path, on_line: Callable[[str], None]) -> GuestKernel:
    """Return the kernel in the folder `cache`; download and unpack it if needed.

    Raises EngineError where this host's apt does not have it.
    """
    key = hashlib.sha256("\n".join([INIT, *MODULES]).encode()).hexdigest()[:16]
    found = GuestKernel(cache / f"{key}.vmlinuz", cache / f"{key}.initrd")
    cache.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(cache / "lock"):
        if not (found.kernel.is_file() and found.initrd.is_file()):
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                _make(Path(folder), found, on_line)
    return found


def with_job(initrd: bytes, job: str) -> bytes:
    """Append a shell script, which runs in the image, to an initial root.

    Source: the kernel's Documentation/driver-api/early-userspace/buffer-format.rst: archives may
    follow one another.
    """
    return initrd + bytes(-len(initrd) % 4) + archive([("job", _FILE, job.encode())])


def archive(entries: Iterable[tuple[str, int, bytes]]) -> bytes:
    """Pack a cpio archive (`newc`) of (path, mode, content), all owned by root. Source: cpio(5)."""
    packed = bytearray()
    for number, (path, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], start=1):
        name = path.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        packed += b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name
        packed += bytes(-len(packed) % 4) + data
        packed += bytes(-len(packed) % 4)
    return bytes(packed)


def load_order(wanted: Sequence[str], depends: Mapping[str, Sequence[str]]) -> list[str]:
    """Order the wanted modules after those that they depend on.

    Modules that `depends` does not have are built into the kernel.
    """
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in depends and name not in order:
            for other in depends[name]:
                visit(other)
            order[name] = None

    for name in wanted:
        visit(name)
    return list(order)


def dependencies(module: bytes) -> list[str]:
    """List the modules that a module depends on.

    Source: modinfo(8), section `.modinfo` of the file.
    """
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return (
        [name.replace("-", "_") for name in found[1].decode().split(",") if name] if found else []
    )


def _make(folder: Path, target: GuestKernel, on_line: Callable[[str], None]) -> None:
    root = _unpacked(folder, on_line)
    (vmlinuz,) = (root / "boot").glob("vmlinuz-*")
    modules = _modules(next((root / "lib/modules").iterdir()))
    order = load_order(MODULES, {name: dependencies(data) for name, data in modules.items()})
    entries = [(name, _FOLDER, b"") for name in _FOLDERS]
    entries += [("bin/busybox", _PROGRAM, (root / "bin/busybox").read_bytes())]
    entries += [("init", _PROGRAM, INIT.encode())]
    entries += [(f"modules/{name}", _FILE, modules[name]) for name in order]
    entries += [("modules/order", _FILE, "\n".join(order).encode())]
    part = folder / "initrd"
    part.write_bytes(archive(entries))
    vmlinuz.rename(target.kernel)
    part.rename(target.initrd)


def _modules(top: Path) -> dict[str, bytes]:
    """Map the name of each module that may be needed to its unpacked bytes."""
    found = {}
    for path in [*top.rglob("*.ko"), *top.rglob("*.ko.xz")]:
        # Most of the kernel's modules are for graphics, sound and the like; they are not needed
        # here.
        if {"crypto", "fs", "net", "block", "virtio", "infiniband", "lib"} & {*path.parts}:
            data = path.read_bytes()
            name = path.name.partition(".ko")[0].replace("-", "_")
            found[name] = lzma.decompress(data) if path.suffix == ".xz" else data
    return found


def _unpacked(folder: Path, on_line: Callable[[str], None]) -> Path:
    """Unpack the packages of the kernel and of busybox into a folder below `folder`."""
    root = folder / "root"
    image = _kernel_package()
    on_line(f"fetching {image} and {BUSYBOX} with apt, once")
    for package in (image, BUSYBOX):
        _download(folder, package, on_line)
    for path in sorted(folder.glob("*.deb")):
        _run(["dpkg", "-x", str(path), str(root)], f"`{path.name}` cannot be unpacked")
    if (root / "usr/lib/modules").is_dir() and not (root / "lib").exists():
        (root / "lib").symlink_to("usr/lib")
    if (root / "usr/bin/busybox").is_file() and not (root / "bin").exists():
        (root / "bin").symlink_to("usr/bin")
    return root


def _kernel_package() -> str:
    """Find the package of Debian's newest kernel: the first one that the meta package needs."""
    lines: list[str] = []
    try:
        process.run(["apt-cache", "depends", META_PACKAGE], lines.append)
    except OSError:
        lines = []
    for line in lines:
        if found := re.search(r"Depends: (linux-image-\S+)", line):
            return found[1]
    raise EngineError.of(
        f"this host's apt does not know `{META_PACKAGE}`, the kernel of the Soft-RoCE machine",
        hint="use a Debian host, and run `apt-get update` there",
    )


def _download(folder: Path, package: str, on_line: Callable[[str], None]) -> None:
    """Download a package with the host's own settings.

    `env` only changes the folder, because apt-get writes into the current one.
    """
    get = ["env", f"--chdir={folder}", "apt-get", "-q", "-o", "APT::Sandbox::User=root"]
    try:
        _run([*get, "download", package], f"`{package}` cannot be fetched")
    except EngineError:
        # The package lists may be old and name a package that the archive no longer has.
        _run([*get, "update"], "`apt-get update` failed", on_line)
        _run([*get, "download", package], f"`{package}` cannot be fetched")


def _run(
    argv: Sequence[str], problem: str, on_line: Callable[[str], None] = lambda _: None
) -> None:
    try:
        ended = process.run(argv, on_line)
    except OSError as error:
        raise EngineError.of(f"`{argv[0]}` cannot be run", evidence=[str(error)]) from error
    if ended.code != 0:
        raise EngineError.of(problem, evidence=ended.tail, hint="imagegen doctor")
