"""Test the lines that take something out of use, and that they keep it."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from unit.validate.trees import write
from validate.probes import aside, dpkg, links, ssh_rules
from validate.probes.other_programs import out_of_use

if TYPE_CHECKING:
    from pathlib import Path

LISTS = "/var/lib/dpkg/info"


def pasted(line: str, folder: Path) -> None:
    """Run a line in a shell, without the programs that would change this machine."""
    subprocess.run(["bash", "-c", f"ldconfig() {{ :; }}\n{line}"], cwd=folder, check=True)


def package(root: Path, name: str, *paths: str) -> None:
    write(root, f"{LISTS}/{name}.list", "/.\n" + "\n".join(paths) + "\n")


@pytest.mark.parametrize("listed", ["/lib/x/libmpi.so.40", "/usr/lib/x/libmpi.so.40"])
def test_a_package_may_list_its_files_by_either_name_of_a_merged_usr(
    tmp_path: Path, listed: str
) -> None:
    write(tmp_path, "/usr/lib/x/libmpi.so.40", "")
    (tmp_path / "lib").symlink_to("usr/lib")
    package(tmp_path, "libopenmpi3:amd64", listed)
    for path in ("/lib/x/libmpi.so.40", "/usr/lib/x/libmpi.so.40"):
        assert dpkg.package_of(str(tmp_path), path) == ("libopenmpi3:amd64", listed)
    assert dpkg.package_of(str(tmp_path), "/usr/lib/x/libmpi.so.4") == ("", "")


def test_a_lost_file_comes_back_with_the_package_that_lists_it(tmp_path: Path) -> None:
    package(tmp_path, "libz", "/lib/libz.so.1")
    package(tmp_path, "tools", "/usr/bin/ibstat", "/usr/share/doc/ibstat")
    root = str(tmp_path)
    one = dpkg.lost_library(root, "libz.so.1")
    assert (one.kind, "apt-get update && " in one, " libz; " in one) == ("shell", True, True)
    unknown = dpkg.lost_library(root, "libz.so.1", "libq.so.1")
    assert (unknown.kind, "brings libq.so.1" in unknown) == ("build", True)
    assert " tools; " in dpkg.lost_program(root, "ibstat")
    assert dpkg.lost_program(root, "ibping").kind == "build"
    assert dpkg.whole_again(root, "/lib/libz.so.1").kind == "shell"
    assert dpkg.whole_again(root, "/opt/libz.so.7").kind == "build"


def test_a_library_goes_with_its_links_and_can_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "lib"
    write(tmp_path, "/lib/libx.so.2.1", "x")
    (folder / "libx.so.2").symlink_to("libx.so.2.1")
    (folder / "libx.so").symlink_to("libx.so.2")
    write(tmp_path, "/lib/liby.so.1", "y")
    line = aside.library_aside("/", str(folder / "libx.so.2"))
    assert line.endswith("; ldconfig")
    pasted(line, tmp_path)
    kept = ["disabled.libx.so", "disabled.libx.so.2", "disabled.libx.so.2.1", "liby.so.1"]
    assert sorted(one.name for one in folder.iterdir()) == kept


def test_a_file_of_a_package_is_diverted(tmp_path: Path) -> None:
    package(tmp_path, "other-mpi", "/usr/bin/mpirun")
    line = "dpkg-divert --add --rename --divert /usr/bin/disabled.mpirun /usr/bin/mpirun"
    assert aside.aside(str(tmp_path), "/usr/bin/mpirun") == line


@pytest.mark.parametrize("line", ["/opt/a.b", "include /opt/a.b", "/opt/a.b/"])
def test_a_setting_becomes_a_comment_and_no_other_does(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, "/one.conf", f"/opt/aXb\n{line}\n/opt/a.b/c\n")
    pasted(aside.without_line(str(path), "/opt/a.b"), tmp_path)
    assert path.read_text() == f"/opt/aXb\n# {line}\n/opt/a.b/c\n"


def test_lines_in_one_hide_no_command_behind_a_comment() -> None:
    joined = aside.one_line(["mv a b; ldconfig", "unset X   # at launch: y", "mv c d; ldconfig"])
    assert joined == "mv a b; unset X; mv c d; ldconfig   # at launch: y"


def test_secrets_are_moved_and_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "TAKEN_OUT", str(tmp_path / "out"))
    paths = [str(write(tmp_path, f"/{name}/id key", name)) for name in ("a", "b")]
    pasted(aside.moved_out(paths), tmp_path)
    kept = sorted(one.name for one in (tmp_path / "out").iterdir())
    assert kept == ["id key", "id key.~1~"]


def test_what_is_in_the_place_of_a_link_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path, "/bin/python", "mine")
    pasted(aside.link_in_place("/", str(path), "python3"), tmp_path)
    assert str(path.readlink()) == "python3"
    assert path.with_name("disabled.python").read_text() == "mine"


def test_links_come_back_with_their_package_or_by_the_choice_of_the_system(tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib"
    folder.mkdir(parents=True)
    package(tmp_path, "libx2", "/usr/lib/libx.so.2")
    for name, target in (
        ("libx.so", "libx.so.2"),
        ("libm.so", "/etc/alternatives/libm.so-x86_64"),
        ("libgone.so", "libgone.so.7"),
    ):
        (folder / name).symlink_to(target)
    paths = [f"/usr/lib/{name}" for name in ("libx.so", "libm.so", "libgone.so")]
    line = links.mended(str(tmp_path), paths)
    assert line.startswith(
        "update-alternatives --auto libm.so-x86_64; rm /usr/lib/libgone.so; ldconfig; apt-get "
    )
    assert " libx2; " in line


class _Image:
    """What `out_of_use` reads of an image."""

    def __init__(self, root: Path, path: str) -> None:
        self.root, self.env = str(root), {"PATH": path}
        self.expected = SimpleNamespace(env={"PATH": "/opt/own/bin:/usr/bin"})


def test_a_choice_of_the_system_is_chosen_again_and_nothing_is_removed(tmp_path: Path) -> None:
    write(tmp_path, "/var/lib/dpkg/alternatives/mpirun", "auto\n/usr/bin/mpirun.openmpi\n50\n")
    for name, target in (("own", "/usr/bin/mpirun"), ("usr", "/etc/alternatives/mpirun")):
        folder = tmp_path / ("opt/own/bin" if name == "own" else "usr/bin")
        folder.mkdir(parents=True)
        (folder / "mpirun").symlink_to(target)
    image = _Image(tmp_path, "/opt/own/bin:/usr/bin")
    wrong = "/opt/own/bin/mpirun"
    one = out_of_use(image, [(wrong, "/usr/bin/mpirun.openmpi")])  # type: ignore[arg-type]
    assert one == "update-alternatives --set mpirun /usr/bin/mpirun.openmpi"
    other = out_of_use(image, [(wrong, "/opt/x/mpirun")])  # type: ignore[arg-type]
    assert other.startswith(f"update-alternatives --install {wrong} mpirun /opt/x/mpirun 1000 && ")


def test_a_folder_of_nobody_leaves_the_path_and_others_stay(tmp_path: Path) -> None:
    image = _Image(tmp_path, "/opt/conda/bin:/opt/own/bin:/usr/bin")
    one = out_of_use(image, [("/opt/conda/bin/python", "/usr/bin/python3")])  # type: ignore[arg-type]
    assert one.startswith("export PATH=/opt/own/bin:/usr/bin   # at launch: ")
    own = out_of_use(image, [("/opt/conda/bin/pip", "")], "/opt/conda/bin")  # type: ignore[arg-type]
    assert own == "mv /opt/conda/bin/pip /opt/conda/bin/disabled.pip"


def test_sshd_starts_again_by_what_it_said() -> None:
    said = "/etc/ssh/sshd_config.d/a.conf line 3: Bad configuration option: X\r\nterminating, 1 bad"
    line = "sed -i '3s|^|# |' /etc/ssh/sshd_config.d/a.conf"
    assert ssh_rules.starts_again(said) == line
    missing = "Missing privilege separation directory: /run/sshd"
    assert ssh_rules.starts_again(missing) == "mkdir -p -m 0755 /run/sshd"
    assert not ssh_rules.starts_again("killed").given


def test_keys_of_the_image_leave_with_the_setting_that_names_them(tmp_path: Path) -> None:
    write(tmp_path, "/etc/ssh/keys/host", "k")
    write(tmp_path, "/etc/ssh/sshd_config.d/a.conf", "HostKey /etc/ssh/keys/host\nPort 2222\n")
    line = ssh_rules.made_anew(str(tmp_path), ["/etc/ssh/keys/host"])
    assert "mv --backup=numbered /etc/ssh/keys/host /run/imagegen/taken-out/; sed " in line
    assert "HostKey +/etc/ssh/keys/host|# &|I' /etc/ssh/sshd_config.d/a.conf; sh -c " in line


def test_sessions_get_variables_where_they_read_them(tmp_path: Path) -> None:
    write(tmp_path, "/etc/environment", 'NCCL_DEBUG="INFO"\nPATH="/bin"\n')
    root = str(tmp_path)
    line = ssh_rules.carried(root, {"PATH": "/opt/bin:/bin", "NCCL_DEBUG": None})
    assert line.startswith("echo 'session required pam_env.so' >> /etc/pam.d/sshd; ")
    assert """echo 'PATH="/opt/bin:/bin"' >> /etc/environment""" in line
    assert "sed -i 's|^ *NCCL_DEBUG=|# &|' /etc/environment" in line
    write(tmp_path, "/etc/pam.d/sshd", "session required pam_env.so\n")
    assert "pam_env" not in ssh_rules.carried(root, {"PATH": "/opt/bin:/bin"})
    assert ssh_rules.carried(root, {"PATH": "/bin"}).kind == "build"


def test_limits_of_sessions_are_those_of_sshd_again(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert ssh_rules.limits_kept(root).startswith("kill $(cat /run/sshd.pid); ")
    write(
        tmp_path, "/etc/pam.d/sshd", "# session required pam_limits.so\n@include common-session\n"
    )
    write(tmp_path, "/etc/pam.d/common-session", "session required pam_limits.so\n")
    line = "sed -i '/pam_limits.so/s/^/# /' /etc/pam.d/common-session"
    assert ssh_rules.limits_kept(root) == line
