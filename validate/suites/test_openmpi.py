"""Check that there is one Open MPI, that it is the recipe's, and that it launches."""

import os
import re
from typing import Tuple

from validate.check import check, fail, warn
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes import ldcache, mpi
from validate.probes.aside import aside, export, one_line, unset
from validate.probes.dpkg import lost_library, lost_program, package_of
from validate.probes.files import distinct_files, read, under
from validate.probes.libraries import out_of_the_way
from validate.probes.limits import capabilities
from validate.probes.other_programs import choices, out_of_use
from validate.probes.programs import absence, find_program, on_path, parse_environment
from validate.probes.settings import foreign_settings
from validate.process import run
from validate.remedy import Remedy, in_image, in_shell, only_look

LAUNCH_SECONDS = 60
REBUILD = "imagegen build"
LOST_LIBRARY = re.compile(r"loading shared libraries: ([^\s:]+): cannot open")


_prefix = mpi.prefix_of


@check(
    "mpi.prefix",
    "mpirun is where launches look for it, and Open MPI knows where it lives",
    cause="OPAL_PREFIX points to another MPI, or the installation was moved",
)
def test_prefix(image: Situation, measure: Measure) -> None:
    """path:prefix in `ompi_info --parsable --all` of the recipe's prefix"""
    mpirun = _prefix(image) + "/bin/mpirun"
    if not os.access(mpirun, os.X_OK):
        text = "the file was deleted, or Open MPI is not installed where the recipe says"
        fail(absence(mpirun), text, lost_program(image.root, "mpirun"))
    program = _prefix(image) + "/bin/ompi_info"
    if not os.access(program, os.X_OK):
        remedy = lost_program(image.root, "ompi_info")
        fail(absence(program), "it was removed after the installation", remedy)
    result = mpi.info(image)
    if not result.ok and not result.timed_out:  # one plugin may be broken: ask for less
        ask = [program, "--parsable", "--path", "prefix"]
        result = run(ask, 30, image.env)
    prefix = mpi.parse_prefix(result.out)
    measure(prefix)
    homes = {_prefix(image), str(image.expected.fact("openmpi", "home", _prefix(image)))}
    if not result.ok:
        lost = LOST_LIBRARY.search(result.out + result.err)
        if lost:
            cause = "{} is missing".format(lost.group(1))
            fail(result.says(), cause, lost_library(image.root, lost.group(1)))
        fail(result.says(), *_moved(image))
    if prefix not in homes:
        text = "ompi_info says {}, the recipe says {}"
        fail(text.format(prefix, " or ".join(sorted(homes))), *_moved(image))


def _moved(image: Situation) -> Tuple[str, Remedy]:
    """Say why ompi_info does not tell where Open MPI lives, and what mends it."""
    asked = image.env.get("OPAL_PREFIX", "")
    if asked and asked != image.expected.env.get("OPAL_PREFIX", ""):
        return "OPAL_PREFIX={} points to another MPI".format(asked), unset(["OPAL_PREFIX"])
    program = _prefix(image) + "/bin/ompi_info"
    home = str(image.expected.fact("openmpi", "home", "")) + "/bin/ompi_info"
    if os.path.realpath(program) != os.path.realpath(home) and os.access(home, os.X_OK):
        line = "{} && ln -s {} {}".format(aside(image.root, program), home, program)
        return "{} is not the one of the distribution".format(program), in_shell(line)
    return "another Open MPI was installed over it, or it was damaged", in_image("imagegen build")


@check(
    "mpi.version",
    "Open MPI is the version that the recipe names, by its own word",
    cause="another MPI was installed over it, or the expectation file is of another image",
    remedy=in_image("imagegen build"),
    needs=("mpi.prefix",),
)
def test_version(image: Situation, measure: Measure) -> None:
    """first line of `mpirun --version`"""
    result = run([_prefix(image) + "/bin/mpirun", "--version"], 30, image.env)
    version = mpi.parse_version(result.out)
    measure(version)
    promised = image.expected.version("openmpi")
    if not version:
        text = result.says() if not result.ok else "not Open MPI: " + result.tail(1)
        own = _own_mpirun(image)
        here = _prefix(image) + "/bin/mpirun"
        fail(
            text,
            remedy=out_of_use(image, [(here, own)]) if own != os.path.realpath(here) else Remedy(),
        )
    if not same_version(promised, version):
        fail("Open MPI {}, the recipe says {}".format(version, promised))


@check(
    "mpi.single",
    "there is no second MPI on PATH or in the loader's cache",
    cause="another package (HPC-X, OFED --all, conda, apt) brought an MPI of its own",
)
def test_single(image: Situation, measure: Measure) -> None:
    """every mpirun on PATH by real path, every libmpi.so.* and libmpich.so.* in `ldconfig -p`"""
    path = image.env.get("PATH", "")
    own = _own_mpirun(image)
    ours = os.path.realpath(own)
    found = distinct_files(on_path(["mpirun"], path))
    measure("{} is {}".format(find_program("mpirun", path), ours))
    others = [seen for seen in found if os.path.realpath(seen) != ours]
    if others:
        text = "also on PATH: {}; `mpirun` runs {}"
        fail(
            text.format(", ".join(others), find_program("mpirun", path)),
            remedy=out_of_use(image, [(one, own) for one in others]),
        )
    cache = ldcache.parse_cache(run(["/sbin/ldconfig", "-p"]).out)
    paths = [path for name in cache if name.startswith("libmpi.so.") for path in cache[name]]
    libraries = sorted({os.path.realpath(path) for path in paths})
    if len(libraries) > 1:
        others = [path for path in distinct_files(paths) if not _ours(image, path)]
        lines = [out_of_the_way(image, path)[1] for path in others]
        remedy = in_shell(one_line(lines)) if len(others) < len(libraries) else in_image(REBUILD)
        fail("more than one libmpi in the loader's cache: " + ", ".join(libraries), remedy=remedy)
    _without_mpich(image, cache)


def _without_mpich(image: Situation, cache: ldcache.Cache) -> None:
    """Warn of MPICH, or of an MPI made from it, which has names of its own beside Open MPI."""
    paths = [path for name in cache if name.startswith("libmpich.so.") for path in cache[name]]
    if paths:
        others = distinct_files(paths)
        cause = "a program that is linked with it starts as a job of one rank under this mpirun"
        remedy = in_shell(one_line([out_of_the_way(image, path)[1] for path in others]))
        warn("also in the loader's cache: {}".format(", ".join(others)), cause, remedy)


def _own_mpirun(image: Situation) -> str:
    """Return the recipe's mpirun: that of its prefix, or the one of the distribution's Open MPI."""
    home = str(image.expected.fact("openmpi", "home", ""))
    if not home or home == _prefix(image):
        return _prefix(image) + "/bin/mpirun"
    package = package_of(image.root, home + "/bin/ompi_info")[0]
    offered = [home + "/bin/mpirun", *choices(image.root, "mpirun")]
    for one in offered:
        real = os.path.realpath(one)
        if os.access(one, os.X_OK) and package_of(image.root, real)[0] == package:
            return one
    return offered[0]


def _ours(image: Situation, path: str) -> bool:
    """Return whether a library is the recipe's.

    It is if it lies below the recipe's prefix or, where Open MPI is the distribution's, belongs to
    a package.
    """
    real, home = os.path.realpath(path), str(image.expected.fact("openmpi", "home", ""))
    if home and home != _prefix(image):
        return bool(package_of(image.root, real)[0])
    return real.startswith(os.path.realpath(_prefix(image)) + "/")


@check(
    "mpi.nonlogin-path",
    "a session that SSH opens finds the daemon that mpirun starts on other machines",
    cause=(
        "PATH of the image does not reach sessions without a login shell: `orted: "
        "command not found`"
    ),
)
def test_nonlogin_path(image: Situation, measure: Measure) -> None:
    """orted (prted since Open MPI 5) on the PATH that /etc/environment gives to sessions"""
    daemon = mpi.DAEMONS.get(str(image.expected.fact("openmpi", "runtime", "orte")), "orted")
    environment = parse_environment(read(under(image.root, "/etc/environment")))
    path = environment.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    found = find_program(daemon, path)
    measure(found)
    own = under(image.root, os.path.join(_prefix(image), "bin", daemon))
    if not found and not os.access(own, os.X_OK):
        text = "`{}` is missing: it is neither in {}/bin nor on {}; {}"
        seen = text.format(daemon, _prefix(image), path, absence(own))
        cause = "it was removed after the installation, or is no program any more"
        fail(seen, cause, lost_program(image.root, daemon))
    if not found:
        line = "echo 'PATH={}/bin:{}' >> /etc/environment".format(_prefix(image), path)
        fail("`{}` is not on {}".format(daemon, path), remedy=in_shell(line))


@check(
    "mpi.root",
    "root may launch: by the option that launches here give, or by both variables",
    severity="warn",
    cause="Open MPI asks for both variables: with one of them mpirun stops as root all the same",
    remedy=export({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}),
)
def test_root(image: Situation, measure: Measure) -> None:
    """$OMPI_ALLOW_RUN_AS_ROOT and $OMPI_ALLOW_RUN_AS_ROOT_CONFIRM are both 1 or both not: without
    them a launch needs `--allow-run-as-root`, which all command lines of imagegen have"""
    names = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    given = [name for name in names if image.env.get(name) == "1"]
    allowed = len(given) == len(names)
    measure("allowed by the environment" if allowed else "with `mpirun --allow-run-as-root`")
    if given and not allowed:
        fail("{} alone is 1".format(given[0]))


@check(
    "mpi.2rank",
    "mpirun starts two ranks, and both run here",
    tier="live",
    cause="the launcher cannot start processes in this container",
    remedy=only_look(
        "/usr/local/openmpi/bin/mpirun -np 2 --allow-run-as-root --oversubscribe hostname"
    ),
    needs=("mpi.prefix", "os.tmp"),
)
def test_2rank(image: Situation, measure: Measure) -> None:
    """`mpirun -np 2 --allow-run-as-root --bind-to none --map-by slot:OVERSUBSCRIBE -mca pml ob1
    -mca btl ^openib hostname`, 60 s"""
    result = run(mpi.launch(_prefix(image), 2, ["hostname"], image.env), LAUNCH_SECONDS, image.env)
    hosts = result.out.split()
    measure("2 ranks on {}".format(", ".join(sorted(set(hosts)))))
    if not result.ok:
        found = foreign_settings(image.root, image.env, image.expected.env, _prefix(image))
        ours = [one for one in found if one.reaches_mpi]
        cause = "one of these settings may do it: {}".format("; ".join(map(str, ours)))
        fail(result.says(), cause if ours else "")
    if hosts != [os.uname().nodename] * 2:
        fail("two ranks answered `{}`".format(" ".join(hosts)))


@check(
    "mpi.threads",
    "Open MPI was built for ranks with many threads, as Horovod's are",
    severity="warn",
    cause="built without MPI_THREAD_MULTIPLE",
    remedy=in_image("imagegen build   # until then: export HOROVOD_MPI_THREADS_DISABLE=1"),
    needs=("mpi.prefix",),
)
def test_threads(image: Situation, measure: Measure) -> None:
    """`ompi_info --parsable --all`: MPI_THREAD_MULTIPLE: yes"""
    result = mpi.info(image)
    measure("MPI_THREAD_MULTIPLE: yes")
    if not mpi.thread_multiple(result.out):
        fail("ompi_info does not say MPI_THREAD_MULTIPLE: yes")


@check(
    "mpi.cuda",
    "whether MPI itself can send from the memory of a GPU",
    severity="info",
    needs=("mpi.prefix",),
)
def test_cuda(image: Situation, measure: Measure) -> None:
    """`ompi_info --parsable --all`: mpi_built_with_cuda_support:value:true"""
    result = mpi.info(image)
    aware = "mpi_built_with_cuda_support:value:true" in result.out
    no = "no: Horovod with NCCL does not need it" if result.ok else "unknown: " + result.says()
    measure("yes" if aware else no)


@check(
    "mpi.cma",
    "whether ranks on one machine may copy from one another's memory",
    severity="info",
    tier="live",
)
def test_cma(image: Situation, measure: Measure) -> None:
    """/proc/sys/kernel/yama/ptrace_scope, SYS_PTRACE in CapEff"""
    scope = read(under(image.root, "/proc/sys/kernel/yama/ptrace_scope")) or "0"
    never = scope == "3"  # no capability helps: kernel, admin-guide/LSM/Yama
    may = scope == "0" or ("SYS_PTRACE" in capabilities(image.root) and not never)
    note = ": `Read -1, expected …` in a log is harmless"
    note += "" if never else "; --cap-add SYS_PTRACE silences it"
    measure("ptrace_scope {}{}".format(scope, "" if may else note))
