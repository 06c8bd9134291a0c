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


def test_a_script_says_what_runs_it(tmp_path: Path) -> None:
    python = trees.write(tmp_path, "/bin/python3", "")
    python.chmod(0o755)
    long = """#!/bin/sh\n'''exec' "/long/python3" "$0" "$@"\n' '''\n"""
    said = {
        "#!/usr/bin/python3 -I\n": "/usr/bin/python3",
        "#!/usr/bin/env python3\n": str(python),
        "#!/usr/bin/env -S A=1 python3 -I\n": str(python),
        "#!/usr/bin/env python4\n": "",
        long: "/long/python3",
        "no script": "",
    }
    for text, interpreter in said.items():
        script = str(trees.write(tmp_path, "/script", text))
        assert programs.interpreter_of(script, f"{tmp_path}/bin") == interpreter


def test_the_environment_file_is_read_as_pam_does() -> None:
    text = '# x\nPATH="/a:/b"\nexport LANG=C.UTF-8\n'
    assert programs.parse_environment(text) == {"PATH": "/a:/b", "LANG": "C.UTF-8"}
