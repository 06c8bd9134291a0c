"""Run `validate --static` in a new image, before its tag moves: the gate of a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.validation.in_container import ValidationRequest, stop, validate_image

if TYPE_CHECKING:
    from collections.abc import Callable

    from imagegen.engine.client import Engine
    from imagegen.model.validation import ValidationRecord


class Gate:
    """Validate new images, several at a time; `stop` ends all of these validations."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._containers: set[str] = set()

    def judge(self, image_id: str, on_line: Callable[[str], None]) -> ValidationRecord:
        """Run the static suites in an image; raises the errors of `validate_image`."""
        request = ValidationRequest(static=True, look_into_layers=False)
        return validate_image(self._engine, image_id, request, on_line, self._containers.add)

    def stop(self) -> None:
        """Stop all validations that run now; their calls of `judge` then raise an error."""
        for container in list(self._containers):
            stop(self._engine, container)
