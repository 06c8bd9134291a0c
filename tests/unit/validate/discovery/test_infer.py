"""Test what is found in images of any maker, on made-up trees of files."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest

from unit.validate.trees import LIB_DIR, write
from validate.discovery import interpreters
from validate.discovery.infer import document
from validate.expected import load

if TYPE_CHECKING:
    from pathlib import Path

PATH = "/usr/local/bin:/usr/bin:/bin"
SITE = "/usr/local/lib/python3.11/site-packages"
TORCH = "__version__ = '{}'\ndebug = False\ncuda: Optional[str] = {}\ngit_version = 'abc'\n"


def program(root: Path, path: str, text: str = "#!/bin/sh\n") -> None:
    write(root, path, text).chmod(0o755)


def system(root: Path) -> None:
    """Make up a Debian 12 with a Python 3.11, and nothing in it."""
    write(root, "/etc/os-release", 'ID=debian\nVERSION_ID="12"\n')
    head = b"\x7fELF\x02\x01" + bytes(10) + struct.pack("<HH", 3, 62)
    write(root, "/bin/sh").write_bytes(head)
    libc = b"GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n"
    write(root, LIB_DIR + "/libc.so.6").write_bytes(libc)
    program(root, "/usr/local/bin/python3.11")
    (root / "usr/local/bin/python3").symlink_to("python3.11")
    (root / SITE.lstrip("/")).mkdir(parents=True)


def wheel(root: Path, name: str, version: str, site: str = SITE) -> None:
    write(root, f"{site}/{name}-{version}.dist-info/METADATA", f"Name: {name}\n")
    write(root, f"{site}/{name}/__init__.py")


def found(root: Path, **env: str) -> dict[str, Any]:
    return document(str(root), {"PATH": PATH, **env})


def versions(root: Path, **env: str) -> dict[str, str]:
    rows = found(root, **env)["components"]
    return {name: one["version"] for name, one in rows.items() if name != "validate"}


def test_an_image_with_nothing_in_it_is_described_too(tmp_path: Path) -> None:
    one = found(tmp_path)
    assert list(one["components"]) == ["validate"]
    assert (one["device"], one["os"]["ID"], one["os"]["glibc"]) == ("cpu", "", "")
    assert one["suites"] == ["limits", "os", "validate"]


def test_the_system_is_read_from_its_files(tmp_path: Path) -> None:
    system(tmp_path)
    assert found(tmp_path)["os"] == {
        "id": "debian12",
        "ID": "debian",
        "VERSION_ID": "12",
        "arch": "x86_64",
        "glibc": "2.36",
        "lib_dir": LIB_DIR,
    }


def test_the_programs_of_another_processor_are_told_apart(tmp_path: Path) -> None:
    system(tmp_path)
    head = b"\x7fELF\x02\x01" + bytes(10) + struct.pack("<HH", 3, 183)
    (tmp_path / "bin/sh").write_bytes(head)
    assert found(tmp_path)["os"]["arch"] == "aarch64"


def test_a_cuda_build_of_torch_makes_an_image_for_gpus(tmp_path: Path) -> None:
    system(tmp_path)
    wheel(tmp_path, "torch", "2.0.1")
    write(tmp_path, f"{SITE}/torch/version.py", TORCH.format("2.0.1+cu117", "'11.7'"))
    wheel(tmp_path, "nvidia_cuda_runtime_cu11", "11.7.99")
    wheel(tmp_path, "nvidia_nccl_cu11", "2.14.3")
    one = found(tmp_path)
    facts = one["components"]["torch"]["facts"]
    assert one["device"] == "gpu"
    assert facts == {"cuda": "11.7", "device": "gpu", "nccl": "2.14.3"}
    assert versions(tmp_path) == {
        "cuda": "11.7",
        "nccl": "2.14.3",
        "python": "3.11",
        "torch": "2.0.1+cu117",
    }
    assert {"cuda", "nccl", "python", "torch"} < {*one["suites"]}


def test_a_build_for_cpus_makes_none(tmp_path: Path) -> None:
    system(tmp_path)
    wheel(tmp_path, "torch", "2.0.1+cpu")
    write(tmp_path, f"{SITE}/torch/version.py", TORCH.format("2.0.1+cpu", "None"))
    one = found(tmp_path)
    assert (one["device"], one["components"]["torch"]["facts"]["cuda"]) == ("cpu", None)


@pytest.mark.parametrize(
    ("deb", "version", "name", "wanted"),
    [
        ("libnccl2", "2.21.5-1+cuda12.4", "nccl", "2.21.5"),
        ("libcudnn8", "8.9.7.29-1+cuda12.2", "cudnn", "8.9.7.29"),
        ("cuda-cudart-12-4", "12.4.127-1", "cuda", "12.4"),
        ("gcc", "4:12.2.0-3", "gcc", "12.2.0"),
        ("rdma-core", "44.0-2", "rdma", "44.0"),
    ],
)
def test_packages_show_components(
    tmp_path: Path, deb: str, version: str, name: str, wanted: str
) -> None:
    system(tmp_path)
    stanza = f"Package: {deb}\nStatus: install ok installed\nVersion: {version}\n"
    write(tmp_path, "/var/lib/dpkg/status", stanza)
    assert versions(tmp_path)[name] == wanted


def test_a_package_that_was_removed_shows_nothing(tmp_path: Path) -> None:
    system(tmp_path)
    stanza = "Package: libnccl2\nStatus: deinstall ok config-files\nVersion: 2.21.5-1\n"
    write(tmp_path, "/var/lib/dpkg/status", stanza)
    assert "nccl" not in versions(tmp_path)


def test_packages_of_an_image_without_dpkg_are_in_parts(tmp_path: Path) -> None:
    write(tmp_path, "/var/lib/dpkg/status.d/libnccl2", "Package: libnccl2\nVersion: 2.21.5-1\n")
    assert versions(tmp_path) == {"nccl": "2.21.5"}


def test_a_library_shows_its_release_by_its_name(tmp_path: Path) -> None:
    system(tmp_path)
    write(tmp_path, LIB_DIR + "/libnccl.so.2.18.3")
    (tmp_path / LIB_DIR.lstrip("/") / "libnccl.so.2").symlink_to("libnccl.so.2.18.3")
    assert versions(tmp_path)["nccl"] == "2.18.3"


def test_the_python_with_a_framework_trains(tmp_path: Path) -> None:
    system(tmp_path)
    program(tmp_path, "/opt/venv/bin/python3")
    wheel(tmp_path, "torch", "2.6.0", "/opt/venv/lib/python3.12/site-packages")
    (tmp_path / "opt/venv/lib/python3.12").mkdir(exist_ok=True)
    one = found(tmp_path)["components"]
    assert one["python"]["facts"]["interpreter"] == "/opt/venv/bin/python3"
    assert (one["python"]["version"], one["torch"]["version"]) == ("3.12", "2.6.0")


def test_the_python_of_path_comes_first_where_both_can_train(tmp_path: Path) -> None:
    system(tmp_path)
    wheel(tmp_path, "torch", "2.0.1")
    program(tmp_path, "/opt/conda/bin/python3")
    wheel(tmp_path, "torch", "2.6.0", "/opt/conda/lib/python3.12/site-packages")
    assert interpreters.chosen(str(tmp_path), {"PATH": PATH}) == "/usr/local/bin/python3"


def test_a_python_2_is_none(tmp_path: Path) -> None:
    program(tmp_path, "/usr/bin/python2.7")
    (tmp_path / "usr/bin/python").symlink_to("python2.7")
    assert interpreters.chosen(str(tmp_path), {"PATH": PATH}) == ""


def test_sshd_is_found_with_its_port(tmp_path: Path) -> None:
    system(tmp_path)
    program(tmp_path, "/usr/sbin/sshd")
    write(tmp_path, "/etc/ssh/sshd_config", "#Port 22\nPort 2222\n")
    stanza = "Package: openssh-server\nStatus: install ok installed\nVersion: 1:9.2p1-2\n"
    write(tmp_path, "/var/lib/dpkg/status", stanza)
    row = found(tmp_path)["components"]["ssh"]
    assert (row["version"], row["facts"]) == ("9.2", {"port": "2222"})


def test_a_variable_with_a_secret_is_not_written_down(tmp_path: Path) -> None:
    env = {"AWS_SECRET_ACCESS_KEY": "x", "NCCL_DEBUG": "INFO", "OMPI_COMM_WORLD_RANK": "1"}
    assert found(tmp_path, **env)["env"] == {"NCCL_DEBUG": "INFO", "PATH": PATH}


def test_what_was_found_is_an_expectation_file(tmp_path: Path) -> None:
    system(tmp_path)
    wheel(tmp_path, "torch", "2.0.1")
    path = write(tmp_path, "/image.json", json.dumps(found(tmp_path)))
    expected = load(str(path))
    assert expected.inferred
    assert expected.version("torch") == "2.0.1"
