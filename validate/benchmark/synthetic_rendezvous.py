"""Work out where the ranks that `mpirun` started meet, which torch.distributed wants to know.

`torchrun` says it to its ranks, `mpirun` does not. The ranks ask MPI itself: rank 0 broadcasts its
addresses, and every other rank takes the first one that it reaches. This is the MPI that started
the ranks, called from Python without any package.
"""

import contextlib
import ctypes
import fcntl
import glob
import os
import shutil
import socket
import struct
import zlib
from typing import Any, Dict, List, Tuple

USUAL_PORT = "29500"
"""The port that torch.distributed takes if none is named."""
MESSAGE_BYTES = 4096
CONNECT_SECONDS = 3.0
NAMES = ("libmpi.so.40", "libmpi.so.20", "libmpi.so.12", "libmpi.so")
"""The libraries of Open MPI 3 and later, of 2, of 1.10, and whichever a compiler would take."""
SIOCGIFADDR = 0x8915
"""Asks the kernel for the IPv4 address of an interface: netdevice(7)."""
IFNAMSIZ, IFREQ_BYTES, ADDRESS_AT = 16, 40, 20
LOWEST, PORTS = 20000, 10000
JOB = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMIX_SERVER_URI2", "PMIX_SERVER_URI21")
"""Variables that all ranks of a job on one host have alike, and other jobs have not."""


def variables(rank: int, size: int) -> Dict[str, str]:
    """Return MASTER_ADDR and MASTER_PORT of the job: those that are given, else worked out."""
    given = os.environ.get("MASTER_ADDR", "")
    if given:
        return {"MASTER_ADDR": given, "MASTER_PORT": os.environ.get("MASTER_PORT", USUAL_PORT)}
    try:
        address, port = _by_mpi(rank, size)
    except (OSError, ValueError, AttributeError) as error:
        if os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") != str(size):
            text = "nobody says where rank 0 is, and MPI does not tell it ({}): {}"
            hint = "mpirun -x MASTER_ADDR=HOST_OF_RANK_0 -x MASTER_PORT=29500"
            raise SystemExit(text.format(error, hint)) from None
        address, port = "127.0.0.1", _port_of_the_job()
    return {"MASTER_ADDR": address, "MASTER_PORT": str(port)}


def _port_of_the_job() -> int:
    """Return a port that all ranks of one host work out alike, from the name of their job."""
    text = " ".join(os.environ.get(name, "") for name in JOB)
    return LOWEST + zlib.crc32(text.encode()) % PORTS


def _by_mpi(rank: int, size: int) -> Tuple[str, int]:
    """Return the address and the port of rank 0, as all ranks agree on them by MPI.

    Raises OSError if no library of MPI loads, ValueError if it is not the MPI that started the
    ranks or no address is reached, AttributeError if it is not Open MPI.
    """
    mpi = _Mpi(size)
    try:
        with contextlib.closing(_listening()) as probe, contextlib.closing(_listening()) as store:
            ports = [str(one.getsockname()[1]) for one in (probe, store)]
            said = mpi.broadcast(" ".join(ports + _addresses()) if rank == 0 else "").split()
            found = "127.0.0.1" if rank == 0 else _reached(said[2:], int(said[0]))
            mpi.barrier()  # until all have tried, rank 0 listens
    finally:
        mpi.close()
    if not found:
        raise ValueError("rank {} reaches none of {}".format(rank, ", ".join(said[2:])))
    return found, int(said[1])


class _Mpi:
    """Call the MPI that started this rank, from its library."""

    def __init__(self, size: int) -> None:
        self._lib = _library()
        self._world = self._handle("ompi_mpi_comm_world")
        self._lib.MPI_Init(None, None)
        found = ctypes.c_int()
        self._lib.MPI_Comm_size(self._world, ctypes.byref(found))
        if found.value != size:
            self.close()
            text = "{} counts {} ranks of {}"
            raise ValueError(text.format(self._lib._name, found.value, size))

    def _handle(self, name: str) -> ctypes.c_void_p:
        try:
            return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self._lib, name)))
        except ValueError:
            raise ValueError("{} is not Open MPI's".format(self._lib._name)) from None

    def broadcast(self, text: str) -> str:
        """Return on every rank the text of rank 0."""
        message = ctypes.create_string_buffer(text.encode(), MESSAGE_BYTES)
        kind = self._handle("ompi_mpi_char")
        count, root = ctypes.c_int(MESSAGE_BYTES), ctypes.c_int(0)
        self._lib.MPI_Bcast(message, count, kind, root, self._world)
        return message.value.decode()

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self._lib.MPI_Barrier(self._world)

    def close(self) -> None:
        """End the use of MPI: no call may follow."""
        self._lib.MPI_Finalize()


def _library() -> Any:
    """Load the library beside the mpirun that PATH finds, else one that the loader knows.

    Raises OSError if there is none.
    """
    program = os.path.realpath(shutil.which("mpirun") or "/usr/bin/mpirun")
    prefix = os.path.dirname(os.path.dirname(program))
    beside = sorted(glob.glob(os.path.join(prefix, "lib*", "libmpi.so*")))
    for name in beside[:1] + list(NAMES):
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    raise OSError("no libmpi is found")


def _listening() -> socket.socket:
    """Return a socket that listens on all addresses, at a port that was free."""
    try:
        one = socket.socket(socket.AF_INET6)
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        one.bind(("::", 0))
    except OSError:
        one = socket.socket(socket.AF_INET)
        one.bind(("", 0))
    one.listen(1024)
    return one


def _addresses() -> List[str]:
    """List the addresses of this host at which others may reach it."""
    found = [_address_of(name) for _, name in socket.if_nameindex()]
    with contextlib.suppress(OSError):
        found += [str(row[4][0]) for row in socket.getaddrinfo(socket.gethostname(), None)]
    apart = [one for one in found if one and not one.startswith(("127.", "fe80", "::1"))]
    return list(dict.fromkeys([*apart, "127.0.0.1"]))


def _address_of(interface: str) -> str:
    """Return the IPv4 address of an interface; empty if it has none."""
    request = struct.pack("{}s".format(IFREQ_BYTES), interface.encode()[: IFNAMSIZ - 1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            answer = fcntl.ioctl(one.fileno(), SIOCGIFADDR, request)
        except OSError:
            return ""
    return socket.inet_ntoa(answer[ADDRESS_AT : ADDRESS_AT + 4])


def _reached(addresses: List[str], port: int) -> str:
    """Return the first address at which rank 0 answers; empty if there is none."""
    for address in addresses:
        with contextlib.suppress(OSError):
            socket.create_connection((address, port), CONNECT_SECONDS).close()
            return address
    return ""
