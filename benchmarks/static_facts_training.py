"""List the facts about PyTorch and Horovod, Open MPI, SSH and RDMA."""

from __future__ import annotations

import re
import shlex
from typing import Any

from static_fact import ANYTHING, Command, Fact, File, Program

TORCH = "/usr/lib/python3/dist-packages/torch"
HOROVOD = "/usr/local/lib/python3*/dist-packages/horovod"

IMPORTED = """\
import os, horovod, numpy, torch, horovod.torch as hvd
from importlib.metadata import distributions
from horovod.torch import mpi_lib_v2
torch.from_numpy(torch.ones(2).numpy())
mapped = {os.path.realpath(line.split()[-1]) for line in open("/proc/self/maps") if ".so" in line}
names = [os.path.basename(path).partition(".so")[0] for path in mapped]
print("torch", torch.__version__, torch.__file__)
print("numpy", numpy.__version__)
for name in ("nccl", "cudnn", "cudart", "mpi", "ibverbs", "torch_cpu", "c10"):
    print("lib" + name, names.count("lib" + name))
print("horovod", horovod.__version__, mpi_lib_v2.__file__)
print("built", *(bool(kind()) for kind in (hvd.mpi_built, hvd.nccl_built, hvd.gloo_built)))
print("packages", *(d.metadata["Name"] for d in distributions() if "horovod" in d.metadata["Name"]))
"""
"""One process answers all questions that need PyTorch."""

OF_PYTHON = ("torch.import", "torch.version", "torch.numpy", "torch.loaded-libs", "hvd.dist",
             "hvd.torch-abi", "hvd.build")  # fmt: skip
NAMED = r"/.*/lib(mpi\.so\.40|ibverbs\.so\.1|rdmacm\.so\.1|nccl\.so\.2)$"
FROM_THE_DRIVER = r"libcuda\.so\.1|libnvidia-ml\.so\.1"

WITH_KEY = (
    "mkdir -p /run/sshd; rm -f /tmp/fact-key*; ssh-keygen -q -t ed25519 -N '' -f /tmp/fact-key && "
    "{} -h /tmp/fact-key && rm -f /tmp/fact-key*"
)
"""sshd answers questions only with a host key, which is removed afterwards, and with its folder.
The entrypoint makes that folder, but container-structure-test runs no entrypoint.
"""
MADE_AT_START = 'sed -n "s/^$(hostname) //p" /run/imagegen/keys-made-at-start 2> /dev/null'

SERVER = (
    r"^permitrootlogin (yes|prohibit-password|without-password)$",
    r"^pubkeyauthentication yes$",
    r"^authenticationmethods (any|.*publickey.*)$",
    r"^authorizedkeysfile (.* )?\.ssh/authorized_keys",
    r"^forcecommand none$",
    r"^maxstartups \d+:\d+:\d+$",
)
NO_SERVER = ("^(allow|deny)(users|groups) ",)
CLIENT = (
    r"^stricthostkeychecking (no|false|off|accept-new)$",
    r"^userknownhostsfile /dev/null$",
)
NO_CLIENT = ("^proxy(jump|command) ",)


def facts(expected: dict[str, Any]) -> list[Fact]:
    """List the facts that an image promises about these components."""
    parts, lib_dir = expected["components"], expected["os"]["lib_dir"]
    found = [*_imported(parts), *_linked(parts["openmpi"]["facts"]["prefix"], lib_dir)]
    found += [*_mpi(parts["openmpi"]), *_ssh(parts["ssh"])]
    return found + (_rdma(parts["rdma"], lib_dir) if "rdma" in parts else [])


def _imported(parts: dict[str, Any]) -> list[Fact]:
    torch, horovod, python = parts["torch"], parts["horovod"], parts["python"]
    built = " ".join(str(bool(horovod["facts"][kind])) for kind in ("mpi", "nccl", "gloo"))
    says = re.escape(torch["facts"].get("reports") or torch["version"])
    wants = (rf"^torch {says}\S* {TORCH}/", r"^numpy \d", "^libtorch_cpu 1$", "^libmpi 1$",
             rf"^horovod {re.escape(horovod['version'])} /.*/mpi_lib_v2", f"^built {built}$",
             r"^packages horovod$")  # fmt: skip
    owner = f"$(dpkg-query --search {TORCH}/__init__.py | cut -d: -f1)"
    return [
        Command(OF_PYTHON, f"{python['facts']['interpreter']} -c {shlex.quote(IMPORTED)}", wants,
                (r"^lib\S+ ([2-9]|\d\d)",)),
        Command(("torch.version",), f"dpkg-query --show {owner}",
                (rf"\s(\d+:)?{re.escape(torch['version'])}[+-]",)),
    ]  # fmt: skip


def _linked(prefix: str, lib_dir: str) -> list[Fact]:
    ours = f"find {TORCH} {HOROVOD} {prefix}/lib {lib_dir}/openmpi -name '*.so'"
    extension = f"{HOROVOD}/torch/mpi_lib_v2*.so"
    return [
        Command(("os.elf-deps",), f"{{ {ours}; /sbin/ldconfig -p | grep -oE '{NAMED}'; }} "
                "2> /dev/null | xargs ldd 2> /dev/null | grep 'not found' | "
                f"grep -vE '{FROM_THE_DRIVER}' || true", unwanted=ANYTHING),
        Command(("hvd.link",), f"ldd {extension} $(readlink -f {prefix}/bin/ompi_info) | "
                r"grep -o '/.*/libmpi\.so[^ ]*' | xargs -n 1 readlink -f | sort | uniq -c",
                (r"^ *2 /",)),
    ]  # fmt: skip


def _mpi(row: dict[str, Any]) -> list[Fact]:
    prefix = row["facts"]["prefix"]
    homes = "|".join(map(re.escape, (prefix, row["facts"].get("home", prefix))))
    ours = f"readlink -f {prefix}/bin/mpirun"
    daemon = "prted" if row["facts"].get("runtime") == "prrte" else "orted"
    return [
        Command(("mpi.prefix",), f"{prefix}/bin/ompi_info --parsable --path prefix",
                (f"^path:prefix:({homes})$",)),
        Command(("mpi.prefix", "mpi.version"), f"{prefix}/bin/mpirun --version",
                (rf"^mpirun \(Open MPI\) {re.escape(row['version'])}$",)),
        Command(("mpi.single",), f"{{ which -a mpirun | xargs -n 1 readlink -f; {ours}; }} | "
                "sort -u | wc -l", ("^1$",)),
        Command(("mpi.single",), r"/sbin/ldconfig -p | grep -o '/.*/libmpi\.so\..*' | "
                "xargs -n 1 readlink -f | sort -u | wc -l", ("^1$",)),
        Command(("mpi.nonlogin-path",), f". /etc/environment; command -v {daemon}",
                (f"/{daemon}$",)),
        Command(("mpi.threads", "mpi.cuda"), f"{prefix}/bin/ompi_info --parsable --all",
                ("MPI_THREAD_MULTIPLE: yes", "mpi_built_with_cuda_support:value:")),
    ]  # fmt: skip


def _ssh(row: dict[str, Any]) -> list[Fact]:
    port = f"^port {row['facts']['port']}$"
    server = WITH_KEY.format("/usr/sbin/sshd -T -C user=root,host=localhost,addr=127.0.0.1")
    keys = "grep -rls 'PRIVATE KEY-----' {}"
    baked = f'{keys} | grep -vxF "$({MADE_AT_START})" || true'
    others = r"\( -perm /022 -o ! -user root \)"
    readable = r"xargs -r -I{} find -L {} \( -perm /077 -o ! -user root \)"
    return [
        Command(("ssh.sshd",), "ssh -V 2>&1", (f"^OpenSSH_{re.escape(row['version'])}p",)),
        Command(("ssh.sshd",), WITH_KEY.format("/usr/sbin/sshd -t"), unwanted=ANYTHING),
        Command(("ssh.start",), "dpkg-divert --truename /usr/sbin/sshd",
                ("^/usr/lib/imagegen/sshd$",)),
        Command(("ssh.start",), "head -c 2 /usr/sbin/sshd; test -x /usr/lib/imagegen/sshd",
                ("^#!",)),
        Command(("ssh.hostkeys-baked",), baked.format("/etc/ssh"), unwanted=ANYTHING),
        Command(("ssh.userkeys-baked",), baked.format("/root/.ssh /home/*/.ssh"),
                unwanted=ANYTHING),
        Command(("ssh.perms",), f"find -L /root /root/.ssh -maxdepth 0 {others} 2> /dev/null; "
                "find -L /root/.ssh -name authorized_keys -perm /022 2> /dev/null || true",
                unwanted=ANYTHING),
        Command(("ssh.perms",), f"{keys.format('/root/.ssh')} | {readable}", unwanted=ANYTHING),
        Command(("ssh.conf", "ssh.maxstartups"), server, (port, *SERVER), NO_SERVER),
        Command(("ssh.conf",), "ssh -G root@localhost", (port, *CLIENT), NO_CLIENT),
    ]  # fmt: skip


def _rdma(row: dict[str, Any], folder: str) -> list[Fact]:
    given, providers = row["facts"], f"{folder}/libibverbs"
    abi, tools = given["pabi"], {"ibstat": "/usr/sbin"}
    load = "import ctypes; print(*map(ctypes.CDLL, ('libibverbs.so.1', 'librdmacm.so.1')))"
    loaded = r"/sbin/ldconfig -p | sed -n 's/^\tlibibverbs\.so\.1 .* => //p' | head -n 1"
    modules = "mlnx-ofed-kernel-dkms mlnx-ofed-kernel-modules kernel-mft-dkms"
    return [
        Command(("rdma.libs",), f"python3 -c {shlex.quote(load)}",
                (r"libibverbs\.so\.1.*librdmacm\.so\.1",)),
        Command(("rdma.libs",), f"readlink -f $({loaded})",
                (rf"\.so\.\d+\.\d+\.{re.escape(row['version'])}$",)),
        *[File(("rdma.provider",), f"{providers}/lib{name}-rdmav{abi}.so")
          for name in given["providers"]],
        Command(("rdma.provider",), "cat /etc/libibverbs.d/*",
                tuple(rf"^driver (\S*/)?(lib)?{name}$" for name in given["providers"])),
        Command(("rdma.pabi",), f"grep -hoa 'IBVERBS_PRIVATE_[0-9]*' {folder}/libibverbs.so.1 "
                f"{providers}/*-rdmav*.so | sort -u | paste -sd,; "
                f"ls {providers} | grep -v -- '-rdmav{abi}.so$' || true",
                (f"^IBVERBS_PRIVATE_{abi}$",), ("-rdmav",)),
        *[Program(("rdma.tools",), f"{tools.get(name, '/usr/bin')}/{name}")
          for name in given["tools"]],
        Command(("rdma.no-kmod",), "find /lib/modules /usr/src -name '*.ko' -o -name '*.ko.xz' -o "
                "-name '*.ko.zst' 2> /dev/null || true", unwanted=ANYTHING),
        Command(("rdma.no-kmod",), f"dpkg-query --show {modules} 2> /dev/null || true",
                unwanted=ANYTHING),
    ]  # fmt: skip
