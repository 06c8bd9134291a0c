"""Define the JSON schema of `launch` in a component file: what a launch adds for it."""

from __future__ import annotations

from imagegen.config.patterns import (
    CONSTRAINT,
    DIGITS,
    ENV_NAME,
    NAME,
    NUMBER,
    PAGE_SIZE,
    PATH,
    RESOURCE,
    SETTING,
    SHORT_WORD,
    TEXT,
    WAY,
)
from imagegen.config.patterns import list_of as _list
from imagegen.config.patterns import map_of as _map
from imagegen.config.patterns import object_of as _object
from imagegen.config.patterns import text_of as _text

_CONSTRAINT = _text(CONSTRAINT)
_REASON = {"why": _text(TEXT), "without": _text(TEXT), "source": _text(TEXT)}
_REASONS = ("why", "without", "source")
LAUNCH_FLAG = _object(("flag", *_REASONS), flag=_list(_text(TEXT), 1), **_REASON)

LAUNCH = _object(
    (),
    transports=_list(_text(WAY), 1),
    accels=_list(_text(WAY), 1),
    default={"type": "boolean"},
    replaces=_list(_text(WAY), 1),
    host_network={"type": "boolean"},
    devices={"type": "boolean"},
    mpi_over_tcp={"type": "boolean"},
    privileged=_object(_REASONS, **_REASON),
    hugepages=_object(
        ("size", "per_gpu", "more", *_REASONS),
        size=_text(PAGE_SIZE),
        per_gpu=_text(DIGITS),
        more=_text(DIGITS),
        **_REASON,
    ),
    mounts=_list(
        _object(
            ("name", "host", "path", *_REASONS),
            name=_text(NAME),
            host=_text(PATH),
            path=_text(PATH),
            **_REASON,
        )
    ),
    resource=_text(RESOURCE),
    variables=_list(
        _object(
            ("set", *_REASONS),
            set=_text(SETTING),
            **_REASON,
            before=_text(ENV_NAME),
            transport=_text(WAY),
            several_nodes={"type": "boolean"},
            only=_map(NAME, _CONSTRAINT),
        )
    ),
    settings=_list(
        _object(
            ("name", "option", "kind", "default", "means", "source"),
            name=_text(ENV_NAME),
            option=_text(SHORT_WORD),
            kind={"enum": ["flag", "count", "share"]},
            default=_text(NUMBER),
            means=_text(TEXT),
            source=_text(TEXT),
            least=_text(NUMBER),
            most=_text(NUMBER),
            of=_text(ENV_NAME),
        )
    ),
    benchmark=_list(LAUNCH_FLAG),
    script=_text(PATH),
    program=_text(PATH),
    pmi=_map(CONSTRAINT, _text(NAME)),
    starters=_list(
        _object(
            ("form", "versions", "program", "style"),
            form=_text(NAME),
            versions=_CONSTRAINT,
            program=_list(_text(TEXT), 1),
            style=_text(NAME),
        )
    ),
)
