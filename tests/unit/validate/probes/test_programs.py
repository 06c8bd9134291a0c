"""Test programs on a PATH, and /etc/environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unit.validate import trees
from validate.probes import programs
from validate.probes.files import distinct_files

if TYPE_CHECKING:
    from pathlib import Path


def test_programs_are_the_same_where_they_are_the_same_file(tmp_path: Path) -> None:
    real = trees.write(tmp_path, "/a/mpirun", "#!/bin/sh\n")
    real.chmod(0o755)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/mpirun").symlink_to(real)
    path = f"{tmp_path}/a:{tmp_path}/b:/nowhere"
    found = programs.on_path(["mpirun"], path)
    assert len(found) == 2
    assert len(distinct_files(found)) == 1
    assert programs.find_program("mpirun", path) == str(real)
    assert programs.interpreter_of(str(real)) == "/bin/sh"


def test_the_environment_file_is_read_as_pam_does() -> None:
    text = '# x\nPATH="/a:/b"\nexport LANG=C.UTF-8\n'
    assert programs.parse_environment(text) == {"PATH": "/a:/b", "LANG": "C.UTF-8"}
