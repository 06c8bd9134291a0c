"""Test which network settings of a host a build gets, and that it gets nothing else of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.config.network import BuildEnv, pip_config_files, read_build_env
from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

PEM = "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    path.write_text(PEM)
    return path


def contents(env: BuildEnv) -> dict[str, str]:
    return {file.path: file.data.decode() for file in env.files}


APT_CONF = 'DPkg::Post-Invoke { "if [ -s /etc/machine-id ]; then : > /etc/machine-id; fi"; };\n'


UV_TOML = 'index-strategy = "unsafe-best-match"\n'


def test_a_host_without_settings_adds_nothing_but_how_apt_behaves() -> None:
    env = read_build_env({}, None, ())
    assert contents(env) == {"build-env/apt.conf": APT_CONF, "build-env/uv.toml": UV_TOML}
    assert (env.buildargs, env.notes) == ((), ())


@pytest.mark.parametrize("name", ["PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_the_bundle_of_pip_and_curl_is_taken(bundle: Path, name: str) -> None:
    env = read_build_env({name: str(bundle)}, None, ())
    assert contents(env) == {
        "build-env/ca.crt": PEM,
        "build-env/apt.conf": f'{APT_CONF}Acquire::https::CaInfo "/mnt/ca.crt";\n',
        "build-env/uv.toml": UV_TOML,
    }
    assert env.notes == (f"CA bundle {bundle} ({name})",)


def test_an_asked_bundle_wins_over_the_environment(bundle: Path) -> None:
    env = read_build_env({"PIP_CERT": "/nowhere"}, bundle, ())
    assert env.notes == (f"CA bundle {bundle} (--ca-bundle)",)


def test_a_bundle_that_cannot_be_read_names_who_named_it() -> None:
    with pytest.raises(ConfigError) as caught:
        read_build_env({"SSL_CERT_FILE": "/nowhere/ca.pem"}, None, ())
    assert str(caught.value) == (
        "error: the CA bundle `/nowhere/ca.pem` cannot be read\n"
        "  named by SSL_CERT_FILE\n"
        "  No such file or directory\n"
        "\n"
        "hint: correct SSL_CERT_FILE, or unset it"
    )


def test_a_file_without_a_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.der").write_bytes(b"\x30\x82")
    with pytest.raises(ConfigError, match="holds no certificate in PEM form"):
        read_build_env({}, tmp_path / "ca.der", ())


def test_index_settings_of_pip_travel_and_files_of_the_host_do_not(
    tmp_path: Path, bundle: Path
) -> None:
    config = tmp_path / "pip.conf"
    config.write_text(
        f"[global]\nindex-url = https://mirror.example/simple\ncert = {bundle}\n"
        "find-links = /srv/wheels\nproxy = http://user:secret@proxy\n"
        "[install]\nextra-index-url = file:///srv/simple\n  https://more.example/simple\n"
    )
    env = read_build_env({}, None, [config])
    assert contents(env)["build-env/pip.conf"] == (
        "[global]\n"
        "index-url = https://mirror.example/simple\n"
        "extra-index-url = https://more.example/simple\n"
    )
    assert contents(env)["build-env/ca.crt"] == PEM
    assert contents(env)["build-env/uv.toml"] == (
        f"{UV_TOML}"
        'index-url = "https://mirror.example/simple"\n'
        'extra-index-url = ["https://more.example/simple"]\n'
    )


def test_hosts_that_pip_trusts_are_trusted_by_uv() -> None:
    env = read_build_env({"PIP_TRUSTED_HOST": "one.example two.example:81"}, None, ())
    assert contents(env)["build-env/uv.toml"] == (
        f'{UV_TOML}allow-insecure-host = ["one.example", "two.example:81"]\n'
    )


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://one.example/simple\n")
    env = read_build_env({"PIP_INDEX_URL": "https://two.example/simple"}, None, [config])
    assert "two.example" in contents(env)["build-env/pip.conf"]
    assert "one.example" not in contents(env)["build-env/pip.conf"]


@pytest.mark.parametrize("text", ["not an ini file", "[global\n", "\x00"])
def test_a_broken_file_of_pip_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "pip.conf").write_text(text)
    assert read_build_env({}, None, [tmp_path / "pip.conf"]) == read_build_env({}, None, ())


def test_proxies_are_build_arguments_and_never_files() -> None:
    env = read_build_env({"https_proxy": "http://p:1", "NO_PROXY": "a,b", "OTHER": "x"}, None, ())
    assert env.buildargs == (("NO_PROXY", "a,b"), ("https_proxy", "http://p:1"))
    assert set(contents(env)) == {"build-env/apt.conf", "build-env/uv.toml"}


def test_a_note_never_shows_the_password_of_a_proxy() -> None:
    env = read_build_env({"HTTPS_PROXY": "http://user:secret@p"}, None, ())
    assert env.notes == ("HTTPS_PROXY of this host",)


def test_files_of_the_user_come_after_those_of_the_system(tmp_path: Path) -> None:
    files = pip_config_files(tmp_path)
    assert [tmp_path in file.parents for file in files] == [False, False, True, True]
