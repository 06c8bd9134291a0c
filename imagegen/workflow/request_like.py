"""The first stages of `imagegen request --like`: read an image, find the nearest request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.engine import client
from imagegen.engine.images.inventory import inventory
from imagegen.inspection.found import find_components
from imagegen.request.arguments import parse
from imagegen.request.like import nearest_request
from imagegen.request.like_report import Like
from imagegen.workflow.image_name import image_of

if TYPE_CHECKING:
    from imagegen.workflow.project import Project
    from imagegen.workflow.request import RequestOptions


def read_like(options: RequestOptions, project: Project) -> Like:
    """Read an image of the engine, of any maker, and find the request that is nearest to it.

    The arguments of the user win over what is in the image. Raises ConfigError for wrong ones,
    NothingSelectedError where there is no such image, and EngineError.
    """
    given = parse(options.arguments, project.catalog)
    engine = client.connect()
    local = image_of(engine, options.like, options.overlay)
    read = inventory(engine, local.id, sizes=False)
    found = find_components(read, project.catalog)
    unknown = options.allow_unknown
    nearest = nearest_request(found, given, project.catalog, allow_unknown=unknown)
    return Like(options.like, found, nearest, read.missing)
