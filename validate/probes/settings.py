"""Find settings of MPI, UCX, NCCL, Gloo and PyTorch: variables, and the files that they read.

Files: Open MPI, "Setting MCA parameter values" (system and home, the override file, default host
files); PMIx and PRRTE have files of the same kind. UCX reads ucx.conf (ucs/config/parser.c: in
/etc/ucx, beside its libraries, in the home folder and in $UCX_CONFIG_DIR). NCCL: env.rst.
"""

import os
import re
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from validate.probes import nccl
from validate.probes.aside import unset
from validate.probes.conffiles import Line, not_of_package
from validate.probes.files import names, read, under
from validate.remedy import Remedy, in_shell

ENVIRONMENT = "the environment"
SESSIONS = "/etc/environment"
FAMILIES = "GLOO|HCOLL|HOROVOD|NCCL|OMPI|OPAL|ORTE|PMIX|PRTE|TORCH|TORCHELASTIC|UCC|UCX"
OURS = re.compile(r"(?:{})_\w+$".format(FAMILIES))
ASSIGNED = re.compile(
    r"""(?<![\w$])((?:{})_\w+)(?:=|(?<=\w)\s+(?:DEFAULT|OVERRIDE)=)("[^"]*"|'[^']*'|[^\s;&|]*)""".format(
        FAMILIES
    )
)
SETENV = re.compile(r"\s*setenv\s+((?:{})_\w+)\s+(\S+)".format(FAMILIES))
IN_A_RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK")
OF_A_RANK = re.compile(r"(OMPI|OPAL|ORTE|PMIX|PRTE|HCOLL|UCX|UCC)_")
"""mpirun gives its ranks these, and settings of its own command line among them."""

OF_SESSIONS = (
    SESSIONS,
    "/etc/security/pam_env.conf",
    "/etc/profile",
    "/etc/bash.bashrc",
    "/etc/bashrc",
    "/etc/csh.cshrc",
    "/etc/ssh/sshd_config",
)
FOLDERS_OF_SESSIONS = ("/etc/profile.d", "/etc/ssh/sshd_config.d", "/etc/environment.d")
OF_SESSIONS_AT_HOME = (
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshenv",
    ".cshrc",
    ".pam_environment",
    ".ssh/environment",
)
OF_MPI = (
    "openmpi-mca-params.conf",
    "openmpi-mca-params-override.conf",
    "pmix-mca-params.conf",
    "prte-mca-params.conf",
)
OF_MPI_AT_HOME = (".openmpi/mca-params.conf", ".pmix/mca-params.conf", ".prte/mca-params.conf")
HOSTS = ("openmpi-default-hostfile", "prte-default-hostfile")
SYSTEM = ("/etc", "/etc/openmpi", "/etc/pmix", "/etc/prte")

AT_LAUNCH = re.compile(
    r"\w+_SOCKET_IFNAME$|\w+_LOG_LEVEL$|OMPI_ALLOW_RUN_AS_ROOT(_CONFIRM)?$|OPAL_PREFIX$"
    r"|(OMPI|PRTE)_MCA_(btl|oob|prte|orte)_\w*(if_include|if_exclude|hostfile|keep_fqdn_hostnames)$"
    r"|(OMPI|PRTE)_MCA_plm_(rsh|ssh)_(args|agent)$|OMPI_MCA_(btl|orte|pml|plm)_base_verbose$"
    r"|NCCL_(DEBUG\w*|IB_(HCA|GID_INDEX|TC|SL|TIMEOUT|RETRY_CNT)|NET_GDR_LEVEL|TOPO_FILE|CUMEM_HOST_ENABLE)$"
    r"|UCX_(NET_DEVICES|IB_(GID_INDEX|TRAFFIC_CLASS|SL))$"
    r"|TORCH_(HOME|DISTRIBUTED_DEBUG|LOGS|SHOW_CPP_STACKTRACES|EXTENSIONS_DIR)$"
    r"|(TORCHELASTIC|HOROVOD)_\w+$"
)
"""What a launch has to say, or may: where the network is, who the peers are, what is logged. Other
checks say whether OPAL_PREFIX, the interfaces and the permission of root are right.
"""
LAUNCHED = {("NCCL_IB_DISABLE", "0"), ("NCCL_ALGO", "RING")}
"""What else `imagegen launch` sets; a test compares this with each component.yaml."""


class Setting(NamedTuple):
    """Hold one setting: its name and value, and the places where it is made.

    `lines` has the line of each place; those of the environment are empty.
    """

    name: str
    value: str
    places: Tuple[str, ...] = ()
    lines: Tuple[Line, ...] = ()

    @property
    def in_environment(self) -> bool:
        """Return whether processes have it now, so that a launch may have given it."""
        return ENVIRONMENT in self.places

    @property
    def reaches_mpi(self) -> bool:
        """Return whether a launch of Open MPI reads it."""
        return self.of_mpi or bool(OF_A_RANK.match(self.name)) or self.name.startswith("the host ")

    @property
    def of_sessions(self) -> bool:
        """Return whether sessions have it, as a variable, and this process has not."""
        return not self.in_environment and any(map(_is_of_sessions, self.places))

    @property
    def of_mpi(self) -> bool:
        """Return whether it is a parameter of Open MPI, PMIx or PRRTE."""
        files = any(os.path.basename(place).endswith("mca-params.conf") for place in self.places)
        return files or "_MCA_" in self.name

    @property
    def of_launch(self) -> bool:
        """Return whether it is what a launch says, not what an image should hold."""
        given = AT_LAUNCH.match(self.name) or (self.name, self.value) in LAUNCHED
        return self.in_environment and bool(given)

    def __str__(self) -> str:
        equals = "{}={}" if OURS.match(self.name) else "{} = {}"
        text = equals.format(self.name, self.value) if self.value else self.name
        return "{} in {}".format(text, " and ".join(self.places))


def foreign_settings(
    root: str, env: Dict[str, str], recipe: Dict[str, str], prefix: str = ""
) -> List[Setting]:
    """List all settings that the recipe did not make; `prefix` is that of Open MPI."""
    made: Dict[Tuple[str, str], Setting] = {}
    found = [*_variables(env), *_of_sessions(root, env), *_in_files(root, env, prefix)]
    for name, value, place, line in found:
        if recipe.get(name) == value:
            continue
        one = made.get((name, value), Setting(name, value))
        if place not in one.places:
            one = one._replace(places=(*one.places, place), lines=(*one.lines, line))
        made[name, value] = one
    return list(made.values())


Found = Tuple[str, str, str, Line]
"""Name, value, place, and the line in a file."""


def _is_of_sessions(place: str) -> bool:
    at_home = tuple("/" + name for name in OF_SESSIONS_AT_HOME)
    in_folder = os.path.dirname(place) in FOLDERS_OF_SESSIONS
    return place in OF_SESSIONS or in_folder or place.endswith(at_home)


def _variables(env: Dict[str, str]) -> Iterator[Found]:
    in_a_rank = any(name in env for name in IN_A_RANK)
    for name, value in sorted(env.items()):
        if OURS.match(name) and not (in_a_rank and OF_A_RANK.match(name)):
            yield name, value, ENVIRONMENT, Line()


def home_folders(env: Dict[str, str]) -> List[str]:
    """Return the home folders that count: of this process, and of root, who starts ranks."""
    return list(dict.fromkeys([env.get("HOME") or "/root", "/root"]))


def _of_sessions(root: str, env: Dict[str, str]) -> Iterator[Found]:
    paths = [*OF_SESSIONS, env.get("BASH_ENV", "")]
    for folder in FOLDERS_OF_SESSIONS:
        paths += [os.path.join(folder, name) for name in names(under(root, folder))]
    paths += [
        os.path.join(home, name) for home in home_folders(env) for name in OF_SESSIONS_AT_HOME
    ]
    for path in filter(None, paths):
        for line in read(under(root, path)).splitlines():
            if line.lstrip().startswith(("#", "unset ")):
                continue
            for match in [*ASSIGNED.finditer(line), *SETENV.finditer(line)]:
                yield match.group(1), match.group(2).strip("\"'"), path, Line(line)


def _in_files(root: str, env: Dict[str, str], prefix: str) -> Iterator[Found]:
    for path in _files_of_mpi(env, prefix):
        for line in not_of_package(root, path):
            text = line.text.partition("#")[0].strip()
            name, equals, value = text.partition("=")
            if text and os.path.basename(path) in HOSTS:
                yield "the host {}".format(text.split()[0]), "", path, line
            elif equals:
                yield name.strip(), value.strip(), path, line
    for path in _files_of_ucx(env):
        for text in read(under(root, path)).splitlines():
            name, equals, value = text.partition("#")[0].strip().partition("=")
            if equals:
                yield name.strip(), value.strip(), path, Line(text)
    for name, (value, place) in nccl.settings(root, env).items():
        if place != ENVIRONMENT:
            yield name, value, place, Line()


def _files_of_mpi(env: Dict[str, str], prefix: str) -> List[str]:
    folders = [*SYSTEM, *([os.path.join(prefix, "etc")] if prefix else [])]
    paths = [os.path.join(folder, name) for folder in folders for name in OF_MPI + HOSTS]
    paths += [os.path.join(home, name) for home in home_folders(env) for name in OF_MPI_AT_HOME]
    more = env.get("OMPI_MCA_mca_base_param_files", "") + "," + env.get("OMPI_MCA_param_files", "")
    return list(dict.fromkeys(paths + [path for path in re.split("[,:]", more) if path]))


def _files_of_ucx(env: Dict[str, str]) -> List[str]:
    folders = ["/etc/ucx", "/usr/etc/ucx", "/usr/local/etc/ucx", "/opt/ucx/etc/ucx"]
    folders += [env.get("UCX_CONFIG_DIR", ""), *home_folders(env)]
    return [os.path.join(folder, "ucx.conf") for folder in dict.fromkeys(folders) if folder]


EFFECTS: Sequence[Tuple[str, str]] = (
    (r"((OMPI|PRTE)_MCA_)?(btl|osc|pml|mtl|coll|plm|ras|ess)$", "which components may be used"),
    (r"UCX_TLS$", "UCX uses these transports alone"),
    (r"UCX_NET_DEVICES$", "UCX uses these devices alone"),
    (r"NCCL_(IB|P2P|SHM)_DISABLE$", "1 switches a transport of NCCL off"),
    (r"NCCL_NET(_PLUGIN)?$", "NCCL uses this network alone"),
    (r"NCCL_(ALGO|PROTO)$", "NCCL does not choose by itself any more"),
    (r"NCCL_(MIN|MAX)_(NCHANNELS|CTAS)$", "bounds how much NCCL does at the same time"),
    (r"NCCL_DEBUG$", "what NCCL writes to the log"),
    (r"\w+_SOCKET_IFNAME$|.*_if_(include|exclude)$", "which network interfaces are used"),
    (r"GLOO_DEVICE_TRANSPORT$", "Gloo uses this transport alone"),
    (r"TORCH_(NCCL_)?BLOCKING_WAIT$", "collectives block the processor until they end"),
    (r"TORCH_DISTRIBUTED_DEBUG$", "DETAIL checks each collective, which takes time"),
    (r"the host ", "mpirun starts ranks there unless it is told where"),
)
"""What settings do, the first that matches; those of Open MPI are told by ompi_info."""


def effect(name: str, told: str = "") -> str:
    """Say what a setting does; empty if unknown. `told` is what the program itself says."""
    known = [text for pattern, text in EFFECTS if re.match(pattern, name)]
    return (known or [told])[0]


def without_settings(found: Sequence[Setting]) -> Remedy:
    """Return the line for a shell that takes settings away, from all places where they are made."""
    lines = [
        _without_line(one.name, place, line)
        for one in found
        for place, line in zip(one.places, one.lines)  # noqa: B905  (Python 3.6 has no `strict`)
        if place != ENVIRONMENT
    ]
    more = "; ".join(dict.fromkeys(lines))
    here = [one.name for one in found if one.in_environment]
    return unset(here, more) if here else in_shell(more)


def _without_line(name: str, place: str, line: Line) -> str:
    if line.kept:
        kept = re.sub(r"([\\#&])", r"\\\1", line.kept)
        return r"sed -i 's#^ *{} *$#{}#' {}".format(_pattern(line.text), kept, place)
    if line.text:
        return r"sed -i '\#^ *{} *$#d' {}".format(_pattern(line.text), place)
    return nccl.removal(name, place)


def _pattern(text: str) -> str:
    """Return a text as a pattern of sed between `#`, in single quotes."""
    return re.sub(r"([\\#.*\[\]^$])", r"\\\1", text.strip()).replace("'", ".")
