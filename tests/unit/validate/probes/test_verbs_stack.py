"""Test the files of a verbs stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unit.validate import trees
from validate.probes import verbs_stack as verbs

if TYPE_CHECKING:
    from pathlib import Path


def test_a_provider_is_what_its_link_leads_to(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    folder = tmp_path / trees.LIB_DIR.lstrip("/") / "libibverbs"
    (folder / "libmlx4-rdmav34.so").symlink_to("../libmlx4.so.1.0.44.0")
    found = verbs.providers(str(tmp_path), trees.LIB_DIR)
    assert list(found) == ["mlx5"]
    assert (found["mlx5"].abi, found["mlx5"].wants) == ("34", ["34"])
    assert verbs.declared_drivers(str(tmp_path)) == ["mlx5"]


def test_the_release_of_rdma_core_is_in_the_library_name(tmp_path: Path) -> None:
    trees.verbs_stack(tmp_path)
    top = tmp_path / trees.LIB_DIR.lstrip("/")
    assert verbs.release_of(str(top / "libibverbs.so.1")) == "44.0"
    assert verbs.private_abis(str(top / "libibverbs.so.1")) == ["34"]


def test_kernel_modules_are_found(tmp_path: Path) -> None:
    trees.write(tmp_path, "/lib/modules/5.4/extra/mlx5_core.ko.xz")
    found = verbs.kernel_modules(str(tmp_path), ["/lib/modules"])
    assert found == ["/lib/modules/5.4/extra/mlx5_core.ko.xz"]
