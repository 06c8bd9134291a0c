"""Add to the components of an image what their checks need to know, from files and programs.

A program is asked only in the container itself, not in a tree of files.
"""

import ast
import os
import re
from typing import Any, Callable, Dict, List, NamedTuple

from validate.discovery.contents import Contents
from validate.discovery.interpreters import python_release
from validate.probes import mpi, nccl
from validate.probes.cuda import major_minor
from validate.probes.files import names, read, under
from validate.probes.interpreter import VERSION, ask
from validate.probes.programs import on_path
from validate.process import run

Row = Dict[str, Any]
ASK_SECONDS = 30.0

MPI_PLACES = (
    *("/usr/local/openmpi/bin", "/opt/openmpi/bin", "/usr/local/mpi/bin", "/opt/hpcx/ompi/bin"),
    *("/usr/lib64/openmpi/bin", "/usr/local/bin", "/usr/bin"),
)
"""Where Open MPI lies if PATH does not lead to it."""
RDMA_TOOLS = ("ibv_devinfo", "ibv_devices", "ibv_rc_pingpong", "ib_write_bw", "ibstat", "rdma")
TOOL_FOLDERS = ("/usr/bin", "/usr/sbin", "/sbin", "/bin")
PROVIDERS = "/etc/libibverbs.d"
TORCH_SETTING = r"^{}\b[^=\n]*=\s*(.+)$"


class Around(NamedTuple):
    """Hold where to look: the root, the contents of the image, and its Python."""

    root: str
    contents: Contents
    python: str

    @property
    def live(self) -> bool:
        """Return whether programs can be asked."""
        return self.root == "/"


def with_facts(components: Dict[str, Row], around: Around) -> Dict[str, Row]:
    """Return the components with their facts; those that turn out to be absent are left out."""
    found = dict(components)
    for name, complete in COMPLETE.items():
        row = complete(found.get(name), around)
        found.pop(name, None)
        if row is not None:
            found[name] = row
    return found


def _row(version: str, origin: str, **facts: object) -> Row:
    return {"version": version, "variant": "", "origin": origin, "facts": facts}


def _python(_: Any, around: Around) -> Any:
    if not around.python:
        return None
    said = ask(around.python, VERSION, around.contents.env, ASK_SECONDS) if around.live else None
    version = (
        str(said.facts["version"])
        if said and said.ok
        else python_release(around.root, around.python)
    )
    return _row(version, around.python, interpreter=around.python)


def _openmpi(seen: Any, around: Around) -> Any:
    """Take the first Open MPI of PATH: that is the one which `mpirun` starts."""
    for folder in _mpi_folders(around):
        prefix = os.path.dirname(folder.rstrip("/"))
        version = _mpirun_version(prefix, seen, around)
        if version:
            runtime = "prrte" if int(version.partition(".")[0]) >= 5 else "orte"
            home = _mpi_home(prefix, around) or prefix
            return _row(version, prefix, prefix=prefix, home=home, runtime=runtime)
    return None


def _mpi_folders(around: Around) -> List[str]:
    """List the folders with an mpirun in their order; those of a whole Open MPI come first."""
    path = ":".join([around.contents.env.get("PATH", ""), *MPI_PLACES])
    folders = [one for one in dict.fromkeys(path.split(":")) if one]
    there = [one for one in folders if on_path(["mpirun"], under(around.root, one))]
    return sorted(there, key=lambda one: not on_path(["ompi_info"], under(around.root, one)))


def _mpirun_version(prefix: str, seen: Any, around: Around) -> str:
    if around.live:
        said = run([prefix + "/bin/mpirun", "--version"], ASK_SECONDS, around.contents.env)
        return mpi.parse_version(said.out)
    open_mpi = names(under(around.root, prefix + "/share/openmpi"))
    return str(seen["version"]) if seen and (open_mpi or prefix == "/usr") else ""


def _mpi_home(prefix: str, around: Around) -> str:
    argv = [prefix + "/bin/ompi_info", "--parsable", "--path", "prefix"]
    said = run(argv, ASK_SECONDS, around.contents.env) if around.live else None
    return mpi.parse_prefix(said.out) if said else ""


def _ssh(seen: Any, around: Around) -> Any:
    """Find sshd, also where no package says so; its port is the first that its settings name."""
    server = any(
        os.path.exists(under(around.root, one)) for one in ("/usr/sbin/sshd", "/sbin/sshd")
    )
    version = _ssh_version(around) or (str(seen["version"]) if seen else "")
    if not server or not version:
        return None
    return _row(version, "/usr/sbin/sshd", port=_port(around.root))


def _ssh_version(around: Around) -> str:
    said = run(["ssh", "-V"], ASK_SECONDS, around.contents.env) if around.live else None
    match = re.match(r"OpenSSH_(\d+\.\d+)", (said.err + said.out).strip()) if said else None
    return match.group(1) if match else ""


def _port(root: str) -> str:
    parts = "/etc/ssh/sshd_config.d"
    files = [os.path.join(parts, name) for name in names(under(root, parts))]
    for file in [*files, "/etc/ssh/sshd_config"]:
        match = re.search(r"^\s*Port[\s=]+(\d+)", read(under(root, file)), re.MULTILINE | re.I)
        if match:
            return match.group(1)
    return "22"


def _torch(seen: Any, around: Around) -> Any:
    """Read torch/version.py, which PyTorch's build writes: its own word without an import."""
    if not seen:
        return None
    said = torch_settings(around.contents.sites)
    cuda = said.get("cuda")
    version = str(said.get("__version__") or seen["version"])
    facts = {"cuda": cuda, "device": "gpu" if cuda else "cpu"}
    own = _wheel(around, "nvidia-nccl-cu*")
    if own:
        facts["nccl"] = own
    return dict(_row(version, str(seen["origin"])), facts=facts)


def torch_settings(sites: List[str]) -> Dict[str, Any]:
    """Return `__version__` and `cuda` of the first torch/version.py in these folders."""
    texts = [read(os.path.join(site, "torch", "version.py")) for site in sites]
    text = next(filter(None, texts), "")
    found = {}
    for name in ("__version__", "cuda"):
        match = re.search(TORCH_SETTING.format(name), text, re.MULTILINE)
        try:
            found[name] = ast.literal_eval(match.group(1).strip()) if match else None
        except (ValueError, SyntaxError):
            found[name] = None
    return found


def _wheel(around: Around, glob: str) -> str:
    stem = glob.rstrip("*")
    wheels = around.contents.wheels
    return next((wheels[name] for name in sorted(wheels) if name.startswith(stem)), "")


def _cuda(seen: Any, around: Around) -> Any:
    """Take the toolkit of the system, else the run time that wheels bring."""
    version = str(seen["version"]) if seen else _wheel(around, "nvidia-cuda-runtime")
    origin = str(seen["origin"]) if seen else "wheel nvidia-cuda-runtime {}".format(version)
    return _row(major_minor(version), origin) if major_minor(version) else None


def _nccl(seen: Any, around: Around) -> Any:
    """Take what the library says where neither a package nor its name tells the release."""
    if seen:
        return dict(_row(str(seen["version"]), str(seen["origin"])))
    paths = [one for one in around.contents.libraries if nccl.LIBRARY in os.path.basename(one)]
    version = next(filter(None, (nccl.built(path)[0] for path in paths)), "")
    return _row(version, paths[0]) if version else None


def _rdma(seen: Any, around: Around) -> Any:
    if not seen:
        return None
    providers = [name.partition(".")[0] for name in names(under(around.root, PROVIDERS))]
    places = [under(around.root, folder) for folder in TOOL_FOLDERS]
    tools = [one for one in RDMA_TOOLS if any(one in names(folder) for folder in places)]
    facts = {"providers": providers, "tools": tools}
    return dict(seen, facts=facts)


COMPLETE: Dict[str, Callable[[Any, Around], Any]] = {
    "python": _python,
    "openmpi": _openmpi,
    "ssh": _ssh,
    "torch": _torch,
    "cuda": _cuda,
    "nccl": _nccl,
    "rdma": _rdma,
}
"""Component -> what makes its row complete, from its sighting or None."""
