"""Check that the operating system of the image is the right one, complete and clean."""

import ctypes
import os
import sys
from shlex import quote
from typing import Any, Dict, List

from validate.check import check, fail, skip
from validate.expected import Expected
from validate.fixtures import Measure, Situation
from validate.probes import account, gpu, ldcache, links, secrets
from validate.probes.aside import export
from validate.probes.dpkg import lost_library
from validate.probes.files import started_at, under
from validate.probes.import_errors import explain_version
from validate.probes.interpreter import find_python
from validate.probes.os_release import read_os_release
from validate.probes.own_address import OWN_ADDRESS
from validate.probes.programs import find_program
from validate.probes.sites import LOADED, extension_modules, frameworks, site_packages
from validate.probes.sysfs import interfaces_up, with_address
from validate.process import run
from validate.remedy import at_launch, in_image, in_shell

REBUILD = in_image("imagegen build   # on the base that the recipe names")
PLATFORMS = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}


@check(
    "os.release",
    "the image stands on the distribution that its recipe names",
    cause="the base image was replaced, or upgraded in place",
    remedy=REBUILD,
)
def test_release(image: Situation, measure: Measure) -> None:
    """/etc/os-release: ID and VERSION_ID"""
    found = read_os_release(image.root)
    measure("{} {}".format(found.get("ID", "?"), found.get("VERSION_ID", "?")))
    for key in ("ID", "VERSION_ID"):
        promised = image.expected.os.get(key, "")
        if found.get(key, "") != promised:
            fail("{} is {}, the recipe says {}".format(key, found.get(key), promised))


@check(
    "os.arch",
    "the processor is of the kind that the image was built for",
    cause="the image runs under emulation, or was pulled for another platform",
    remedy=at_launch("docker run --platform linux/amd64 IMAGE   # or the platform of this host"),
)
def test_arch(expected: Expected, measure: Measure) -> None:
    """uname -m"""
    measure(os.uname().machine)
    if os.uname().machine != expected.os.get("arch"):
        promised = str(expected.os.get("arch"))
        remedy = "docker run --platform {} IMAGE".format(PLATFORMS.get(promised, promised))
        text = "{}, the recipe says {}".format(os.uname().machine, promised)
        fail(text, remedy=at_launch(remedy))


@check(
    "os.glibc",
    "the C library is the one that wheels and drivers were chosen for",
    cause="the base image was replaced, or upgraded in place",
    remedy=REBUILD,
)
def test_glibc(expected: Expected, measure: Measure) -> None:
    """gnu_get_libc_version() of libc.so.6; `getconf GNU_LIBC_VERSION` where the checks were brought
    along with a C library of their own"""
    if expected.os.get("glibc") == "":
        skip("not-applicable", "the image has another C library than GNU's")
    version = ctypes.CDLL("libc.so.6").gnu_get_libc_version
    version.restype = ctypes.c_char_p
    found = version().decode()
    if os.path.exists(os.path.join(os.path.dirname(sys.executable), "..", "own-libc")):
        found = run(["getconf", "GNU_LIBC_VERSION"]).out.partition(" ")[2].strip()
    measure(found)
    if found != expected.os.get("glibc"):
        fail("glibc {}, the recipe says {}".format(found, expected.os.get("glibc")))


@check("os.kernel", "which kernel of the host the container runs on", severity="info")
def test_kernel(measure: Measure) -> None:
    """uname -r"""
    measure("{} (the host's)".format(os.uname().release))


def _cache(image: Situation) -> ldcache.Cache:
    result = image.once("ldconfig", lambda: run(["/sbin/ldconfig", "-p"]))
    if not result.ok:
        skip("not-installed", result.says())
    return ldcache.parse_cache(result.out)


def _folders(image: Situation) -> List[str]:
    folders = ldcache.configured_folders(image.root) + [image.expected.os.get("lib_dir", "")]
    once: Dict[str, str] = {}  # no folder twice: /lib is a link to /usr/lib
    for folder in filter(None, folders):
        once.setdefault(os.path.realpath(under(image.root, folder)), folder)
    return list(once.values())


@check(
    "os.ldcache",
    "the loader's cache knows every library in the folders that it covers",
    cause="libraries were copied in without a run of ldconfig after them",
    remedy=in_shell("ldconfig   # in the recipe: after the last step that copies libraries"),
)
def test_ldcache(image: Situation, measure: Measure) -> None:
    """`ldconfig -p` against every lib*.so* (its SONAME) in the folders of /etc/ld.so.conf.d and the
    distribution's own"""
    cache = _cache(image)
    lost = ldcache.not_in_cache(image.root, _folders(image), cache)
    measure("{} libraries".format(len(cache)))
    if lost:
        fail("{} not in the cache: {}".format(len(lost), ", ".join(lost[:4])))


@check(
    "os.broken-links",
    "no link in a library folder leads nowhere",
    cause=(
        "a package was removed by hand, or a copy between build stages left the link's target out"
    ),
)
def test_broken_links(image: Situation, measure: Measure) -> None:
    """links with `.so` in their name in the folders of /etc/ld.so.conf.d, whose target is not
    there"""
    broken = ldcache.broken_links(image.root, _folders(image))
    measure("none")
    if broken:
        paths = [link.split(" -> ")[0] for link in broken]
        fail("; ".join(broken[:4]), remedy=links.mended(image.root, paths))


@check(
    "os.elf-deps",
    "every library that training loads finds what it needs",
    cause=(
        "a package that one of them depends on is missing, or lies where the loader does not look"
    ),
)
def test_elf_deps(image: Situation, measure: Measure) -> None:
    """DT_NEEDED of every .so of torch, horovod and Open MPI, its plugins included, of libmpi,
    libibverbs, librdmacm and libnccl, resolved as ld.so(8) does: RPATH, LD_LIBRARY_PATH, RUNPATH,
    cache, default folders. Symbol versions (DT_VERNEED) of these and of all extension modules of
    the image's Python, against those of the library that is found (DT_VERDEF)"""
    lib_dir = image.expected.os.get("lib_dir", "/usr/lib")
    folders = [f for f in image.env.get("LD_LIBRARY_PATH", "").split(":") if f]
    loader = ldcache.Loader(
        _cache(image), folders, ["/lib64", "/usr/lib64", lib_dir, "/lib", "/usr/lib"]
    )
    libraries = _training_libraries(image)
    loaded = loader.load(libraries)
    image.once(LOADED, lambda: loaded.files)
    measure("{} libraries and all that they load".format(len(libraries)))
    real = {name: by for name, by in loaded.missing.items() if name not in gpu.DRIVER_LIBRARIES}
    if real:
        seen = ["{} needs {}".format(by, name) for name, by in sorted(real.items())]
        fail(
            "; ".join(seen[:4]),
            remedy=lost_library(image.root, *sorted(real)),
        )
    others = [path for site in site_packages(image) for path in extension_modules(site)]
    too_old = loaded.too_old or loader.load(others, find_python(image.env, image.expected)).too_old
    measure("{}, {} extensions of Python".format(measure.text, len(others)))
    if too_old:
        one = too_old[0]
        why = explain_version(image.env, one.library, one.version, one.by)
        fail("; ".join(map(str, too_old[:4])), *why)


def _training_libraries(image: Situation) -> List[str]:
    found: List[str] = []
    for folder in [*frameworks(image), *_folders_of_mpi(image)]:
        for top, _, files in os.walk(folder):
            found += [os.path.join(top, name) for name in sorted(files) if name.endswith(".so")]
    cache = _cache(image)
    for name in ("libmpi.so.40", "libibverbs.so.1", "librdmacm.so.1", "libnccl.so.2"):
        found += cache.get(name, [])
    return found


def _folders_of_mpi(image: Situation) -> List[str]:
    """Return the folders of Open MPI and its plugins: below its prefix, and the distribution's."""
    if not image.expected.has("openmpi"):
        return []
    prefix = str(image.expected.fact("openmpi", "prefix", "/usr/local/openmpi"))
    lib_dir = image.expected.os.get("lib_dir", "/usr/lib")
    return [under(image.root, one) for one in (prefix + "/lib", lib_dir + "/openmpi")]


@check(
    "os.locale",
    "text beyond ASCII does not crash a program",
    severity="warn",
    cause="no locale is set, so Python and others fall back to ASCII",
    remedy=export({"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}),
)
def test_locale(image: Situation, measure: Measure) -> None:
    """$LC_ALL, else $LANG ends in UTF-8, and `locale charmap` says so: the locale is there"""
    name = image.env.get("LC_ALL") or image.env.get("LANG") or ""
    measure(name)
    if not name and image.expected.inferred:
        measure("none is set: Python 3.7 and later take UTF-8")
        return
    if not name.lower().replace("-", "").endswith("utf8"):
        fail("LC_ALL or LANG is `{}`".format(name))
    result = run(["locale", "charmap"], env=image.env)
    if result.ok and result.out.strip() != "UTF-8":
        fail("there is no locale `{}`".format(name), "the image names a locale that it has not")


@check(
    "os.account",
    "the user root has a name, a home and an account that programs find",
    cause="a build step changed /etc/passwd or /etc/nsswitch.conf",
)
def test_account(image: Situation, measure: Measure) -> None:
    """the line of root in /etc/passwd, the services for `passwd` in /etc/nsswitch.conf"""
    found = account.root_missing(image.root)
    measure("root, {}".format(account.home_of_root(image.root)))
    if found.seen:
        fail(*found)


@check(
    "os.leftovers",
    "the build left no litter behind",
    severity="warn",
    cause="a build step did not clean up in the instruction that made the files",
)
def test_leftovers(image: Situation, measure: Measure) -> None:
    """files in /tmp and /var/tmp older than process 1, pip's cache, .bash_history, apt's lists"""
    found = secrets.leftovers(image.root, started_at(image.root))
    measure("none")
    if found:
        line = "rm -rf {}   # in the recipe: in the step that makes them"
        fail(
            ", ".join(found[:4]),
            remedy=in_shell(line.format(" ".join(map(quote, found)))),
        )


@check(
    "os.hostname",
    "the host's name leads to an address that peers can reach",
    severity="warn",
    tier="live",
    cause="/etc/hosts maps the name to a loopback address: peers would connect to themselves",
    remedy=OWN_ADDRESS,
)
def test_hostname(image: Situation, host: Any, measure: Measure) -> None:
    """getent ahostsv4 $(hostname), else ahostsv6: an address that is not 127.*, ::1 or link-local;
    without an interface that has an address there is nothing to resolve"""
    name = os.uname().nodename
    if not with_address(image.root, interfaces_up(image.root)):
        skip("not-applicable", "no network interface but lo has an address")
    if not find_program("getent", image.env.get("PATH", "") or os.defpath):
        skip("not-installed", "there is no getent to ask")
    found = host.addr(name)
    addresses = found.ipv4_addresses or [
        one for one in found.ipv6_addresses if not one.startswith(("::1", "fe80:", "::ffff:"))
    ]
    measure("{} is {}".format(name, ", ".join(addresses)))
    if not addresses:
        fail("{} does not resolve".format(name), "there is no entry for it in /etc/hosts or DNS")
    if all(address.startswith("127.") for address in addresses):
        fail("{} resolves to {} only".format(name, ", ".join(addresses)))
