"""Test secrets in layers, settings and history, and what packages publish themselves."""

from __future__ import annotations

import io
import tarfile

import pytest

from imagegen.validation.image_secrets import FileSecret, ImageSecrets, in_settings, scan_layer

KEY = b"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n"


def scanned(files: dict[str, bytes], owned: set[str] | None = None) -> dict[str, str]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        tar.addfile(tarfile.TarInfo("empty"))
    packed.seek(0)
    with tarfile.open(fileobj=packed) as tar:
        return dict(scan_layer(tar, owned or set())[0])


def test_private_keys_are_found_by_their_first_bytes() -> None:
    begin = b"-----BEGIN "
    found = scanned(
        {
            "root/.ssh/id_ed25519": begin + b"OPENSSH PRIVATE KEY-----\nx",
            "./etc/ssl/a.pem": b"Bag Attributes\n" + begin + b"ENCRYPTED PRIVATE KEY-----\nMII",
            "etc/ssl/b.key": begin + b"PRIVATE KEY-----\nMII",
            "data/large": begin + b"PRIVATE KEY-----\n" + b"x" * 300_000,
            "etc/ssh/host.pub": b"ssh-ed25519 AAAA",
            "usr/bin/tool": b'text = "' + begin + b'PRIVATE KEY-----"',
            "etc/ssl/cert.pem": begin + b"CERTIFICATE-----\n",
        }
    )
    keys = ["/root/.ssh/id_ed25519", "/etc/ssl/a.pem", "/etc/ssl/b.key", "/data/large"]
    assert found == dict.fromkeys(keys, "private key")


def test_what_package_lists_name_is_owned_and_what_an_install_script_makes_is_not() -> None:
    files = {
        "usr/lib/python3/dist-packages/future/test/badkey.pem": KEY,
        "var/lib/dpkg/info/python3-future.list": (
            b"/.\n/usr/lib/python3/dist-packages/future/test/badkey.pem\n/lib/old.pem\n"
        ),
        "usr/lib/old.pem": KEY,
        "usr/local/lib/site-packages/pkg-1.dist-info/RECORD": b"pkg/test.key,sha256=x,9\n",
        "usr/local/lib/site-packages/pkg/test.key": KEY,
        "usr/local/lib/site-packages/pkg/test.pyc": KEY,
        "etc/ssh/ssh_host_rsa_key": KEY,
        "opt/older.pem": KEY,
    }
    assert scanned(files, {"/opt/older.pem"}) == {"/etc/ssh/ssh_host_rsa_key": "private key"}


def test_settings_that_people_fill_in_count_also_if_a_package_brought_them() -> None:
    found = scanned(
        {
            "var/lib/dpkg/info/wget.list": b"/etc/wgetrc\n",
            "etc/wgetrc": b"https_proxy = http://me:hunter2@proxy:3128/\n",
        }
    )
    assert found == {"/etc/wgetrc": "password in a URL"}


def test_variables_labels_commands_and_history_are_read() -> None:
    token = "ghp_" + "a" * 36
    config = {
        "Env": ["PATH=/usr/bin", f"ACCESS={token}", "DB_PASSWORD=hunter2", "TOKEN_FILE=/run/x"],
        "Labels": {"org.title": "imagegen/cpu:a", "build.token": "abc123"},
        "Cmd": ["server", "--password", "hunter2"],
        "Entrypoint": None,
    }
    history = [
        "/bin/sh -c #(nop) ADD file:1 in /",
        f"RUN |2 TOKEN=abc MODE=fast /bin/sh -c git clone https://x:{token}@host/a # buildkit",
        "RUN /bin/sh -c . /mnt/env.sh && apt-get update # buildkit",
    ]
    found = [*in_settings({"Config": config}, history)]  # type: ignore[typeddict-item]
    assert found == [
        "GitHub token in ENV ACCESS",
        "password in ENV DB_PASSWORD",
        "password in label build.token",
        "password, in CMD",
        "password in TOKEN, in instruction 2 of the history",
    ]
    assert token not in "".join(found)


def test_an_image_without_settings_has_no_secrets_in_them() -> None:
    assert [*in_settings({}, [])] == []


@pytest.mark.parametrize("kind", ["private key", "GitHub token"])
def test_keys_and_other_secrets_are_told_apart(kind: str) -> None:
    found = ImageSecrets((FileSecret(kind, 2, "/x"),))
    assert (len(found.keys), len(found.credentials)) == (
        (1, 0) if kind == "private key" else (0, 1)
    )
    assert [*found] == [f"{kind} in layer 2: /x"]
