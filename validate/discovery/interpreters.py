"""Choose the Python that trains in an image, and list the folders it imports from, from files.

PATH is what a user's commands follow, so its Python counts if it has a framework. Else another one
with a framework counts: that of a virtual environment or of conda that a script activates.
"""

import glob
import os
import re
from typing import Dict, List

from validate.probes.files import distinct_files, names, read, under

FRAMEWORKS = ("torch", "tensorflow", "mxnet", "horovod", "jax")
PROGRAM = re.compile(r"python3(\.\d+)?$")
PLACES = (
    *("/opt/*/bin", "/opt/conda/envs/*/bin", "/venv/bin", "/*/.venv/bin", "/*/venv/bin"),
    *("/root/*conda*/bin", "/root/*conda*/envs/*/bin", "/home/*/.venv/bin", "/home/*/*conda*/bin"),
    *("/usr/local/bin", "/usr/bin", "/usr/local/*/bin"),
)
"""Where Pythons lie that are not on PATH."""
OWN = "/opt/imagegen"
"""The environment of the checks themselves."""


def chosen(root: str, env: Dict[str, str]) -> str:
    """Return the path in the container of the Python that trains; empty if there is none."""
    usual = _in_folders(root, [one for one in env.get("PATH", "").split(":") if one])
    activated = [env[name] + "/bin" for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if env.get(name)]
    others = _in_folders(root, activated + [f for place in PLACES for f in _folders(root, place)])
    for python in usual + others:
        if has_framework(root, python, env):
            return python
    return next(iter(usual + others), "")


def has_framework(root: str, python: str, env: Dict[str, str]) -> bool:
    """Return whether a Python can import a framework."""
    folders = import_folders(root, python, env)
    return any(os.path.isdir(os.path.join(one, name)) for one in folders for name in FRAMEWORKS)


def import_folders(root: str, python: str, env: Dict[str, str]) -> List[str]:
    """List the folders that a Python imports packages from, as paths that can be opened.

    Source: site(3); Debian's dist-packages; `include-system-site-packages` of pyvenv.cfg.
    """
    prefix, version = os.path.dirname(os.path.dirname(python)), python_release(root, python)
    found = [one for one in env.get("PYTHONPATH", "").split(":") if one]
    found.append("{}/.local/lib/python{}/site-packages".format(env.get("HOME", "/root"), version))
    found += _of_prefix(prefix, version)
    settings = read(under(root, prefix + "/pyvenv.cfg"))
    if re.search(r"^include-system-site-packages\s*=\s*true", settings, re.MULTILINE):
        home = re.search(r"^home\s*=\s*(\S+)", settings, re.MULTILINE)
        found += _of_prefix(os.path.dirname(home.group(1)) if home else "/usr", version)
    there = [under(root, one) for one in found]
    return distinct_files([one for one in there if os.path.isdir(one)])


def _of_prefix(prefix: str, version: str) -> List[str]:
    found = [
        "{}/{}/python{}/site-packages".format(prefix, lib, version) for lib in ("lib", "lib64")
    ]
    if prefix in ("/usr", ""):
        found.append("/usr/local/lib/python{}/dist-packages".format(version))
        found += ["/usr/local/lib{}/python{}/site-packages".format(b, version) for b in ("", "64")]
        found += [
            "/usr/lib/python3/dist-packages",
            "/usr/lib64/python{}/site-packages".format(version),
        ]
    return found


def python_release(root: str, python: str) -> str:
    """Return the release of a Python, such as `3.11`, from the file that its name leads to."""
    match = re.search(r"python(3\.\d+)$", followed(root, python))
    if match:
        return match.group(1)
    lib = under(root, os.path.dirname(os.path.dirname(python)) + "/lib")
    found = [name[6:] for name in names(lib) if re.match(r"python3\.\d+$", name)]
    return max(found, key=lambda text: int(text[2:]), default="3")


def followed(root: str, path: str) -> str:
    """Follow the links of a path in the container, and return where it leads in the container."""
    for _ in range(40):
        here = under(root, path)
        if not os.path.islink(here):
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(here)))
    return path


def _folders(root: str, place: str) -> List[str]:
    found = sorted(glob.glob(under(root, place)))
    return ["/" + os.path.relpath(one, root) for one in found]


def _in_folders(root: str, folders: List[str]) -> List[str]:
    """List one Python of each folder: `python3`, else `python` where that is a Python 3."""
    found: List[str] = []
    for folder in dict.fromkeys(folders):
        if folder.startswith(OWN):
            continue
        for name in ("python3", "python"):
            path = os.path.join(folder, name)
            real = followed(root, path)
            three = name == "python3" or bool(PROGRAM.match(os.path.basename(real)))
            if three and path not in found and os.access(under(root, real), os.X_OK):
                found.append(path)
                break
    return found
