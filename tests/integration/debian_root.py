"""Run programs of another Debian release on this kernel, in its root file system, without a guest.

The root is made once, with the archive settings of this machine, and kept in the user's cache.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "imagegen-tests")

_ENTER = """\
set -e
root=$1 folder=$2
shift 2
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount --make-rprivate /
mount --bind "$root" "$root"
for shared in proc sys dev; do mount --rbind "/$shared" "$root/$shared"; done
for own in run tmp; do mount -t tmpfs tmpfs "$root/$own"; done
mkdir -p "$root$folder"
mount --rbind "$folder" "$root$folder"
cd "$root"
pivot_root . mnt
cd /
umount --lazy /mnt
exec "$@"
"""
"""The mounts exist only for the started command and end with it. There is no chroot because runc
wants a root that is a mount point.
"""


@contextmanager
def one_process(name: str) -> Iterator[None]:
    """Let only one test process of this machine into the block at a time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class DebianRoot:
    """Hold a release of Debian with some packages in it, among them `mount` to enter the root."""

    suite: str
    packages: tuple[str, ...]

    @property
    def path(self) -> Path:
        return CACHE / "-".join([self.suite, *self.packages])

    def ensure(self) -> None:
        """Make the root if it is not there."""
        with one_process(self.path.name):
            if not self.path.exists():
                self._make(Path(f"{self.path}.partial"))

    def _make(self, partial: Path) -> None:
        shutil.rmtree(partial, ignore_errors=True)
        command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(self.packages)}"]
        made = subprocess.run([*command, self.suite, str(partial)], stderr=subprocess.PIPE)
        assert made.returncode == 0, made.stderr.decode(errors="replace")[-3000:]
        partial.rename(self.path)

    def entering(self, folder: Path) -> tuple[str, ...]:
        """Return the words to put before a command, so that it runs in this root.

        It sees `folder` in its place. The process that these words start is the command itself.
        """
        return ("unshare", "--mount", "sh", "-c", _ENTER, "enter", str(self.path), str(folder))
