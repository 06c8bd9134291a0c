"""Test that each remedy which `validate` prints corrects its finding and breaks nothing else.

Each check that an animal of the zoo makes fail is a case: its image is broken, the printed remedy
is done, and `validate` runs again. See remedy_trial.py for what "done" means for each kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from remedy_trial import cases, short_cases, tried

from validate.remedy import BUILD, LAUNCH, SHELL

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from remedy_trial import Case
    from zoo_keeper import Zoo

CASES = cases()
SHORT = short_cases(CASES)


def short_or_long(case: Case) -> ParameterSet:
    marks = () if case in SHORT else (pytest.mark.long,)
    return pytest.param(case, marks=marks, id=f"{case.animal.name}-{case.check}")


@pytest.mark.parametrize("case", [short_or_long(case) for case in CASES])
def test_what_a_remedy_says_heals_and_breaks_nothing(zoo: Zoo, case: Case) -> None:
    trial = tried(zoo, case)
    assert trial.healed, trial
    assert trial.worse == [], trial


def test_every_kind_that_can_be_tried_here_is() -> None:
    assert {case.kind for case in SHORT} == {SHELL, LAUNCH, BUILD}
    assert len(CASES) >= 80
