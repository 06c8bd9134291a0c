"""Write the `mpirun` line that starts all ranks.

A document names the parts of its line in its own order: see `dockerfiles/documents`. Open MPI 4.1
and 5.0 accept the parts that imagegen takes itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.launcher.description import as_command
from imagegen.launcher.variables import variables
from imagegen.model.launch import Flag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from imagegen.launcher.description import Description, Launched

ORDER = (
    *("count", "hosts", "root", "bind", "map", "variables", "libraries", "path"),
    *("pml", "mpi-interface", "btl", "script"),
)
"""The parts of a line where no document says which it has."""


def mpirun(description: Description) -> Launched:
    """Write the line that starts every rank, in one of the containers."""
    return as_command(flags(description))


def flags(description: Description, *, hostfile: bool = False) -> tuple[Flag, ...]:
    """List the arguments of the line; with `hostfile`, an operator says where ranks run."""
    program = description.habits.program or description.program
    order = description.habits.order or ORDER
    found = [description.flag("mpirun.program", program)]
    for part in order:
        if not (hostfile and part == "hosts"):
            found += PARTS[part](description)
        elif description.facts.get("runtime", "orte") != "orte":
            found += _of_prrte(description)
    return tuple(found)


def _of_prrte(description: Description) -> Iterator[Flag]:
    """Say what operators tell Open MPI 4 by variables, which Open MPI 5 does not read."""
    yield description.flag("mpirun.hostfile", "--hostfile", "/etc/mpi/hostfile")
    yield description.flag("mpirun.fqdn", "--prtemca", "prte_keep_fqdn_hostnames", "1")
    if description.form == "mpijob" and description.cluster.api == "v1":
        agent = ("plm_ssh_agent", "/etc/mpi/kubexec.sh")
        yield description.flag("mpirun.agent", "--prtemca", *agent)


def _count(description: Description) -> Iterator[Flag]:
    yield description.flag(
        "mpirun.count", description.habits.count or "-np", str(description.ranks)
    )


def _hosts(description: Description) -> Iterator[Flag]:
    per_node = description.gpus_per_node
    if description.hosts:
        listed = ",".join(f"{host}:{per_node}" for host in description.hosts)
        yield description.flag("mpirun.hosts", "-H", listed)
    elif description.device != "gpu":
        yield description.flag("mpirun.slots", "-H", f"localhost:{per_node}")


def _root(description: Description) -> Iterator[Flag]:
    if description.user is None:
        yield description.flag("mpirun.root", "--allow-run-as-root")


def _bind(description: Description) -> Iterator[Flag]:
    yield description.flag("mpirun.bind", "-bind-to", "none")


def _map(description: Description) -> Iterator[Flag]:
    yield description.flag("mpirun.map", "-map-by", "slot")


def _variables(description: Description) -> Iterator[Flag]:
    for one in variables(description):
        yield Flag(("-x", *one.words), one.reason)


def _libraries(description: Description) -> Iterator[Flag]:
    if description.device == "gpu":
        yield description.flag("mpirun.libraries", "-x", "LD_LIBRARY_PATH")


def _path(description: Description) -> Iterator[Flag]:
    yield description.flag("mpirun.path", "-x", "PATH")


def _mca(description: Description, name: str, value: str) -> Flag:
    dashes = description.habits.dashes or "-"
    return description.flag(f"mca.{name}", f"{dashes}mca", name, value)


def _over_tcp(description: Description) -> bool:
    """Say whether MPI itself keeps off devices: with GPUs it sends small messages only."""
    given = description.given.mpi_over_tcp or description.habits.over_tcp
    return given or description.device != "gpu"


def _pml(description: Description) -> Iterator[Flag]:
    if _over_tcp(description):
        yield _mca(description, "pml", "ob1")


def _btl(description: Description) -> Iterator[Flag]:
    if _over_tcp(description):
        yield _mca(description, "btl", "^openib")


def _mpi_interface(description: Description) -> Iterator[Flag]:
    interface = description.mpi_interface or description.interface
    if interface:
        yield _mca(description, "btl_tcp_if_include", interface)


def _oob_interface(description: Description) -> Iterator[Flag]:
    interface = description.mpi_interface or description.interface
    if interface and description.facts.get("runtime", "orte") == "orte":
        yield _mca(description, "oob_tcp_if_include", interface)


def _full_names(description: Description) -> Iterator[Flag]:
    if description.facts.get("runtime", "orte") == "orte":
        yield _mca(description, "orte_keep_fqdn_hostnames", "t")


def of_mpi(description: Description) -> Iterator[Flag]:
    """List the settings of MPI's own messages."""
    for part in ("pml", "mpi-interface", "btl"):
        yield from PARTS[part](description)


def script(description: Description, python: str = "") -> Iterator[Flag]:
    """List what every rank runs: the script, and its arguments."""
    first, rest = description.script[0], description.script[1:]
    python = python or description.habits.interpreter or "python3"
    yield description.flag(
        "script.program", *((python, first) if first.endswith(".py") else (first,))
    )
    for word in rest:
        yield description.flag("script.argument", word)
    if description.own_script or rest:
        return
    habits = description.habits
    of_model = (habits.model_of_one if description.ranks == 1 else "") or habits.model
    model = (of_model or "--model={model}").format(model=description.model).split()
    yield description.flag("script.model", *model)
    yield description.flag("script.batch", f"--batch-size={description.batch}")
    if first in {one.script for one in description.launches.values()}:
        yield from description.accelerated.benchmark


PARTS: Mapping[str, Callable[[Description], Iterator[Flag]]] = {
    "count": _count,
    "hosts": _hosts,
    "root": _root,
    "bind": _bind,
    "map": _map,
    "variables": _variables,
    "libraries": _libraries,
    "path": _path,
    "pml": _pml,
    "btl": _btl,
    "mpi-interface": _mpi_interface,
    "oob-interface": _oob_interface,
    "fqdn": _full_names,
    "script": script,
}
