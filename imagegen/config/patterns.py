"""Define the patterns of texts in matrix, component and OS files, with words for users.

Values are data: every string that can reach a Dockerfile has a pattern that allows no newline,
quote, `$`, backtick or shell operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from imagegen.model import constraint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.config.schema_check import Schema

NAME = r"^[a-z][a-z0-9-]*$"
USER = r"^[a-z_][a-z0-9_-]{0,31}$"
"""The name of an account, as `useradd` of every distribution takes it (useradd(8))."""
VARIANT = r"^[a-z][a-z0-9.-]*$"
OS_ID = r"^[a-z]+[0-9.]+$"
PACKAGE = r"^[a-z0-9][a-z0-9.+_-]*$"
PACKAGE_VERSION = r"^[0-9A-Za-z*][0-9A-Za-z.+:~*_-]*$"
PATH = r"^/[A-Za-z0-9._/+-]*$"
RELATIVE = r"^[A-Za-z0-9_][A-Za-z0-9._/-]*$"
ENV_NAME = r"^[A-Z][A-Z0-9_]*$"
OWN_ENV_NAME = r"^(?!PATH$)[A-Z][A-Z0-9_]*$"
"""The variables that a matrix may set; `PATH` is set by the components."""
ENV_VALUE = r"^[A-Za-z0-9._/:,=+^-]*$"
TEXT = r"^[^\x00-\x1f\x7f]+$"
TAG = r"^[a-z0-9][a-z0-9._/-]*:[A-Za-z0-9_{][A-Za-z0-9._{}-]*$"
IMAGE = r"^[a-z0-9][a-z0-9._/:@-]*$"
COLUMN = r"^[a-z][a-z0-9_]*$"
SHA256 = r"^([0-9a-f]{64}|unverified)$"
URL = r"^(https?|file)://[A-Za-z0-9._~:/?#@!&=+%,-]+$"
WAY = r"^[a-z][a-z0-9+-]*$"
"""The name of a transport or an acceleration of a launch, such as `rdma+gdr`."""
WARNING = r"^([^{}\x00-\x1f\x7f]|\{own\}|\{release\}|\{component\}|\{other\})+$"
"""What a user reads: `{own}` is what a release brings, `{other}` what the image has."""
DIGITS = r"^[0-9]+$"
NUMBER = r"^[0-9]+(\.[0-9]+)?$"
POSITIVE = r"^[1-9][0-9]*$"
FACTOR = r"^[1-9][0-9]*(\.[0-9]+)?$"
INTEGER = r"^-?[0-9]+$"
DIGIT = r"^[0-9]$"
LETTERS = r"^[a-z]+$"
MODULE = r"^[a-z_]+$"
CAPABILITY = r"^[A-Z_]+$"
NUMBERS = r"^[0-9.]+$"
GLIBC = r"^2\.[0-9]+$"
VERSION = r"^[0-9A-Za-z*][0-9A-Za-z.+:~*_ -]*$"
SHORT_WORD = r"^[A-Za-z0-9][A-Za-z0-9.+_ -]*$"
SETTING = r"^[A-Z][A-Z0-9_]*=([A-Za-z0-9._:/,^-]|\{iface\}|\{gpus_per_node\}|\{first_node\})+$"
GLOB = r"^[A-Za-z0-9*/][A-Za-z0-9._+*/?\[\]-]*$"
ONE_GROUP = r"^[^()]*\([^()]+\)[^()]*$"
SIZE = r"^[0-9]+(\.[0-9]+)? (MB|GB)$"
CONSTRAINT = constraint.PATTERN
PAGE_SIZE = r"^[1-9][0-9]*[MG]i$"
RESOURCE = r"^[a-z0-9][a-z0-9.-]*/[A-Za-z0-9][A-Za-z0-9._-]*$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"

IN_WORDS: Mapping[str, tuple[str, str]] = {
    NAME: ("a name of small letters, digits and `-`", "my-name"),
    USER: ("the name of an account: small letters, digits, `_` and `-`, at most 32", "mpiuser"),
    VARIANT: ("a name of small letters, digits, `.` and `-`", "a-variant"),
    OS_ID: ("the name and version of an OS", "debian12"),
    PACKAGE: ("the name of a package", "libibverbs1"),
    PACKAGE_VERSION: ("the version of a package", "1.2.3-1"),
    PATH: ("an absolute path", "/opt/mpi/bin"),
    RELATIVE: ("a relative path", "dockerfiles/files"),
    ENV_NAME: ("the name of a variable", "NCCL_DEBUG"),
    OWN_ENV_NAME: ("the name of a variable other than PATH", "NCCL_DEBUG"),
    ENV_VALUE: ("a value without spaces, quotes and `$`", "INFO"),
    TEXT: ("text in one line, without control characters", "a mirror of our own"),
    TAG: ("the name of an image with a tag", "team/cpu:{os}-torch{torch}"),
    IMAGE: ("the name of an image", "debian:bookworm-slim"),
    COLUMN: ("a name of small letters, digits and `_`", "built_with"),
    SHA256: ("a sha256 of 64 small hexadecimal digits, or `unverified`", "unverified"),
    URL: ("an address", "https://example.org/a.tar.gz"),
    WAY: ("a name of small letters, digits, `+` and `-`", "fast+direct"),
    WARNING: ("text with the fields own, release, component and other", "two: {own}, {other}"),
    DIGITS: ("a number of digits alone", "64"),
    NUMBER: ("a number", "1.5"),
    POSITIVE: ("a number from 1 on", "10"),
    FACTOR: ("a number of 1 or more", "1.2"),
    INTEGER: ("a number without a fraction", "-1"),
    DIGIT: ("one digit", "5"),
    LETTERS: ("a word of small letters", "memlock"),
    MODULE: ("the name of a module", "probe"),
    CAPABILITY: ("the name of a capability", "IPC_LOCK"),
    NUMBERS: ("a version of digits and dots", "22.04"),
    GLIBC: ("a version of glibc", "2.36"),
    VERSION: ("a version", "1.13.1"),
    SHORT_WORD: ("a short word", "cog"),
    SETTING: ("a variable with a value", "NCCL_SOCKET_IFNAME={iface}"),
    GLOB: ("a name with wildcards", "libnccl.so.*"),
    ONE_GROUP: ("a regular expression with one group", "(.+)"),
    SIZE: ("a size in MB or GB", "4.5 GB"),
    PAGE_SIZE: ("a size of huge pages", "1Gi"),
    RESOURCE: ("a resource of Kubernetes", "example.org/device"),
    DATE: ("a date", "2027-01-31"),
    CONSTRAINT: ("a version, or a constraint on versions", ">=1.11,<1.13"),
}
"""What a pattern means, and an example."""


def text_of(pattern: str) -> Schema:
    """Make the schema of a text with a pattern."""
    return {"type": "string", **form_of(pattern)}


def map_of(keys: str, values: Schema) -> Schema:
    """Make the schema of a mapping with any keys of one pattern."""
    return {"type": "object", "propertyNames": form_of(keys), "additionalProperties": values}


def form_of(pattern: str) -> Schema:
    """Make the keywords of a pattern, with its words for users."""
    words, example = IN_WORDS[pattern]
    return {"pattern": pattern, "description": words, "examples": [example]}


def object_of(required: tuple[str, ...], **properties: Schema) -> Schema:
    """Make the schema of a mapping with known keys."""
    known: Schema = {"type": "object", "required": list(required), "properties": properties}
    return {**known, "additionalProperties": False}


def list_of(items: Schema, least: int = 0) -> Schema:
    """Make the schema of a list with at least so many entries."""
    return {"type": "array", "items": items, "minItems": least}


def properties_of(schema: Schema) -> Mapping[str, Schema]:
    """Return the keys that the schema of a mapping knows, each with its own schema."""
    return cast("Mapping[str, Schema]", schema["properties"])
