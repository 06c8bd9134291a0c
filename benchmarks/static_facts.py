"""What `validate --static` finds out about an image for training on CPUs, as somebody would write
it for a tool that runs one command for each fact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WITH_KEY = (
    "mkdir -p /run/sshd; rm -f /tmp/fact-key*; ssh-keygen -q -t ed25519 -N '' -f /tmp/fact-key && "
    "{} -h /tmp/fact-key && rm -f /tmp/fact-key*"
)
"""sshd answers no question without a host key, which goes again, nor without its folder, which
the entrypoint makes, and container-structure-test runs none; that one also takes the variables out
of a command line."""
LOADED = (
    "import torch, horovod.torch; "
    "libs = {l.split()[-1] for l in open('/proc/self/maps') if 'libmpi.so' in l}; print(len(libs))"
)
BUILT = (
    "import horovod.torch as h; print(*map(bool, (h.mpi_built(), h.nccl_built(), h.gloo_built())))"
)


@dataclass(frozen=True)
class Fact:
    """A check, the command that shows it (a shell line), and a pattern in what that prints; or a
    file, with a pattern for what is in it (empty: that it is there)."""

    check: str
    wants: str
    command: str = ""
    path: str = ""


def facts(expected: dict[str, Any]) -> list[Fact]:
    """By the expectation file of the image: the very promises that `validate` holds it to."""
    parts = expected["components"]
    found = _system(expected) + _python(parts)
    found += _mpi(parts["openmpi"]) + _ssh(parts["ssh"]) + _horovod(parts["horovod"])
    return found + (_rdma(parts["rdma"], expected["os"]["lib_dir"]) if "rdma" in parts else [])


def _system(expected: dict[str, Any]) -> list[Fact]:
    system, folder = expected["os"], expected["os"]["lib_dir"]
    torch = "/usr/lib/python3/dist-packages/torch"
    return [
        Fact("env.manifest", "", path="/etc/imagegen/image.json"),
        *[Fact("env.contract", value, f"printenv {name}") for name, value in _env(expected)],
        Fact("os.release", f"ID={system['ID']}", path="/etc/os-release"),
        Fact("os.release", f'VERSION_ID="{system["VERSION_ID"]}"', path="/etc/os-release"),
        Fact("os.arch", system["arch"], "uname -m"),
        Fact("os.glibc", f"glibc {system['glibc']}", "getconf GNU_LIBC_VERSION"),
        Fact("os.ldcache", "libmpi.so.40", "/sbin/ldconfig -p"),
        Fact("os.broken-links", "^$", f"find {folder} -maxdepth 1 -xtype l -name '*.so*'"),
        Fact("os.elf-deps", "^$", f"ldd {torch}/lib/libtorch_python.so | grep 'not found'; :"),
        Fact("os.locale", "UTF-8", "printenv LC_ALL LANG"),
        Fact("os.leftovers", "^$", "ls -d /root/.cache/pip /root/.bash_history 2> /dev/null; :"),
        Fact("os.leftovers", "^$", "find /var/lib/apt/lists -name '*Packages*'"),
        Fact("os.secrets", "^$", "grep -rlsE 'AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}' "
             "/root /home /srv /etc --exclude-dir=ssl; :"),
        Fact("os.secrets", "^$", "grep -rlsE '^-----BEGIN [A-Z ]*PRIVATE KEY-----' "
             "/root /home /srv /etc --exclude-dir=.ssh --exclude-dir=ssh --exclude-dir=ssl; :"),
        Fact("os.shadowed", "^1$", "/sbin/ldconfig -p | grep -c 'libmpi.so.40 '"),
    ]  # fmt: skip


def _env(expected: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in expected.get("env", {}).items() if "/" not in value]


def _python(parts: dict[str, Any]) -> list[Fact]:
    python, torch = parts["python"], parts["torch"]
    interpreter = python["facts"]["interpreter"]
    says = torch["facts"].get("reports") or torch["version"]
    return [
        Fact("py.version", f"Python {python['version']}", f"{interpreter} --version"),
        Fact("py.single", "python3", "readlink -f $(command -v python)"),
        Fact("py.single", "python3", "readlink -f $(command -v python3)"),
        Fact("py.single", "python3", "head -n 1 $(command -v pip)"),
        Fact("py.single", "python3", "head -n 1 $(command -v pip3)"),
        Fact("py.pip-check", "No broken requirements", "python3 -m pip check"),
        Fact("torch.version", says, "python3 -c 'import torch; print(torch.__version__)'"),
        Fact("torch.loaded-libs", "^1$", f'python3 -c "{LOADED}"'),
    ]


def _mpi(row: dict[str, Any]) -> list[Fact]:
    prefix = row["facts"]["prefix"]
    info = f"{prefix}/bin/ompi_info --parsable"
    return [
        Fact("mpi.prefix", "path:prefix:/usr", f"{info} --path prefix"),
        Fact("mpi.version", row["version"], f"{prefix}/bin/mpirun --version"),
        Fact("mpi.single", "^1$", "which -a mpirun | xargs -n 1 readlink -f | sort -u | wc -l"),
        Fact("mpi.nonlogin-path", f"{prefix}/bin", path="/etc/environment"),
        Fact("mpi.threads", "MPI_THREAD_MULTIPLE: yes", f"{info} --all"),
    ]


def _ssh(row: dict[str, Any]) -> list[Fact]:
    port = row["facts"]["port"]
    server = WITH_KEY.format("/usr/sbin/sshd -T -C user=root,host=localhost,addr=127.0.0.1")
    return [
        Fact("ssh.sshd", f"OpenSSH_{row['version']}", "ssh -V 2>&1"),
        Fact("ssh.sshd", "^$", WITH_KEY.format("/usr/sbin/sshd -t")),
        Fact("ssh.hostkeys-baked", "^$", _older("/etc/ssh")),
        Fact("ssh.userkeys-baked", "^$", _older("/root")),
        Fact("ssh.perms", "700", "stat -c %a /root"),
        Fact("ssh.conf", f"port {port}", server),
        Fact("ssh.conf", f"port {port}", "ssh -G root@localhost"),
        Fact("ssh.maxstartups", "maxstartups", server),
    ]


def _older(folder: str) -> str:
    """Private keys that were there before the container."""
    names = "-name '*_key' -o -name 'id_*'"
    return f"find {folder} -maxdepth 2 \\( {names} \\) ! -newer /etc/hostname"


def _horovod(row: dict[str, Any]) -> list[Fact]:
    said = " ".join(str(bool(row["facts"][kind])) for kind in ("mpi", "nccl", "gloo"))
    dist = "from importlib.metadata import version; print(version('horovod'))"
    library = "/usr/local/lib/python3*/dist-packages/horovod/torch/mpi_lib_v2*.so"
    return [
        Fact("hvd.dist", row["version"], f'python3 -c "{dist}"'),
        Fact("hvd.build", said, f'python3 -c "{BUILT}"'),
        Fact("hvd.link", "libmpi.so.40 => /", f"ldd {library}"),
    ]


def _rdma(row: dict[str, Any], folder: str) -> list[Fact]:
    given = row["facts"]
    load = "python3 -c \"import ctypes; print(ctypes.CDLL('{}')._name)\""
    private = f"grep -c IBVERBS_PRIVATE_{given['pabi']} {folder}/libibverbs.so.1"
    return [
        *[Fact("rdma.libs", n, load.format(n)) for n in ("libibverbs.so.1", "librdmacm.so.1")],
        *[Fact("rdma.provider", name, f"ls {folder}/libibverbs/lib{name}-*.so")
          for name in given["providers"]],
        Fact("rdma.pabi", "^[1-9]", private),
        *[Fact("rdma.tools", name, f"command -v {name}") for name in given["tools"]],
        Fact("rdma.no-kmod", "^$", "find / -xdev -name '*.ko' -o -xdev -name '*.ko.xz'"),
    ]  # fmt: skip
