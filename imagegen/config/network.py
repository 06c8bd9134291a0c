"""Collect the host settings that a build needs beside its recipe, mostly for the network.

These are the CA bundle, pip's index settings, proxies, and how apt has to behave. They reach only
the steps that download: files by a bind mount of the context folder `build-env`, proxies as the
build arguments that BuildKit keeps out of history and cache.
"""

from __future__ import annotations

import json
import os
from configparser import ConfigParser, Error
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.errors import ConfigError
from imagegen.model.recipe import ContextFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FOLDER = "build-env"
CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY")
_UV_KEYS = {
    "index-url": "index-url",
    "extra-index-url": "extra-index-url",
    "trusted-host": "allow-insecure-host",
}
PIP_INDEX_KEYS = tuple(_UV_KEYS)

# The package of systemd makes a random machine id when it is installed: it would change with each
# build, and be the same in all containers of an image. It is emptied.
_APT_CONF = b"""\
DPkg::Post-Invoke { "if [ -s /etc/machine-id ]; then : > /etc/machine-id; fi"; };
"""
_APT_CA = b'Acquire::https::CaInfo "/mnt/ca.crt";\n'


@dataclass(frozen=True)
class BuildEnv:
    """Files for the context, build arguments, and a note about each setting that was taken."""

    files: tuple[ContextFile, ...] = ()
    buildargs: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def pip_config_files(home: Path) -> tuple[Path, ...]:
    """List pip's own configuration files, those of the system first.

    Source: pip documentation, Configuration.
    """
    return (
        Path("/etc/pip.conf"),
        Path("/etc/xdg/pip/pip.conf"),
        home / ".pip/pip.conf",
        home / ".config/pip/pip.conf",
    )


def host_network(ca_bundle: Path | None) -> BuildEnv:
    """Collect what a build step needs to use the network of this host.

    Raises ConfigError for a CA bundle that cannot be read or holds no certificate.
    """
    return read_build_env(os.environ, ca_bundle, pip_config_files(Path.home()))


def read_build_env(
    environ: Mapping[str, str], ca_bundle: Path | None, pip_files: Iterable[Path]
) -> BuildEnv:
    """Collect the settings of this host, as its own pip and curl use them.

    Raises ConfigError for a CA bundle that cannot be read or holds no certificate.
    """
    pip = _pip_settings(environ, pip_files)
    bundle, named_by = _ca_bundle(environ, ca_bundle, pip)
    apt_conf = _APT_CONF + (_APT_CA if bundle else b"")
    files, notes = [ContextFile(f"{FOLDER}/apt.conf", apt_conf)], []
    if bundle is not None:
        files.append(_certificates(bundle, named_by))
        notes.append(f"CA bundle {bundle} ({named_by})")
    index = _index_settings(pip)
    files.append(ContextFile(f"{FOLDER}/uv.toml", uv_toml_of(index).encode()))
    if index:
        files.append(ContextFile(f"{FOLDER}/pip.conf", pip_conf_of(index).encode()))
        notes.append("pip index settings of this host")
    proxies = _proxies(environ)
    notes += [f"{name} of this host" for name, _ in proxies]
    return BuildEnv(tuple(files), proxies, tuple(notes))


def _pip_settings(environ: Mapping[str, str], files: Iterable[Path]) -> dict[str, str]:
    settings: dict[str, str] = {}
    own_file = environ.get("PIP_CONFIG_FILE")
    for path in [*files, *([Path(own_file)] if own_file else [])]:
        parser = ConfigParser(interpolation=None)
        try:
            parser.read(path)
        except (Error, OSError, UnicodeDecodeError):
            continue
        for section in ("global", "install"):
            if parser.has_section(section):
                settings |= dict(parser.items(section))
    for key in (*PIP_INDEX_KEYS, "cert"):
        value = environ.get(f"PIP_{key.replace('-', '_').upper()}")
        if value:
            settings[key] = value
    return settings


def _ca_bundle(
    environ: Mapping[str, str], asked: Path | None, pip: Mapping[str, str]
) -> tuple[Path | None, str]:
    if asked is not None:
        return asked, "--ca-bundle"
    for name in CA_VARIABLES:
        if environ.get(name):
            return Path(environ[name]), name
    return (Path(pip["cert"]), "pip's `cert`") if pip.get("cert") else (None, "")


def _certificates(bundle: Path, named_by: str) -> ContextFile:
    try:
        data = bundle.read_bytes()
    except OSError as error:
        raise ConfigError.of(
            f"the CA bundle `{bundle}` cannot be read",
            evidence=[f"named by {named_by}", error.strerror or str(error)],
            hint=f"correct {named_by}, or unset it",
        ) from None
    if b"BEGIN CERTIFICATE" not in data:
        raise ConfigError.of(
            f"`{bundle}` holds no certificate in PEM form",
            evidence=[f"named by {named_by}"],
            hint="give a bundle in PEM form",
        )
    return ContextFile(f"{FOLDER}/ca.crt", data)


def _index_settings(pip: Mapping[str, str]) -> dict[str, str]:
    """Take the index settings that mean something inside a container, not those of local files."""
    found = {}
    for key in PIP_INDEX_KEYS:
        values = [v for v in pip.get(key, "").split() if not v.startswith(("file:", "/"))]
        if values:
            found[key] = " ".join(values)
    return found


def pip_conf_of(settings: Mapping[str, str]) -> str:
    """Write a pip.conf with these settings; the text is empty where there are none."""
    lines = [f"{key} = {value}" for key, value in settings.items()]
    return "\n".join(["[global]", *lines, ""]) if lines else ""


def uv_toml_of(settings: Mapping[str, str]) -> str:
    """Write the same settings for uv, which does not read pip's.

    uv is set to do as pip does: take the best release of all indexes, not the best of the first
    index that has the project. Source: uv documentation, Reference, Settings.
    """
    lines = ['index-strategy = "unsafe-best-match"']
    for pip, uv in _UV_KEYS.items():
        if pip in settings:
            value = settings[pip] if pip == "index-url" else settings[pip].split()
            lines.append(f"{uv} = {json.dumps(value)}")
    return "\n".join([*lines, ""])


def _proxies(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    found = {}
    for name in PROXY_VARIABLES:
        for spelling in (name, name.lower()):
            if environ.get(spelling):
                found[spelling] = environ[spelling]
    return tuple(sorted(found.items()))
