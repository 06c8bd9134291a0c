"""Test private keys in layers: what counts as one, and keys that packages publish themselves."""

from __future__ import annotations

import io
import tarfile

from imagegen.engine.images.private_keys import scan_layer


def layer(files: dict[str, bytes]) -> tarfile.TarFile:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        tar.addfile(tarfile.TarInfo("empty"))
    packed.seek(0)
    return tarfile.open(fileobj=packed)


def test_private_keys_are_found_by_their_first_bytes() -> None:
    begin = b"-----BEGIN "
    files = {
        "root/.ssh/id_ed25519": begin + b"OPENSSH PRIVATE KEY-----\nx",
        "./etc/ssl/a.pem": b"Bag Attributes\n" + begin + b"ENCRYPTED PRIVATE KEY-----\n",
        "etc/ssl/b.key": begin + b"PRIVATE KEY-----\n",
        "etc/ssh/host.pub": b"ssh-ed25519 AAAA",
        "usr/bin/tool": b'text = "' + begin + b'PRIVATE KEY-----"',
        "etc/ssl/cert.pem": begin + b"CERTIFICATE-----\n",
    }
    with layer(files) as tar:
        found = scan_layer(tar)[0]
    assert found == ["/root/.ssh/id_ed25519", "/etc/ssl/a.pem", "/etc/ssl/b.key"]


def test_what_package_lists_name_is_owned_and_what_an_install_script_makes_is_not() -> None:
    key = b"-----BEGIN PRIVATE KEY-----\n"
    files = {
        "usr/lib/python3/dist-packages/future/test/badkey.pem": key,
        "var/lib/dpkg/info/python3-future.list": (
            b"/.\n/usr/lib/python3/dist-packages/future/test/badkey.pem\n/lib/old.pem\n"
        ),
        "usr/local/lib/site-packages/pkg-1.dist-info/RECORD": b"pkg/test.key,sha256=x,9\n",
        "usr/local/lib/site-packages/pkg/test.key": key,
        "etc/ssh/ssh_host_rsa_key": key,
    }
    with layer(files) as tar:
        keys, owned = scan_layer(tar)
    assert [path for path in keys if path not in owned] == ["/etc/ssh/ssh_host_rsa_key"]
    assert "/usr/lib/old.pem" in owned
