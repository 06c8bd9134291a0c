"""Check which settings of MPI, UCX, NCCL, Gloo and PyTorch the recipe did not make."""

from typing import Dict, List

from validate.check import check, warn
from validate.fixtures import Measure, Situation
from validate.probes import mpi, nccl
from validate.probes.settings import Setting, effect, foreign_settings, without_settings
from validate.probes.sysfs import rdma_devices

LONGEST = 90
JUDGED = ("NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN")


@check(
    "env.settings",
    "the recipe, or the launch, made every setting of MPI, UCX, NCCL, Gloo and PyTorch",
    severity="warn",
    cause="left over from debugging, or brought along from another cluster: it holds for every job",
)
def test_settings(image: Situation, measure: Measure) -> None:
    """OMPI_*, OPAL_*, ORTE_*, PMIX_*, PRTE_*, UCX_*, UCC_*, HCOLL_*, NCCL_*, GLOO_*, TORCH_*,
    TORCHELASTIC_* and HOROVOD_* in the environment, in /etc/environment, the start-up files of
    shells and sshd's SetEnv; openmpi-, pmix- and prte-mca-params.conf, default host files, ucx.conf
    and nccl.conf, of the system and of the home folder. Not env of image.json, not what a package
    put in such a file, and not what a launch has to say, such as the network interface"""
    prefix = str(image.expected.fact("openmpi", "prefix", ""))
    found = foreign_settings(image.root, image.env, image.expected.env, prefix)
    given = [one for one in found if one.of_launch]
    measure("; ".join(map(str, given)) or "none besides the recipe's")
    others = [one for one in found if one not in given and not _named_elsewhere(image, one)]
    if others:
        told = _told(image, prefix, others)
        seen = [_with_effect(one, told) for one in others]
        more = "; and {} more".format(len(seen) - 8) if len(seen) > 8 else ""
        warn("; ".join(seen[:8]) + more, "", without_settings(others))


def _named_elsewhere(image: Situation, one: Setting) -> bool:
    """Return whether a check of NCCL judges a setting: nccl.conf, nccl.netname, plugin.tuner."""
    if not image.expected.has("nccl"):
        return False
    if one.name in JUDGED:
        return True
    rdma = bool(rdma_devices(image.root)) or image.expected.has("rdma")
    return bool(nccl.suspicious({one.name: (one.value, "")}, rdma))


def _told(image: Situation, prefix: str, found: List[Setting]) -> Dict[str, str]:
    """Return what Open MPI says of its parameters, if one of them is set."""
    asked = any(one.of_mpi for one in found)
    return mpi.parameters(mpi.info(image).out) if prefix and asked else {}


def _with_effect(one: Setting, told: Dict[str, str]) -> str:
    says = effect(one.name, told.get(one.name.replace("OMPI_MCA_", "", 1), ""))
    return "{} ({})".format(one, _short(says)) if says else str(one)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"
