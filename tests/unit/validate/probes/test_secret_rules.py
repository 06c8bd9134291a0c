"""Test what counts as a secret, in which form, and what does not."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from validate.probes.secret_rules import kind_of_file, kind_of_variable, kinds_in_command

KEY = b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9u\n" * 4
DER = b"0\x82\x04\xa4\x02\x01\x00\x02\x82\x01\x01\x00"
TOKEN = b"ghp_" + b"a1B2" * 9


def zipped(name: str, data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, data)
    return packed.getvalue()


def tarred(data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo("id")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        KEY,
        KEY.replace(b"\n", b"\r\n"),
        b"# my key\n" + KEY,
        b'{"private_key": "' + KEY.replace(b"\n", b"\\n") + b'"}',
        b"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF\n",
        b"PuTTY-User-Key-File-3: ssh-ed25519\n",
        DER,
        gzip.compress(KEY, mtime=0),
        bz2.compress(KEY),
        lzma.compress(KEY),
        zipped("x/id", KEY),
        tarred(KEY),
        base64.b64encode(KEY),
        base64.encodebytes(gzip.compress(KEY, mtime=0)),
        b"data:\n  ssh-privatekey: " + base64.b64encode(KEY) + b"\n",
    ],
)
def test_a_private_key_is_known_in_every_form_under_every_name(data: bytes) -> None:
    assert kind_of_file("/opt/notes.txt", data) == "private key"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/root/.netrc", "machine h login me password hunter2"),
        ("/etc/apt/auth.conf.d/90x.conf", "machine h\nlogin me\npassword hunter2"),
        ("/root/.git-credentials", "x"),
        ("/root/.docker/config.json", '{"auths": {"r": {"auth": "bWU6eA=="}}}'),
        ("/root/.aws/credentials", "[default]\n"),
        ("/root/.npmrc", "//r/:_authToken=0a1b2c"),
        ("/root/.pypirc", "[pypi]\nusername = me\npassword = x1\n"),
        ("/root/.kube/config", "users:\n- user:\n    token: abc\n"),
        ("/home/me/.huggingface/token", "abc"),
        ("/home/me/.cache/huggingface/token", "abc"),
        ("/root/.config/gh/hosts.yml", "github.com:\n  oauth_token: abc\n"),
    ],
)
def test_a_credential_file_of_a_known_program_counts(path: str, text: str) -> None:
    assert kind_of_file(path, text.encode()) == "credentials"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/root/.docker/config.json", '{"auths": {"r": {}}, "credsStore": "pass"}'),
        ("/root/.netrc", ""),
        ("/root/.npmrc", "//r/:_authToken=${NPM_TOKEN}"),
        ("/root/.kube/config", "clusters:\n- name: a\n"),
        ("/app/README", "as in https://user:password@host/x and https://$USER:$PASS@host"),
        ("/app/test.sh", 'grep "-----BEGIN PRIVATE KEY-----" file'),
        ("/app/notes", "AKIAIOSFODNN7EXAMPLE"),
        ("/etc/pip.conf", "[global]\nindex-url = https://git@mirror.example/simple\n"),
        ("/etc/wgetrc", "#https_proxy = http://me:hunter2@proxy/\n"),
        ("/root/.bashrc", "export HF_TOKEN=$(cat /run/secrets/hf)\n"),
        ("/app/data.gz", "\x1f\x8b not gzip"),
        ("/app/data.zip", "PK\x03\x04 not a zip"),
        ("/app/words", "a" * 400),
    ],
)
def test_what_holds_no_secret_is_left_alone(path: str, text: str) -> None:
    assert kind_of_file(path, text.encode("latin-1")) == ""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/etc/pip.conf", "index-url = https://me:password@host/simple"),
        ("/root/.config/pip/pip.conf", "extra-index-url=https://0123456789abcdef0123@host/simple"),
        ("/etc/apt/sources.list", "deb https://me:x@host/debian stable main"),
        ("/etc/apt/sources.list.d/a.sources", "URIs: https://me:x@host/debian"),
        ("/workspace/repo/.git/config", "url = https://me:x@host/repo.git"),
        ("/etc/environment", 'https_proxy="http://me:x@proxy:3128"'),
        ("/app/train.py", 'client = connect("postgresql://me:hunter2@db/runs")'),
    ],
)
def test_a_password_in_an_address_counts(path: str, line: str) -> None:
    assert kind_of_file(path, b"# it\n" + line.encode() + b"\n") == "password in a URL"


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("HF_TOKEN", "abc", "password"),
        ("WANDB_API_KEY", "0123456789", "password"),
        ("db.password", "123456", "password"),
        ("ANYTHING", TOKEN.decode(), "GitHub token"),
        ("DEPLOY", base64.b64encode(KEY).decode(), "private key"),
        ("DEPLOY", KEY.decode().replace("\n", "\\n"), "private key"),
        ("http_proxy", "http://me:x@proxy:1", "password in a URL"),
        ("HF_TOKEN", "", ""),
        ("HF_TOKEN", "$HF_TOKEN", ""),
        ("HF_TOKEN", "/run/secrets/hf", ""),
        ("USE_AUTH", "true", ""),
        ("GPG_KEY", "E3FF2839C048B25C084DEBE9B26995E310250568", ""),
        ("PWD", "/root", ""),
        ("OLDPWD", "x", ""),
        ("SSH_AUTH_SOCK", "/tmp/agent", ""),
        ("TOKENIZERS_PARALLELISM", "false", ""),
        ("KUBERNETES_PORT", "tcp://10.0.0.1:443", ""),
        ("http_proxy", "http://proxy:3128", ""),
    ],
)
def test_a_variable_is_judged_by_its_name_and_its_value(name: str, value: str, kind: str) -> None:
    assert kind_of_variable(name, value) == kind


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("RUN |1 PIP_PASSWORD=hunter2 /bin/sh -c make", ["password in PIP_PASSWORD"]),
        ("ENV HF_TOKEN=abc MODE=fast", ["password in HF_TOKEN"]),
        ("RUN pip install -i https://me:x@host/simple torch", ["password in a URL"]),
        ("RUN echo root:hunter2 | chpasswd", ["password"]),
        ("RUN curl -H 'Authorization: Bearer abcdefghij' https://host", ["password"]),
        ("RUN login --password hunter2", ["password"]),
        ("RUN login --password $PASSWORD && TOKEN=$(cat x) y", []),
        ("RUN --mount=type=secret,id=token cat /run/secrets/token", []),
        ("CMD [\"bash\"]", []),
    ],
)  # fmt: skip
def test_a_command_is_searched_and_never_quoted(command: str, kinds: list[str]) -> None:
    assert kinds_in_command(command) == kinds
