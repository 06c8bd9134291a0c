"""Tell whether a file, a variable or a command line holds a secret, and of which kind.

No function returns the secret itself. imagegen reads the layers, the settings and the history of
an image with these rules too.
"""

import re
from typing import Iterator, List, NamedTuple, Tuple

from validate.probes.unpacked import unpacked

LARGEST_BYTES = 1 << 18
"""Larger files are not read: keys and credentials are small."""

PRIVATE_KEY, IN_URL = "private key", "password in a URL"
PASSWORD, CREDENTIALS = "password", "credentials"


class Pattern(NamedTuple):
    """Hold a kind, texts that a match has one of (they are found faster), and a match."""

    kind: str
    hints: Tuple[bytes, ...]
    match: "re.Pattern[bytes]"


def _pattern(kind: str, hints: str, match: bytes) -> Pattern:
    return Pattern(kind, tuple(hints.encode().split()), re.compile(match, re.MULTILINE))


_BEGIN = rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
ANYWHERE = (
    _pattern(
        PRIVATE_KEY,
        "PRIVATE",
        rb"(?:^|\0)" + _BEGIN + rb"\s+[A-Za-z0-9+/=:]|" + _BEGIN + rb"(?:\\n|\s)+[A-Za-z0-9+/]{16}",
    ),
    _pattern(PRIVATE_KEY, "PuTTY-User-Key-File", rb"^PuTTY-User-Key-File-\d: "),
    _pattern("AWS access key", "AKIA ASIA", rb"\bA[KS]IA(?![0-9A-Z]{9}EXAMPLE)[0-9A-Z]{16}\b"),
    _pattern(
        "AWS secret key",
        "secret_access_key SECRET_ACCESS_KEY",
        rb"(?i:aws_secret_access_key)[\"']?\s*[:=]\s*[\"']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
    ),
    _pattern("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", rb"\bgh[pousr]_[A-Za-z0-9]{36}"),
    _pattern("GitHub token", "github_pat_", rb"\bgithub_pat_[A-Za-z0-9_]{40,}"),
    _pattern("GitLab token", "glpat-", rb"\bglpat-[A-Za-z0-9_-]{20}"),
    _pattern("Hugging Face token", "hf_ api_org_", rb"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _pattern("PyPI token", "pypi-AgEI", rb"\bpypi-AgEI[A-Za-z0-9_-]{50,}"),
    _pattern("npm token", "npm_", rb"\bnpm_[A-Za-z0-9]{36}\b"),
    _pattern("Docker token", "dckr_pat_", rb"\bdckr_pat_[A-Za-z0-9_-]{20,}"),
    _pattern("Slack token", "xoxa- xoxb- xoxp- xoxr- xoxs-", rb"\bxox[abprs]-\d[0-9A-Za-z-]{15,}"),
    _pattern("Google API key", "AIza", rb"\bAIza[0-9A-Za-z_-]{35}\b"),
    _pattern(
        "API key",
        "sk-",
        rb"\bsk-(?:(?:proj|svcacct|ant-api\d\d)-[A-Za-z0-9_-]{32,}|[A-Za-z0-9]{48}\b)",
    ),
    _pattern("Azure account key", "AccountKey=", rb"AccountKey=[A-Za-z0-9+/]{60,}={0,2}"),
    _pattern("token", "eyJ", rb"\beyJ[\w-]{16,}\.eyJ[\w-]{16,}\.[\w-]{20,}"),
)
"""What is a secret in any file, variable or command."""

AT_HEAD = re.compile(rb"^" + _BEGIN, re.MULTILINE)
DER_KEY = re.compile(
    rb"\A0\x82..\x02\x01\x00(?:\x02\x82|0.\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01)", re.DOTALL
)
"""A private RSA key in the binary form: PKCS #1 or PKCS #8, of version 0."""

_URL = rb"[A-Za-z][A-Za-z0-9+.-]{1,15}://"
URL = re.compile(_URL + rb"[^\s/:@'\"<>]*:(?P<password>[^\s/@'\"<>]+)@[\w.\[-]")
TOKEN_URL = re.compile(_URL + rb"(?P<password>[\w.-]{20,})@[\w.\[-]")
UNSET = re.compile(
    rb"\A(?:[\"']?)(?:|\$.*|%.*|\{.*|<.*|\*+|x{3,}|\.{3}|none|null|redacted)(?:[\"']?)\Z",
    re.IGNORECASE | re.DOTALL,
)
"""No value: empty, another variable, or a mark of what has to be filled in."""
IN_WORDS = re.compile(
    rb"\A(?:pass(?:word|wd)?|pwd?|pw|secret|token|your.*|my.*|example|changeme|key)\Z",
    re.IGNORECASE,
)
"""What texts that explain an address write for a password."""

CONFIGURATION = re.compile(
    r"/etc/|/(?:\.git/config|\.gitconfig|\.git-credentials|[._]netrc|\.npmrc|\.yarnrc(?:\.yml)?"
    r"|\.condarc|\.pypirc|\.wgetrc|\.curlrc|pip\.(?:conf|ini)|uv\.toml|auth\.toml|\.bash_history"
    r"|\.env(?:\.[^/]*)?|[^/]*\.env|[^/]*\.(?:list|sources))$"
)
"""Files that programs read settings from: an address in them is one that is used."""
SETTINGS_OF_A_SHELL = re.compile(
    r"(?:^|/)(?:environment|\.env(?:\.[^/]*)?|[^/]*\.env|\.bash_history|\.zsh_history|\.bashrc"
    r"|\.zshrc|\.(?:bash_)?profile|profile|bash\.bashrc|profile\.d/[^/]+|environment\.d/[^/]+)$"
)
WHOLE = re.compile(
    r"/(?:\.aws/credentials|\.git-credentials|\.vault-token|\.kaggle/kaggle\.json|\.pgpass"
    r"|\.huggingface/token|\.cache/huggingface/(?:token|stored_tokens)|\.boto|\.s3cfg"
    r"|\.config/gcloud/(?:.*credentials.*|access_tokens\.db)|gcloud/legacy_credentials/.+"
    r"|\.azure/(?:accessTokens\.json|msal_token_cache.*|service_principal.*)"
    r"|\.cargo/credentials(?:\.toml)?|\.gem/credentials|\.config/rclone/rclone\.conf"
    r"|\.terraform\.d/credentials\.tfrc\.json|krb5\.keytab)$"
)
"""Files that hold nothing but credentials."""


class Field(NamedTuple):
    """Hold which files have a field with a secret, and that field with a value."""

    path: "re.Pattern[str]"
    match: "re.Pattern[bytes]"


OF_KUBERNETES = (
    rb"^\s*-?\s*(?:client-key-data|token|password|id-token|refresh-token|client-secret):"
    rb"\s*(?P<value>\S+)"
)
FIELDS = tuple(
    Field(re.compile(path), re.compile(match, re.MULTILINE))
    for path, match in (
        (r"/[._]netrc$|/auth\.conf(?:\.d/[^/]+)?$", rb"\bpassword\s+(?P<value>\S+)"),
        (
            r"/(?:config\.json|\.dockercfg|\.dockerconfigjson)$",
            rb"\"(?:auth|identitytoken|registrytoken|password)\"\s*:\s*\"(?P<value>[^\"]+)\"",
        ),
        (
            r"/\.(?:npmrc|yarnrc(?:\.yml)?)$",
            rb"(?:_auth|_authToken|npmAuthToken|_password)\s*[:=]\s*(?P<value>\S+)",
        ),
        (
            r"/\.pypirc$|/\.my\.cnf$|/auth\.toml$",
            rb"^\s*(?:password|[\w-]*token[\w-]*)\s*[:=]\s*(?P<value>\S+)",
        ),
        (r"/\.?kube/|/[^/]*kubeconfig$|/etc/kubernetes/[^/]+\.conf$", OF_KUBERNETES),
        (r"/\.config/gh/hosts\.yml$", rb"oauth_token:\s*(?P<value>\S+)"),
        (
            r"/\.databrickscfg$|/\.comet\.config$",
            rb"^\s*(?:token|api_key|password)\s*=\s*(?P<value>\S+)",
        ),
        (r"/\.m2/settings\.xml$", rb"<(?:password|passphrase)>(?P<value>[^<]+)<"),
    )
)

SECRET_NAME = re.compile(
    r"(?:^|[_.-])(?:PASSWORD|PASSWD|PASSPHRASE|PWD|SECRET|TOKEN|CREDENTIALS?|AUTH|PAT"
    r"|(?:API|ACCESS|SECRET|PRIVATE|ENCRYPTION|SIGNING|MASTER|ACCOUNT|AUTH)[_.-]?KEY|APIKEY)$",
    re.IGNORECASE,
)
NO_SECRET_NAME = re.compile(r"^(?:OLD)?PWD$|PUBLIC", re.IGNORECASE)
ASSIGNED = re.compile(
    r"(?:^|[\s|;&(])(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)=(?P<value>\"[^\"]*\"|'[^']*'|[^\s;&|)]*)"
)
OPTION = re.compile(
    r"\s--?(?:password|passwd|token|api-key|secret|auth-token)[ =](?P<value>[^\s;&|]+)"
    r"|\bAuthorization:\s*(?:Bearer|Basic|token)\s+(?P<bearer>[^\s\"']{8,})"
    r"|\bsshpass\s+-p\s*(?P<ssh>\S+)"
    r"|\|\s*chpasswd\b(?P<user>)"
)
PUT_IN = re.compile(r"\becho\s+[\"']?[\w-]+:(?P<value>[^\s\"'|]+)[\"']?\s*\|\s*chpasswd")


def kind_of_file(path: str, data: bytes) -> str:
    """Return the kind of the secret in a file; empty if there is none.

    Files that are compressed, or in base64, are unpacked first.
    """
    if WHOLE.search(path) and data.strip() not in (b"", b"{}", b"[]"):
        return CREDENTIALS
    for text in unpacked(data):
        found = _kind_of_text(text) or _kind_by_path(path, text)
        if found:
            return found
    return ""


def private_key_at_head(data: bytes) -> str:
    """Return the kind of a private key that a large file begins with; empty if it does not."""
    return PRIVATE_KEY if AT_HEAD.search(data) else ""


def kind_of_variable(name: str, value: str) -> str:
    """Return the kind of the secret in a variable; empty if there is none."""
    data = value.encode("utf-8", "replace")
    if UNSET.match(data):
        return ""
    for text in unpacked(data):
        found = _kind_of_text(text) or _kind_of_address(text, strict=False)
        if found:
            return found
    harmless = value.startswith(("/", "./", "~", "file:")) or re.match(
        r"(?i)(?:true|false|yes|no|on|off|auto|always|never|[01])$", value
    )
    named = SECRET_NAME.search(name) and not NO_SECRET_NAME.search(name)
    return PASSWORD if named and not harmless else ""


def kinds_in_command(text: str) -> List[str]:
    """List the secrets in a command line, or in an instruction of a Dockerfile, by kind or name."""
    found = []
    for match in ASSIGNED.finditer(text):
        value = match.group("value").strip("\"'")
        if kind_of_variable(match.group("name"), value):
            found.append(
                "{} in {}".format(kind_of_variable(match.group("name"), value), match.group("name"))
            )
    for match in (*OPTION.finditer(text), *PUT_IN.finditer(text)):
        values = [one for one in match.groups() if one]
        if values and not UNSET.match(values[0].encode("utf-8", "replace")):
            found.append(PASSWORD)
    data = text.encode("utf-8", "replace")
    whole = _kind_of_text(data) or _kind_of_address(data, strict=True)
    # A value that has a name was found above.
    return list(dict.fromkeys(found or ([whole] if whole else [])))


def _kind_of_text(data: bytes) -> str:
    if DER_KEY.match(data):
        return PRIVATE_KEY
    for kind, hints, match in ANYWHERE:
        if any(hint in data for hint in hints) and match.search(data):
            return kind
    return ""


def _kind_by_path(path: str, data: bytes) -> str:
    for field in FIELDS:
        if field.path.search(path) and any(
            not UNSET.match(match.group("value")) for match in field.match.finditer(data)
        ):
            return CREDENTIALS
    used = bool(CONFIGURATION.search(path))
    found = "" if b"\0" in data else _kind_of_address(data, strict=not used, tokens=used)
    shell = not found and SETTINGS_OF_A_SHELL.search(path)
    return PASSWORD if shell and _in_shell_lines(data) else found


def _in_shell_lines(data: bytes) -> bool:
    lines = data.decode("utf-8", "replace").splitlines()
    return any(
        kind_of_variable(match.group("name"), match.group("value").strip("\"'"))
        for line in lines
        if not line.lstrip().startswith("#")
        for match in ASSIGNED.finditer(line)
    )


def _kind_of_address(data: bytes, strict: bool, tokens: bool = False) -> str:
    """Find an address with a password; `strict` leaves out what only stands for a password."""
    if b"://" not in data or b"@" not in data:
        return ""
    for value in _passwords(data, tokens):
        if not UNSET.match(value) and not (strict and IN_WORDS.match(value)):
            return IN_URL
    return ""


def _passwords(data: bytes, tokens: bool) -> Iterator[bytes]:
    for pattern in (URL, TOKEN_URL) if tokens else (URL,):
        for line in data.splitlines():
            if not line.lstrip().startswith((b"#", b"//", b";")):
                for match in pattern.finditer(line):
                    yield match.group("password")
