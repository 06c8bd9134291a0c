"""Check that LightCC is installed, is not plain Horovod, and knows the settings that are made."""

import os
from shlex import quote

from validate.check import check, fail, skip
from validate.expected import same_version
from validate.fixtures import Measure, Situation
from validate.probes import cuda, lightcc
from validate.probes.aside import export, unset
from validate.probes.frameworks import distributions
from validate.probes.libraries import libraries
from validate.remedy import in_image


@check(
    "lightcc.dist",
    "LightCC is installed, of the version that the recipe names, and no Horovod beside it",
    cause="Horovod and LightCC write over the same files: the last one that was installed wins",
    remedy=in_image("imagegen build", look="python3 -m pip list | grep -i horovod"),
    needs=("py.start",),
)
def test_dist(image: Situation, measure: Measure) -> None:
    """metadata of light-horovod (or what the recipe calls it), and that horovod is not installed
    beside it"""
    name = str(image.expected.fact("lightcc", "distribution", "") or lightcc.DISTRIBUTION)
    found, promised = distributions(image), image.expected.version("lightcc")
    measure("{} {}".format(name, found.get(name, "")))
    if name not in found:
        fail(
            "{} is not installed".format(name),
            "the vendor's wheel was not there",
            in_image("imagegen build"),
        )
    if lightcc.ORIGINAL in found and name != lightcc.ORIGINAL:
        fail("{} and horovod {} are installed".format(name, found[lightcc.ORIGINAL]))
    if not same_version(promised, found[name]):
        fail("{} {}, the recipe says {}".format(name, found[name], promised))


@check(
    "lightcc.strings",
    "the compiled parts are LightCC's own",
    severity="warn",
    cause="plain Horovod is installed under LightCC's name: its settings do nothing",
    remedy=in_image("imagegen build   # with the vendor's wheel"),
    needs=("lightcc.dist",),
)
def test_strings(image: Situation, measure: Measure) -> None:
    """LIGHT_2D_ALLREDUCE in the bytes of horovod/*/mpi_lib*.so"""
    found = lightcc.extensions(libraries(image).sites)
    measure(", ".join(os.path.basename(path) for path in found))
    if not found:
        fail("no compiled part of Horovod is there", "LightCC was built without any framework")
    plain = [path for path in found if not lightcc.marked(path)]
    if plain:
        fail("{} knows nothing of LIGHT_2D_ALLREDUCE".format(", ".join(plain)))


@check(
    "lightcc.env",
    "every LIGHT_* setting is one that LightCC knows, and fits the machine",
    severity="warn",
    cause="a mistyped setting does nothing, and nobody says so",
)
def test_env(image: Situation, measure: Measure) -> None:
    """every LIGHT_* variable against the table of the component: its name and its values;
    LIGHT_INTRA_SIZE against the GPUs of the machine"""
    here = sorted(name for name in image.env if name.startswith(lightcc.PREFIX))
    if not here:
        skip("not-applicable", "no LIGHT_* is set: LightCC behaves as plain Horovod")
    measure(", ".join("{}={}".format(name, image.env[name]) for name in here))
    wrong = lightcc.unknown(image.env)
    if wrong:
        meant = [n + (", meant is {}".format(m) if m else "") for n, m in wrong.items()]
        pairs = [(m, image.env[n]) for n, m in wrong.items() if m]
        exports = ["export {}={}".format(name, quote(value)) for name, value in pairs]
        remedy = unset(wrong, "; ".join(exports))
        fail("not known: {}".format("; ".join(meant)), remedy=remedy)
    outside = lightcc.out_of_range(image.env)
    if outside:
        texts = ["{}={}: {}".format(n, image.env[n], text) for n, text in outside.items()]
        fail("; ".join(texts), "LightCC cannot take that value", unset(outside, ""))
    gpus, size = len(cuda.gpus(image.root)), image.env.get("LIGHT_INTRA_SIZE", "")
    if gpus and size and size != str(gpus):
        text = "LIGHT_INTRA_SIZE={}, the machine has {} GPUs".format(size, gpus)
        fail(
            text, "it is the number of GPUs of one machine", export({"LIGHT_INTRA_SIZE": str(gpus)})
        )
