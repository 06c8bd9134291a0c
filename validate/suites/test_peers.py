"""Check the other containers of the job: `validate --peers a,b` in one of them."""

import os
import re
from typing import Any, Dict, List

from validate.check import check, fail, skip, warn
from validate.fixtures import Measure, Situation
from validate.probes import collectives, cuda, horovod, mpi, peers, process_group
from validate.probes.interpreter import find_python
from validate.probes.sysfs import rdma_devices
from validate.process import run
from validate.remedy import at_launch, only_look

LAUNCH_SECONDS = 90.0
NAMES = at_launch(
    "docker run --network NET --name PEER IMAGE   # or --add-host PEER:ADDRESS; a pod: a headless"
    " Service with that name",
    look="getent hosts PEER",
)
KEYS = at_launch(
    "mount the same keys at /root/.ssh in every container: docker run -v KEYS:/root/.ssh:ro IMAGE"
    "   # or add this one's key to authorized_keys of the peer",
    look="cat ~/.ssh/id_ed25519.pub",
)

WITHOUT_WAY = (
    "ranks do not meet: no way between them, a firewall, or another PyTorch there",
    only_look("validate --only torch --peers HOST1,HOST2   # ddp.iface and ddp.2rank say more"),
)


def _daemon(image: Situation) -> str:
    return mpi.DAEMONS.get(str(image.expected.fact("openmpi", "runtime", "orte")), "orted")


def _peers(image: Situation) -> List[peers.Peer]:
    """Visit every peer, once in a run; skip the check if none is named."""
    if not image.peers:
        skip("needs-peer", "name them: validate --peers HOST1,HOST2")
    found: List[peers.Peer] = image.once(
        "peers", lambda: peers.visit_all(image.peers, _daemon(image))
    )
    return found


def _here(image: Situation) -> Dict[str, str]:
    found: Dict[str, str] = image.once("here", lambda: peers.here(_daemon(image)))
    return found


def _hosts(image: Situation) -> List[str]:
    """Return the hosts of a launch: this one first, the others in the order of `--peers`."""
    me = os.uname().nodename
    return [me] + [one.name for one in _peers(image) if one.facts.get("host") != me]


@check(
    "peers.login",
    "root logs in to every peer without a question",
    tier="live",
    cause="the peer does not know this container's key, runs no sshd on the port, or is not there",
    remedy=KEYS,
    needs=("ssh.conf",),
)
def test_login(image: Situation, measure: Measure) -> None:
    """`ssh -o BatchMode=yes -o ConnectTimeout=5 PEER`, with the port of the image's ssh_config"""
    found = _peers(image)
    measure(", ".join("{} is {}".format(one.name, one.facts.get("host", "?")) for one in found))
    lost = ["{}: {}".format(one.name, one.result.says()) for one in found if not one.result.ok]
    if any("Could not resolve hostname" in one for one in lost):
        fail("; ".join(lost), "a name of the list leads to no address here", NAMES)
    if lost:
        fail("; ".join(lost))


@check(
    "peers.image",
    "every peer runs this image: the session did not end on the host itself",
    tier="live",
    cause="another image, or with --network host the sshd of the host answers on the port",
    remedy=at_launch(
        "start every container from one image, by its digest",
        "ssh PEER cat /etc/imagegen/image.json",
    ),
    needs=("peers.login",),
)
def test_image(image: Situation, measure: Measure) -> None:
    """sha256 of /etc/imagegen/image.json over ssh and here"""
    mine = _here(image).get("image", "")
    measure("{} in all".format(mine[:12] or "no expectation file"))
    others = ["{} has {}".format(one.name, one.facts.get("image", "")[:12] or "none")
              for one in _peers(image) if one.facts.get("image", "") != mine]  # fmt: skip
    if others:
        fail("{}, this container {}".format(", ".join(others), mine[:12] or "none"))


@check(
    "peers.env",
    "sessions on every peer see the PATH and libraries of this container",
    severity="warn",
    tier="live",
    cause="ENV of an image does not reach sessions of sshd, or the peer was started with another",
    remedy=at_launch("start every container with the same -e, from one image"),
    needs=("peers.login",),
)
def test_env(image: Situation, measure: Measure) -> None:
    """$PATH and $LD_LIBRARY_PATH of `ssh PEER` and here"""
    measure("PATH and LD_LIBRARY_PATH the same")
    differ = peers.differing(_here(image), _peers(image), ("PATH", "LD_LIBRARY_PATH"))
    if differ:
        fail("; ".join(differ[:2]))


@check(
    "peers.limits",
    "sessions on every peer have the limits of this container",
    tier="live",
    cause="the peer was started without the same --ulimit, or pam_limits sets others for sessions",
    remedy=at_launch(
        "docker run --ulimit memlock=-1 --ulimit nofile=1048576 IMAGE   # all of them alike"
    ),
    needs=("peers.login",),
)
def test_limits(image: Situation, measure: Measure) -> None:
    """`ulimit -l` and `ulimit -n` of `ssh PEER` and here; fails where there is RDMA, else warns"""
    mine = _here(image)
    measure("memlock {}, nofile {}".format(mine.get("memlock"), mine.get("nofile")))
    differ = peers.differing(mine, _peers(image), ("memlock", "nofile"))
    if differ:
        (fail if rdma_devices(image.root) else warn)("; ".join(differ[:2]))


@check(
    "peers.daemon",
    "every peer finds the daemon that mpirun starts there",
    tier="live",
    cause="PATH of sessions does not lead to Open MPI: `orted: command not found`",
    remedy=only_look("validate --only openmpi   # on the peer: mpi.nonlogin-path has its remedy"),
    needs=("peers.login", "mpi.prefix"),
)
def test_daemon(image: Situation, measure: Measure) -> None:
    """`command -v orted` (prted since Open MPI 5) over ssh, without a login shell"""
    if not image.expected.has("openmpi"):
        skip("not-in-recipe", "the image has no Open MPI")
    found = _peers(image)
    measure(", ".join(sorted({one.facts.get("daemon", "") for one in found})))
    lost = [one.name for one in found if not one.facts.get("daemon")]
    if lost:
        fail("no {} on {}".format(_daemon(image), ", ".join(lost)))


@check(
    "peers.ranks",
    "a rank starts on every host, not all of them here",
    tier="live",
    cause="the launcher does not reach the daemons: names, a firewall, or the wrong interface",
    remedy=only_look("mpirun -np 2 -H HOST1,HOST2 -mca plm_base_verbose 10 hostname"),
    needs=("peers.login", "peers.image", "mpi.2rank"),
)
def test_ranks(image: Situation, measure: Measure) -> None:
    """`mpirun -np N -H a:1,b:1 hostname`, or where there is no Open MPI `torchrun --nnodes N
    --no_python hostname` on every host, over ssh: the set of names has N members"""
    hosts = _hosts(image)
    if len(hosts) < 2:
        skip("needs-peer", "the only peer that was named is this container")
    result = _launch(image, ["hostname"])
    names = sorted(set(result.out.split()))
    measure("{} ranks on {}".format(len(hosts), ", ".join(names)))
    if not result.ok:
        fail(result.says())
    if len(names) != len(hosts):
        fail("{} ranks were started, they ran on {}".format(len(hosts), ", ".join(names)))


def _launch(image: Situation, command: List[str]) -> Any:
    hosts = _hosts(image)
    if image.expected.has("openmpi"):
        _daemons(image)
        prefix = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
        argv = mpi.launch(prefix, len(hosts), command, image.env)
        argv[1:1] = ["-H", ",".join(name + ":1" for name in hosts)]
        return run(argv, LAUNCH_SECONDS, image.env)
    if not image.expected.has("torch"):
        skip("not-in-recipe", "neither Open MPI nor PyTorch is there to start ranks")
    if not process_group.has_torchrun(image.expected.version("torch")):
        skip("not-applicable", "no Open MPI, and torchrun came with PyTorch 1.10")
    return collectives.torchrun_on_hosts(image, hosts, ["--no_python", *command])


def _daemons(image: Situation) -> None:
    """Skip a check that starts ranks under mpirun if a peer has no daemon: peers.daemon failed."""
    if not all(one.facts.get("daemon") for one in _peers(image)):
        skip("blocked-by", "peers.daemon")


@check(
    "peers.allreduce",
    "Horovod or torch.distributed sums over all hosts, and every rank gets the right sum",
    tier="live",
    cause="ranks do not find each other: another MPI there, or an interface without a way",
    remedy=only_look("HOROVOD_LOG_LEVEL=debug validate --only peers --peers HOST1,HOST2"),
    needs=("peers.ranks", "hvd.size"),
)
def test_allreduce(image: Situation, measure: Measure) -> None:
    """hvd.allreduce of rank + 1 with one rank on each host under mpirun: n (n + 1) / 2. Without
    Horovod the exchanges of ddp.2rank, up to 65537 elements, over gloo (NCCL too on GPUs), under
    mpirun or torchrun; the tool works out where the ranks meet"""
    if image.expected.has("horovod") or image.expected.has("lightcc"):
        _by_horovod(image, measure)
    elif image.expected.has("torch"):
        _by_torch(image, measure)
    else:
        skip("not-in-recipe", "the image has neither Horovod nor PyTorch")


def _by_torch(image: Situation, measure: Measure) -> None:
    hosts, said = _hosts(image), []
    gpus = image.expected.device == "gpu" and cuda.gpus(image.root)
    for backend in (collectives.GLOO, *((collectives.NCCL,) if gpus else ())):
        found = collectives.between_hosts(image, hosts, backend)
        said.append(found.measured)
        measure("; ".join(said))
        if found.problem:
            wrong = collectives.WRONG.search(found.problem)
            why = (
                ("a PyTorch, or something put in front of it, gives wrong numbers",)
                if wrong
                else ()
            )
            fail("{}: {}".format(backend, found.problem), *(why or WITHOUT_WAY))


def _by_horovod(image: Situation, measure: Measure) -> None:
    python, framework = find_python(image.env, image.expected), horovod.promised(image)[:1]
    count = len(_hosts(image))
    other = framework and framework[0].component != "torch"
    result = _launch(image, [python, "-c", framework[0].program if other else peers.ALLREDUCE])
    sums = sorted(re.findall(r"sum rank (\d+) of (\d+) is ([\d.]+)", result.out))
    if other:
        sums = [(rank, str(count), total) for rank, total in horovod.sums_of(result)]
    wanted = count * (count + 1) / 2
    measure("{:.0f} on each of {} ranks".format(wanted, count))
    if not result.ok:
        fail(result.says())
    if sums != [(str(rank), str(count), "{:.1f}".format(wanted)) for rank in range(count)]:
        seen = ["rank {} of {}: {}".format(*one) for one in sums]
        fail("wanted {:.1f} of {} ranks: {}".format(wanted, count, "; ".join(seen) or "nothing"))
