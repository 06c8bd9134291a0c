"""Test how the output of Open MPI is parsed, and the command line of a launch."""

from __future__ import annotations

from validate.probes import mpi


def test_mpirun_and_ompi_info_are_read() -> None:
    assert mpi.parse_version("mpirun (Open MPI) 5.0.7\n\nReport bugs to\n") == "5.0.7"
    assert mpi.parse_version("HYDRA build details:\n    Version: 4.0\n") == ""
    assert mpi.parse_prefix("path:prefix:/usr\n") == "/usr"
    assert mpi.thread_multiple('option:threads:"posix (MPI_THREAD_MULTIPLE: yes, x"')


def test_a_launch_hands_on_what_is_set_and_nothing_else() -> None:
    argv = mpi.launch("/usr/local/openmpi", 2, ["hostname"], {"PATH": "/bin", "A": "1"}, ["A", "B"])
    assert argv[:3] == ["/usr/local/openmpi/bin/mpirun", "-np", "2"]
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "-x"] == ["PATH", "A"]
    assert argv[argv.index("--map-by") + 1] == "slot:OVERSUBSCRIBE"
