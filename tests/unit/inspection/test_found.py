"""Test which components an image of any maker has, in the words of the shipped catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.engine.images.contents import ImageContents, Package
from imagegen.engine.images.inventory import Inventory
from imagegen.inspection.found import FoundImage, find_components, nearest_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.workflow.project import Project

SITE = "/usr/local/lib/python3.11/site-packages"
DEBIAN = {"ID": "debian", "VERSION_ID": "12"}


def wheel(name: str, version: str, site: str = SITE) -> Package:
    return Package("pypi", name, version, path=f"{site}/{name}-{version}.dist-info")


def deb(name: str, version: str) -> Package:
    return Package("deb", name, version, "amd64")


def image(
    *packages: Package, env: Mapping[str, str] | None = None, **contents: object
) -> Inventory:
    whole = ImageContents(packages=packages, **{"os": DEBIAN, **contents})  # type: ignore[arg-type]
    return Inventory("any:1", "sha256:a", "", 0, {}, env or {}, (), whole)


def versions(found: FoundImage) -> dict[str, str]:
    return {one.name: one.version for one in found.components}


def test_packages_of_a_distribution_are_components(project: Project) -> None:
    made = image(
        deb("python3-torch", "1.13.1+dfsg-4"),
        deb("python3", "3.11.2-1+b1"),
        deb("openmpi-bin", "4.1.4-3+b1"),
        deb("openssh-server", "1:9.2p1-2+deb12u7"),
        deb("gcc", "4:12.2.0-3"),
    )
    found = find_components(made, project.catalog)
    assert versions(found) == {
        "gcc": "12.2.0",
        "openmpi": "4.1.4",
        "python": "3.11.2",
        "ssh": "9.2",
        "torch": "1.13.1",
    }
    assert found.os is not None
    assert (found.os.id, found.os_known) == ("debian12", True)
    torch = found.of("torch")
    assert torch is not None
    assert torch.release is not None
    assert torch.release.requires["device"] == ("cpu",)
    assert torch.evidence == "deb python3-torch 1.13.1+dfsg-4"


def test_libverbs_of_another_package_is_no_rdma_user_space(project: Project) -> None:
    made = image(deb("libibverbs1", "44.0-2"), deb("ibverbs-providers", "44.0-2"))
    assert find_components(made, project.catalog).of("rdma") is None


@pytest.mark.parametrize(
    ("package", "version", "variant"),
    [
        (deb("ofed-scripts", "5.4-OFED.5.4.3.1.0"), "5.4.3.1.0", "mlnx-ofed"),
        (deb("mlnx-ofed-kernel-user-only", "5.8-1.0.1.1"), "5.8-1.0.1.1", "mlnx-ofed"),
        (deb("rdma-core", "39.0-1"), "39.0", "rdma-core"),
    ],
)
def test_the_package_names_the_variant(
    package: Package, version: str, variant: str, project: Project
) -> None:
    one = find_components(image(package), project.catalog).of("rdma")
    assert one is not None
    assert (one.version, one.variant) == (version, variant)


def test_the_wheel_of_the_default_index_is_the_build_that_pip_takes(project: Project) -> None:
    found = find_components(image(wheel("torch", "2.0.1")), project.catalog).of("torch")
    assert found is not None
    assert found.release is not None
    assert found.release.version == "2.0.1+cu117"
    assert found.known


def test_wheels_that_torch_brings_are_no_components_of_their_own(project: Project) -> None:
    own = (wheel("torch", "2.5.1"), wheel("nvidia_nccl_cu12", "2.21.5"))
    assert "nccl" not in versions(find_components(image(*own), project.catalog))
    other = (wheel("torch", "2.5.1"), wheel("nvidia_nccl_cu12", "2.23.4"))
    assert versions(find_components(image(*other), project.catalog))["nccl"] == "2.23.4"


def test_variables_libraries_and_conda_are_clues(project: Project) -> None:
    made = image(
        Package("conda", "pytorch", "1.12.1"),
        Package("conda", "python", "3.8.13"),
        env={"CUDA_VERSION": "11.3.1", "OPENMPI_VERSION": "4.1.2rc4"},
        libraries=("/usr/local/lib/libnccl.so.2.9.9", "/usr/local/lib/libmpi.so.40.30.4"),
    )
    found = versions(find_components(made, project.catalog))
    assert found == {
        "cuda": "11.3.1",
        "nccl": "2.9.9",
        "openmpi": "4.1.2",
        "python": "3.8.13",
        "torch": "1.12.1",
    }


def test_a_library_without_a_version_shows_that_it_is_there(project: Project) -> None:
    made = image(libraries=("/usr/local/lib/libmpi.so.40.30.4",))
    one = find_components(made, project.catalog).of("openmpi")
    assert one is not None
    assert (one.version, one.release) == ("", None)


def test_the_python_of_the_wheels_comes_before_that_of_the_os(project: Project) -> None:
    made = image(deb("python3", "3.11.2-1"), wheel("torch", "2.5.1", "/opt/venv/lib/python3.12/x"))
    one = find_components(made, project.catalog).of("python")
    assert one is not None
    assert one.version == "3.12"
    assert "python3 3.11.2-1" in one.doubt


def test_a_version_that_the_catalog_lacks_becomes_the_nearest(project: Project) -> None:
    one = find_components(image(wheel("torch", "1.13.9")), project.catalog).of("torch")
    assert one is not None
    assert one.release is not None
    assert not one.known
    assert one.release.version.startswith("1.13.1")


def test_an_os_that_the_catalog_lacks(project: Project) -> None:
    near = find_components(image(os={"ID": "ubuntu", "VERSION_ID": "22.10"}), project.catalog)
    assert near.os is not None
    assert (near.os.id, near.os_known) == ("ubuntu22.04", False)
    rocky = find_components(image(os={"ID": "rocky", "VERSION_ID": "9.3"}), project.catalog)
    assert (rocky.os.id if rocky.os else "", rocky.os_known) == ("rockylinux9", True)
    none = find_components(image(os={"ID": "alpine", "VERSION_ID": "3.20"}), project.catalog)
    assert (none.os, none.os_name, none.os_known) == (None, "alpine 3.20", False)


def promise(**versions: tuple[str, str]) -> dict[str, object]:
    return {"components": {k: {"version": v, "variant": o} for k, (v, o) in versions.items()}}


def test_an_image_of_this_tool_says_what_it_has(project: Project) -> None:
    said = promise(torch=("1.13.1", ""), harp=("1.3", ""), validate=("0.1.0", ""))
    made = image(deb("python3-torch", "1.13.1+dfsg-4"), promise=said)
    found = find_components(made, project.catalog)
    assert versions(found) == {"torch": "1.13.1", "harp": "1.3", "validate": "0.1.0"}


def test_what_was_measured_wins_over_what_the_image_says(project: Project) -> None:
    said = promise(torch=("1.13.1", ""))
    one = find_components(image(wheel("torch", "2.0.1"), promise=said), project.catalog).of("torch")
    assert one is not None
    assert one.version == "2.0.1"
    assert one.doubt == "image.json says 1.13.1"


def test_what_no_component_covers_is_named(project: Project) -> None:
    packages = (wheel("torch", "2.5.1"), wheel("jax", "0.4.35"), wheel("jaxlib", "0.4.34"))
    made = image(*packages, wheel("pip", "24.0"), wheel("pytest", "8", "/opt/imagegen/env/lib"))
    assert find_components(made, project.catalog).uncovered == ("jax 0.4.35", "jaxlib 0.4.34")
    named = image(*packages, requested=frozenset({packages[1].path}))
    assert find_components(named, project.catalog).uncovered == ("jax 0.4.35",)


@pytest.mark.parametrize(
    ("asked", "near"),
    [("1.13.9", "1.13.1"), ("1.14", "1.13.1"), ("3.0", "2.5.1"), ("2.4", "2.5.1")],
)
def test_the_nearest_version_has_the_most_equal_parts(asked: str, near: str) -> None:
    assert nearest_version(asked, ["1.11.0", "1.13.1", "2.0.0", "2.5.1"]) == near
