"""`imagegen request --like` asks for what is in an image of any maker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.engine import client
from imagegen.engine.images.inventory import inventory
from imagegen.errors import NothingSelectedError
from imagegen.inspection.found import find_components
from imagegen.request.arguments import parse
from imagegen.request.like import nearest_request
from imagegen.request.like_report import Like
from imagegen.workflow.image_name import image_of
from imagegen.workflow.project import Project
from imagegen.workflow.request import request

if TYPE_CHECKING:
    from imagegen.console.console import Console
    from imagegen.workflow.request import Answered, RequestOptions


def request_like(image: str, options: RequestOptions, console: Console) -> Answered:
    """Answer the request that is nearest to an image; the arguments win over what is in it.

    Raises NothingSelectedError where there is no such image, or nothing known in it; EngineError,
    and what `request` does.
    """
    catalog = Project(options.overlay).catalog
    given = parse(options.arguments, catalog)
    engine = client.connect()
    local = image_of(engine, image, options.overlay)
    read = inventory(engine, local.id, sizes=False)
    found = find_components(read, catalog)
    nearest = nearest_request(found, given, catalog, allow_unknown=options.allow_unknown)
    if not nearest.constraints:
        text = f"nothing in `{image}` is known to the catalog"
        raise NothingSelectedError.of(text, evidence=read.missing, hint="name it: `torch=any`")
    like = Like(image, found, nearest, given, read.missing)
    return request(replace(options, arguments=nearest.arguments), console, like)
