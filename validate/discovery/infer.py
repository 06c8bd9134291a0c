"""Write the expectation of an image of any maker, from what is found in it.

The checks then hold the image to itself: what a package says against what its library says. The
same document, kept in a file, holds the next build to this one.
"""

from typing import Any, Dict

from validate import __version__
from validate.components import COMPONENTS
from validate.discovery import interpreters
from validate.discovery.clues import sighting
from validate.discovery.contents import Contents, contents
from validate.discovery.facts import Around, with_facts
from validate.discovery.system import system
from validate.expected import SCHEMA, Expected
from validate.probes.dlopen import loader_path

SUITES = ("validate", "os", "limits")
"""Suites of every image."""
KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "OPAL_PREFIX", "MPI_HOME")
KEPT_PREFIXES = (
    *("CUDA_", "NVIDIA_", "NCCL_", "CUDNN_", "OMPI_", "OPAL_", "ORTE_", "PMIX_", "PRTE_", "UCX_"),
    *("UCC_", "HCOLL_", "GLOO_", "TORCH_", "TORCHELASTIC_", "HOROVOD_", "PYTHON", "CONDA_"),
)
"""Variables that belong to an image. Others come from a launch, and some are secrets."""
OF_A_LAUNCH = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "OMPI_COMM_", "OMPI_MCA_ess")


def inferred(root: str, env: Dict[str, str], path: str = "") -> Expected:
    """Return the expectation of the image that is found below `root`."""
    return Expected(document(root, env), path)


def document(root: str, env: Dict[str, str]) -> Dict[str, Any]:
    """Return the data of an expectation file, with `inferred` as its mark."""
    about = system(root)
    python = interpreters.chosen(root, env)
    sites = interpreters.import_folders(root, python, env) if python else []
    found = contents(root, env, sites, loader_path(root, env, about["lib_dir"]))
    components = with_facts(_seen(found), Around(root, found, python))
    components["validate"] = {"version": __version__, "variant": "", "facts": {}}
    suites = [name for name in sorted(components) if name not in SUITES]
    return {
        "schema": SCHEMA,
        "tool": __version__,
        "inferred": True,
        "image": "",
        "device": device(components, found),
        "os": about,
        "env": {name: value for name, value in sorted(env.items()) if _of_image(name)},
        "components": {name: components[name] for name in sorted(components)},
        "omitted": {},
        "suites": sorted([*suites, *SUITES]),
        "contract": {},
    }


def _seen(found: Contents) -> Dict[str, Dict[str, Any]]:
    """Return the components that a clue shows, with their versions."""
    rows: Dict[str, Dict[str, Any]] = {}
    for name, one in COMPONENTS.items():
        seen = sighting(one.found_by, found)
        if seen:
            # `pypi` is another way to install the same thing, which promises the loader's path.
            variant = "" if seen.variant == "pypi" else seen.variant
            head = {"version": seen.version, "variant": variant, "origin": seen.evidence}
            rows[name] = dict(head, facts={})
    return rows


def device(components: Dict[str, Dict[str, Any]], found: Contents) -> str:
    """Return `gpu` where something in the image needs or is CUDA, else `cpu`."""
    torch = components.get("torch", {}).get("facts", {}).get("cuda")
    parts = [name for name in ("cuda", "cudnn", "nccl") if name in components]
    wheels = [name for name in found.wheels if name.startswith("nvidia-cu")]
    return "gpu" if torch or parts or wheels else "cpu"


def _of_image(name: str) -> bool:
    if name.startswith(OF_A_LAUNCH):
        return False
    return name in KEPT or name.startswith(KEPT_PREFIXES)
