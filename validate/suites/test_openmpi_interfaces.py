"""Check that MPI knows which network interface leads to the other ranks."""

import os
from typing import Sequence

from validate.check import check, fail, skip
from validate.fixtures import Measure, Situation
from validate.probes.aside import export, unset
from validate.probes.files import under
from validate.probes.sysfs import default_route, interfaces_up, with_address


@check(
    "mpi.ifs",
    "MPI knows which network interface to use",
    severity="warn",
    tier="live",
    cause="there are several, and ranks may try one that does not lead to their peers",
)
def test_ifs(image: Situation, measure: Measure) -> None:
    """/sys/class/net/*/operstate, of those with an IP address; $OMPI_MCA_btl_tcp_if_include and
    _exclude, $OMPI_MCA_oob_tcp_if_include"""
    if not os.path.isdir(under(image.root, "/sys/class/net")):
        skip("not-installed", "/sys is not mounted")
    names = with_address(image.root, interfaces_up(image.root))
    chosen = [image.env.get("OMPI_MCA_btl_tcp_if_" + how, "") for how in ("include", "exclude")]
    measure(", ".join(names) or "lo alone")
    _named_is_there(image, names)
    if len(names) > 1 and not any(chosen):
        outward = default_route(image.root)  # docker0, for one, leads to no other machine
        best = outward if outward in names else names[0]
        fail(
            "{} interfaces are up: {}".format(len(names), ", ".join(names)),
            remedy=export({"OMPI_MCA_btl_tcp_if_include": best}),
        )


def _named_is_there(image: Situation, names: Sequence[str]) -> None:
    """Warn of a setting that names only interfaces which are not there; subnets may be right."""
    for setting in ("OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include"):
        named = [one for one in image.env.get(setting, "").split(",") if one]
        if named and not any("/" in one or one in ("lo", *names) for one in named):
            fail(
                "{}={} names no interface that is up: {}".format(
                    setting, ",".join(named), ", ".join(names) or "lo alone"
                ),
                "MPI does not use the network at all: ranks on other hosts are not reached",
                unset([setting]),
            )
