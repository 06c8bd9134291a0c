"""Pack a Python with the checks into one archive, for machines without a usable Python.

The archive holds the interpreter that runs this, its standard library, pytest and testinfra, and
the C library that they were linked against. The target uses its own C library if the interpreter
starts with it, and the packed one if its own is older.
"""

import importlib.util
import io
import os
import re
import sys
import sysconfig
import tarfile
from typing import Dict, Iterator, List, Tuple

from validate.process import run

MODULES = (
    *("pytest", "_pytest", "testinfra", "pluggy", "iniconfig", "packaging", "pygments"),
    *("exceptiongroup", "tomli", "attr", "attrs", "py", "importlib_metadata", "zipp"),
    *("typing_extensions", "pyparsing", "validate"),
)
"""Modules that the checks import, apart from the standard library. Those that this Python has are
packed.
"""

LEFT_OUT = {
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "ensurepip",
    "lib2to3",
    "turtledemo",
    "pydoc_data",
}
"""Folders of the standard library that the checks do not need."""
LEFT_OUT |= {"site-packages", "dist-packages", "__pycache__", "distutils", "msilib"}
NOT_NEEDED = re.compile(
    r"_(tkinter|test\w*|dbm|gdbm|curses\w*|sqlite3|ssl|hashlib|xxtestfuzz|codecs_\w+|ctypes_test)\."
    r"|(readline|nis|ossaudiodev|xxlimited\w*|audioop)\."
)
"""Extension modules that the checks do not need."""
C_LIBRARY = re.compile(r"(ld-linux\S*|lib(c|m|pthread|dl|rt|util|resolv)\.so\.\d+)$")

LAUNCHER = """\
#!/bin/sh
here={folder}
loader=$(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 2> /dev/null | head -n 1)
if [ -e "$here/own-libc" ]; then
  exec "$here"/libc/ld-linux* --library-path "$here/libc:$here/libs" "$here/bin/python.bin" "$@"
fi
exec "$loader" --library-path "$here/libs" "$here/bin/python.bin" "$@"
"""

START = """\
import sys
sys.executable = {folder!r} + "/bin/python"
sys.path.insert(0, {folder!r} + "/site")
from validate.cli import main
sys.exit(main(sys.argv[1:]))
"""

INSTALL = """\
set -e
mkdir -p {folder}/x && cd {folder} && tar xzf bundle.tar.gz && rm -rf bundle.tar.gz x
chmod 0755 bin/python bin/python.bin libc/ld-linux*
touch own-libc
bin/python -I -c 'import ctypes, json, struct, select, math' || {{ echo 'cannot start'; exit 1; }}
rm own-libc
bin/python -I -c 'import ctypes, json, struct, select, math' 2> /dev/null || touch own-libc
"""


def archive(folder: str, below: str = "") -> bytes:
    """Pack all files for a folder on the target into the bytes of a .tar.gz.

    Names begin with `below`. The files are root's, and everybody may read and run them.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=3) as tar:
        for name, path in _files():
            tar.add(path, below + name, recursive=False, filter=_for_everybody)
        _text(tar, below + "bin/python", LAUNCHER.format(folder=folder))
        _text(tar, below + "start.py", START.format(folder=folder))
    return buffer.getvalue()


def _for_everybody(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.mode, info.uid, info.gid, info.uname, info.gname = 0o755, 0, 0, "root", "root"
    return info


def _text(tar: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode("utf-8")
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o755
    tar.addfile(info, io.BytesIO(data))


def _files() -> Iterator[Tuple[str, str]]:
    """Yield (name in the archive, path here) of every file to pack."""
    python = os.path.realpath(sys.executable)
    standard = sysconfig.get_paths()["stdlib"]
    version = "python{}.{}".format(*sys.version_info[:2])
    binaries = [python]
    yield "bin/python.bin", python
    for path in _tree(standard):
        if path.endswith(".so"):
            binaries.append(path)
        yield os.path.join("lib", version, os.path.relpath(path, standard)), path
    yield from _modules()
    for name, path in sorted(_libraries(binaries).items()):
        yield (
            os.path.join("libc" if C_LIBRARY.match(name) else "libs", name),
            os.path.realpath(path),
        )


def _tree(top: str) -> Iterator[str]:
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(f for f in folders if f not in LEFT_OUT and not f.startswith("config-"))
        for name in sorted(files):
            if name.endswith((".py", ".so", ".json")) and not NOT_NEEDED.match(name):
                yield os.path.join(folder, name)


def _modules() -> Iterator[Tuple[str, str]]:
    for module in MODULES:
        spec = importlib.util.find_spec(module)
        if spec is None or not spec.origin:
            continue
        top = os.path.dirname(spec.origin)
        if not spec.submodule_search_locations:
            yield "site/" + os.path.basename(spec.origin), spec.origin
            continue
        for path in _tree(top):
            yield os.path.join("site", module, os.path.relpath(path, top)), path


def _libraries(binaries: List[str]) -> Dict[str, str]:
    """Map the SONAME of every library that the binaries load to its path."""
    found: Dict[str, str] = {}
    for line in run(["ldd", *binaries]).out.splitlines():
        match = re.match(r"\s+(\S+) => (/\S+)", line) or re.match(r"\s+((/\S+))", line)
        if match:
            found[os.path.basename(match.group(1))] = match.group(2)
    return found
