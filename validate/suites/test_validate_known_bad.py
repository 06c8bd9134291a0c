"""Check that an image holds no combination that is known to fail."""

from validate.check import check, fail
from validate.fixtures import Measure, Situation
from validate.probes import known_bad
from validate.probes.sites import site_packages
from validate.remedy import BUILD, Remedy


@check(
    "known.bad",
    "nothing in the image is known to fail, alone or together",
    severity="warn",
    cause="others met this combination, and wrote down what happened and what helps",
)
def test_known_bad(image: Situation, measure: Measure) -> None:
    """known_bad.json against wheels, debs, conda packages, and the components of image.json"""
    rows = known_bad.rows()
    packages = known_bad.packages_of(image.root, site_packages(image))
    measure("none of {} known combinations".format(len(rows)))
    found = known_bad.matching(rows, image.expected, packages, image.env)
    if not found:
        return
    first = found[0]
    seen = "; ".join(
        "{} ({}): {}".format(one.name, ", ".join(one.there), one.symptom) for one in found
    )
    cause = "see {}".format(", ".join(one.source for one in found))
    more = "".join("; {}: {}".format(one.name, one.workaround) for one in found[1:])
    line = "imagegen build   # {}" if first.where == BUILD else "{}"
    fail(seen, cause, Remedy(line.format(first.workaround + more), first.where))
