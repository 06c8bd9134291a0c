"""Test the checks that judge an image without a recipe in another way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unit.validate.trees import findings, write
from validate.check import FAILED, PASSED, SKIPPED, WARNED, CheckWarned
from validate.expected import Expected
from validate.fixtures import Measure, Situation
from validate.probes import limits, ssh
from validate.probes.package_lists import Listed
from validate.probes.sshd import separation_folder
from validate.suites import test_os as os_suite
from validate.suites import test_os_files as files_suite
from validate.suites import test_ssh as ssh_suite

if TYPE_CHECKING:
    from pathlib import Path


def expected(*, inferred: bool = True, **changes: Any) -> Expected:
    system = {"ID": "", "VERSION_ID": "", "glibc": "", "lib_dir": "/usr/lib"}
    data = {"schema": 1, "os": system, "components": {}, "suites": ["os"], "inferred": inferred}
    return Expected({**data, **changes}, "")


def situation(recipe: Expected, root: str = "/", **env: str) -> Situation:
    return Situation(recipe, env, root, {})


def test_a_system_that_does_not_name_itself_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LANG"):
        monkeypatch.delenv(name, raising=False)
    found = findings(tmp_path, "os", expected(), static=True)
    assert found["os.release"].outcome == PASSED
    assert (found["os.glibc"].outcome, found["os.glibc"].reason) == (SKIPPED, "not-applicable")
    assert found["os.locale"].measured == "none is set: Python 3.7 and later take UTF-8"
    assert findings(tmp_path, "os", expected(inferred=False))["os.locale"].outcome == WARNED


def test_an_image_without_getent_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os_suite, "with_address", lambda *_: ["eth0"])
    monkeypatch.setattr(os_suite, "find_program", lambda *_: "")
    with pytest.raises(pytest.skip.Exception, match="not-installed: there is no getent"):
        os_suite.test_hostname(situation(expected()), None, Measure())


def test_a_gpu_build_on_a_host_without_gpus_may_have_little_shared_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 64 << 20)
    found = findings(tmp_path, "limits", expected(device="gpu"))
    assert found["lim.shm"].outcome == WARNED
    recipe = expected(device="gpu", inferred=False)
    assert findings(tmp_path, "limits", recipe)["lim.shm"].outcome == FAILED
    write(tmp_path, "/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n")
    write(tmp_path, "/sys/bus/pci/devices/0000:3b:00.0/class", "0x030200\n")
    assert findings(tmp_path, "limits", expected(device="gpu"))["lim.shm"].outcome == FAILED


def test_host_keys_of_a_package_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "/etc/ssh/ssh_host_rsa_key"
    monkeypatch.setattr(ssh, "baked", lambda *_: [key])
    with pytest.raises(CheckWarned, match="came with the image: /etc/ssh/ssh_host_rsa_key"):
        ssh_suite._baked(situation(expected()), [key], Measure())


def test_the_folder_of_sshd_is_made_for_the_question_only(tmp_path: Path) -> None:
    path = tmp_path / "sshd"
    with separation_folder(True, str(path)) as was_there:
        assert not was_there
        assert path.is_dir()
    assert not path.exists()
    with separation_folder(False, str(path)) as was_there:
        assert was_there
        assert not path.exists()


@pytest.mark.parametrize(
    ("changed", "gone", "meant"),
    [
        (["/usr/lib/python3/dist-packages/torch/run.py"], [], True),
        (["/usr/lib/libtorch.so.2"], [], False),
        ([], ["/usr/lib/python3/dist-packages/torch/run.py"], False),
    ],
)
def test_a_text_that_a_dockerfile_edits_is_meant(
    changed: list[str], gone: list[str], meant: bool
) -> None:
    image = situation(expected())
    one, other = ([Listed(p, "md5", "", "torch", 0.0) for p in paths] for paths in (changed, gone))
    assert files_suite._meant(image, one, other) == meant
    assert not files_suite._meant(situation(expected(inferred=False)), one, other)
