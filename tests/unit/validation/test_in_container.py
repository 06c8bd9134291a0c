"""Test what is reported if `validate` cannot run to its end in a container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

from imagegen.errors import EngineError, ValidationError
from imagegen.validation import in_container as validation

if TYPE_CHECKING:
    from imagegen.engine.containers.containers import Container


class Refusing:
    """Stand for a container that runs at the first look and accepts no command."""

    def __init__(self, later: bool) -> None:
        self._looks = iter((True, later))

    def alive(self) -> bool:
        return next(self._looks)

    def make_folder(self, path: str) -> None:
        assert path == validation.REPORT_FOLDER

    def exec(self, *_: Any, **__: Any) -> NoReturn:
        raise EngineError.of("could not run `validate` in the container")

    def logs(self) -> str:
        return "gone"


def run_in(container: Refusing) -> object:
    request = validation.ValidationRequest()
    own = cast("Container", container)
    return validation._run(own, "an-image", request, lambda _: ("validate",), print)


def test_a_container_that_dies_before_the_command_starts_is_the_image_s_fault() -> None:
    with pytest.raises(ValidationError, match="died before `validate` ended") as caught:
        run_in(Refusing(later=False))
    assert "gone" in str(caught.value)


def test_a_container_that_runs_and_takes_no_command_is_the_engine_s_fault() -> None:
    with pytest.raises(EngineError, match="could not run `validate`"):
        run_in(Refusing(later=True))
