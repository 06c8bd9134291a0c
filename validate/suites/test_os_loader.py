"""Check that what the dynamic loader was told of is still there."""

from typing import List, Tuple

from validate.check import check, fail, skip, warn
from validate.fixtures import Measure, Situation
from validate.probes import gpu, ldcache
from validate.process import run
from validate.remedy import Remedy, in_shell


@check(
    "os.ld-gone",
    "the loader's cache and its settings name only what is there",
    cause="it was removed without a run of ldconfig after it, or the settings were left behind",
    remedy=in_shell("ldconfig   # in the recipe: after the last step that removes libraries"),
)
def test_ld_gone(image: Situation, measure: Measure) -> None:
    """every path in `ldconfig -p`; every line of /etc/ld.so.conf and of the files that it includes,
    those of the distribution apart"""
    result = image.once("ldconfig", lambda: run(["/sbin/ldconfig", "-p"]))
    if not result.ok:
        skip("not-installed", result.says())
    cache = ldcache.parse_cache(result.out)
    entries, lines = ldcache.gone_entries(image.root, cache), ldcache.gone_lines(image.root)
    entries = [one for one in entries if one[0] not in gpu.DRIVER_LIBRARIES]
    measure("{} libraries, {} folders".format(len(cache), len(ldcache.configured(image.root))))
    seen = ["{} in the cache is not there".format(path) for _, path in entries]
    seen += ["{} in {} is not there".format(folder, file) for file, folder in lines]
    gone = {path for _, path in entries}
    if any(gone.issuperset(cache[name]) for name, _ in entries):  # nothing is found by this name
        fail("; ".join(seen[:4]), "", _without(lines))
    if seen:
        warn("; ".join(seen[:4]), "", _without(lines))


def _without(lines: List[Tuple[str, str]]) -> Remedy:
    remove = [r"sed -i '\#^\(include \)\?{}$#d' {}".format(folder, file) for file, folder in lines]
    return in_shell("; ".join([*remove, "ldconfig"]))
