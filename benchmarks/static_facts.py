"""List the facts that the static checks establish, as users of testinfra would write them.

They are those of `validate --static` about an image for training on CPUs, for testinfra or
container-structure-test: a fact for each thing where there are few, one shell line where there are
hundreds, one `import torch`.
"""

from __future__ import annotations

from typing import Any

import static_facts_training
from static_fact import ANYTHING, Command, Environment, Fact, File

SUITES = ("horovod", "limits", "openmpi", "os", "python", "rdma", "ssh", "torch", "validate")
"""The suites that are compared, however many more an image has."""

LEFT_OUT = {
    "torch.cuda-build": "rests: the image is for CPUs",
    "torch.nccl": "rests: the image is for CPUs",
    "torch.cudnn": "rests: the image is for CPUs",
    "hvd.tf-abi": "rests: the image has no TensorFlow",
    "hvd.mxnet-abi": "rests: the image has no MXNet",
    "rdma.ofed": "rests: the verbs stack is the distribution's",
}
"""Static checks of the image's suites that no fact stands for, with the reason."""

HOSTS_OWN = "/etc/hostname"
"""The engine writes this file when a container starts: older files came with the image."""

PEOPLES_PLACES = (
    "/.dockerenv /etc /home /opt /root /srv /tmp /usr/local/etc /usr/src /var/tmp -xdev "
    r"\( -path /etc/ssl -o -path /etc/ca-certificates -o -path /opt/imagegen/env \) -prune -o"
)
"""Folders for `find` that are not the distribution's own."""
CREDENTIALS = (
    *(".aws/credentials", ".netrc", ".git-credentials", ".docker/config.json", ".kube/config"),
    *(".huggingface/token", ".config/gcloud/credentials.db"),
)
"""What `find` looks for by name; `validate` looks into these files too."""
SECRETS = (
    r"(?m)^-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=:]|\bAKIA[0-9A-Z]{16}\b|"
    r"\bgh[pousr]_[A-Za-z0-9]{36}|\bhf_[A-Za-z0-9]{30,}"
)
SHADOWED = r"/lib(nccl|cudnn|cudart|mpi|ibverbs|rdmacm)\.so\.[0-9]+(\.0)?$"


def facts(expected: dict[str, Any]) -> list[Fact]:
    """List the facts that an image promises in its expectation file, as `validate` checks them."""
    return [
        *_validate(expected),
        *_system(expected["os"]),
        *_loader(expected["os"]["lib_dir"]),
        *_clean(),
        *_python(expected["components"]["python"]),
        *static_facts_training.facts(expected),
    ]


def _validate(expected: dict[str, Any]) -> list[Fact]:
    version = expected["components"]["validate"]["version"]
    whole = (r"^\{", '"schema": 1', r"^\}")
    allowed = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    return [
        File(("env.manifest",), "/etc/imagegen/image.json", whole, mode=0o644),
        File(("env.manifest",), "/opt/imagegen/validate/__init__.py",
             (f'__version__ = "{version}"',)),
        Environment(("env.contract", "os.locale", "os.preload", "mpi.root"), expected["env"],
                    ("LD_PRELOAD", *allowed)),
    ]  # fmt: skip


def _system(system: dict[str, str]) -> list[Fact]:
    version = system["VERSION_ID"]
    return [
        File(("os.release",), "/etc/os-release",
             (f"^ID={system['ID']}$", f'^VERSION_ID="{version}"$')),
        Command(("os.arch", "os.kernel"), "uname -mr", (rf"^\d\S* {system['arch']}$",)),
        Command(("os.glibc",), "getconf GNU_LIBC_VERSION", (f"^glibc {system['glibc']}$",)),
        Command(("os.locale",), "locale charmap", ("^UTF-8$",)),
        Command(("os.account",), "getent passwd root", ("^root:[^:]*:0:0:",)),
        File(("os.tmp",), "/tmp", mode=0o1777, folder=True),
        File(("os.tmp",), "/var/tmp", mode=0o1777, folder=True),
        File(("os.preload",), "/etc/ld.so.preload", there=False),
        File(("env.settings",), "/etc/nccl.conf", there=False),
        File(("env.settings",), "/root/.openmpi/mca-params.conf", there=False),
        Command(("os.ld-gone",), "ldconfig -p | sed -n 's/.*=> //p' | xargs ls -d 2>&1 | "
                "grep 'No such file' || true", unwanted=ANYTHING),
    ]  # fmt: skip


def _loader(lib_dir: str) -> list[Fact]:
    known = r"/sbin/ldconfig -p | sed -n 's/^\t\([^ ]*\) (.*/\1/p'"
    would = r"/sbin/ldconfig -NXv 2> /dev/null | sed -n 's/^\t\([^ ]*\.so\.[^ ]*\) -> .*/\1/p'"
    folders = "$(grep -h '^/' /etc/ld.so.conf.d/*.conf)"
    places = f"/sbin/ldconfig -p | sed -n 's/.* => //p'; ls -d {lib_dir}/* /lib64/* /usr/lib/*.so*"
    return [
        # Every SONAME that ldconfig would write to the cache now is in the cache.
        Command(("os.ldcache",), f'{would} | grep -vxF "$({known})" || true', unwanted=ANYTHING),
        Command(("os.broken-links",), f"find {folders} {lib_dir} -maxdepth 1 -name '*.so*' "
                "-xtype l 2> /dev/null || true", unwanted=ANYTHING),
        # Two different files (device and inode) with the same name.
        Command(("os.shadowed",), f"{{ {places}; }} 2> /dev/null | grep -E '{SHADOWED}' | "
                "xargs stat -L -c '%d:%i %n' | sed 's/ .*\\// /' | sort -u | cut -d' ' -f2 | "
                "uniq -d", unwanted=ANYTHING),
    ]  # fmt: skip


def _clean() -> list[Fact]:
    names = " -o ".join(f"-path '*/{name}'" for name in CREDENTIALS)
    # ssh.hostkeys-baked and ssh.userkeys-baked check SSH keys.
    no_keys = "! -path '/etc/ssh/*_key' ! -path '*/.ssh/id_*'"
    lists = "! -name lock ! -name partial ! -name auxfiles"
    return [
        Command(("os.leftovers",), "find /tmp /var/tmp -mindepth 1 -maxdepth 1 "
                f"! -newer {HOSTS_OWN}", unwanted=ANYTHING),
        Command(("os.leftovers",), f"find /var/lib/apt/lists -mindepth 1 -maxdepth 1 {lists}",
                unwanted=ANYTHING),
        File(("os.leftovers",), "/root/.cache/pip", there=False),
        File(("os.leftovers",), "/root/.bash_history", there=False),
        Command(("os.secrets",), f"find {PEOPLES_PLACES} \\( {names} \\) -print",
                unwanted=ANYTHING),
        Command(("os.secrets",), f"find {PEOPLES_PLACES} -type f -size -65k {no_keys} "
                f"-exec grep -lPz '{SECRETS}' {{}} + || true", unwanted=ANYTHING),
        Command(("os.secrets-env",), "env | grep -E '(_|^)(PASSWORD|SECRET|TOKEN|API_KEY)=.' || "
                "true", unwanted=ANYTHING),
    ]  # fmt: skip


def _python(row: dict[str, Any]) -> list[Fact]:
    interpreter = row["facts"]["interpreter"]
    same = (rf"{interpreter}[\d.]*$",)
    return [
        Command(("py.start",), f"{interpreter} -c 'import random; print(random.__file__)'",
                ("^/usr/lib/python",)),
        Command(("py.version",), f"{interpreter} --version", (f"^Python {row['version']}$",)),
        *[Command(("py.single",), f"readlink -f $(command -v {name})", same)
          for name in ("python", "python3")],
        *[Command(("py.single",), f"head -n 1 $(command -v {name})", same)
          for name in ("pip", "pip3")],
        Command(("py.dists", "known.bad"), f"{interpreter} -m pip --disable-pip-version-check list "
                "--format freeze | grep -E '^nvidia-nccl-cu' || true", unwanted=ANYTHING),
        Command(("py.dists",), "find / -xdev -name '*.dist-info' -prune -print | "
                "sed -E 's/-[^-]*$//' | sort | uniq -d", unwanted=ANYTHING),
        Command(("py.pip-check",), f"{interpreter} -m pip --disable-pip-version-check check",
                ("No broken requirements",)),
    ]  # fmt: skip
