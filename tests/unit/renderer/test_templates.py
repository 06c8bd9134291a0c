"""Test Jinja as this project uses it: strict, sandboxed, with the lines of templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.errors import Problem, RenderError
from imagegen.renderer.marks import Mark, split_marks
from imagegen.renderer.templates import Templates

if TYPE_CHECKING:
    from unit.conftest import Overlay


def failure(overlay: Overlay, text: str) -> Problem:
    overlay.write("dockerfiles/x.j2", text)
    with pytest.raises(RenderError) as caught:
        Templates(overlay.payload).render("x.j2", {"release": object()}, "imagegen/x:1")
    (problem,) = caught.value.problems
    return problem


def test_every_instruction_remembers_its_template_line(overlay: Overlay) -> None:
    overlay.write("dockerfiles/x.j2", "# one\nRUN a \\\n    b\nENV C=d\nCOPY a b\nWORKDIR /\n")
    text = Templates(overlay.payload).render("x.j2", {}, "")
    assert split_marks(text) == (
        "# one\nRUN a \\\n    b\nENV C=d\nCOPY a b\nWORKDIR /",
        (Mark("x.j2", 2), Mark("x.j2", 5), Mark("x.j2", 6)),
    )


def test_an_instruction_of_a_macro_is_at_the_line_that_calls_it(overlay: Overlay) -> None:
    overlay.write("dockerfiles/m.j2", "{% macro go(x) %}\nRUN {{ x }}\n{% endmacro %}")
    overlay.write("dockerfiles/x.j2", '{% import "m.j2" as m %}\n\n{{ m.go("a") }}\n')
    text, marks = split_marks(Templates(overlay.payload).render("x.j2", {}, ""))
    assert text.strip() == "RUN a"
    assert marks == (Mark("x.j2", 3),)


def test_an_instruction_in_a_condition_counts_only_where_it_is_rendered(overlay: Overlay) -> None:
    overlay.write("dockerfiles/x.j2", "{% if yes %}\nRUN a\n{% endif %}\nRUN b\n")
    templates = Templates(overlay.payload)
    assert split_marks(templates.render("x.j2", {"yes": False}, ""))[1] == (Mark("x.j2", 4),)


def test_an_instruction_behind_a_tag_on_its_line_counts_too(overlay: Overlay) -> None:
    overlay.write("dockerfiles/x.j2", "RUN a\n{% if yes %}RUN b\n{% endif %}RUN c\n")
    templates = Templates(overlay.payload)
    text, marks = split_marks(templates.render("x.j2", {"yes": True}, ""))
    assert text == "RUN a\nRUN b\nRUN c"
    assert marks == (Mark("x.j2", 1), Mark("x.j2", 2), Mark("x.j2", 3))
    without = split_marks(templates.render("x.j2", {"yes": False}, ""))
    assert without == ("RUN a\nRUN c", (Mark("x.j2", 1), Mark("x.j2", 3)))


def test_what_a_release_does_not_have_is_an_error_with_the_line(overlay: Overlay) -> None:
    problem = failure(overlay, "# fine\nRUN x {{ release.colour }}\n")
    assert problem.text == "'object object' has no attribute 'colour'"
    assert problem.file.endswith("dockerfiles/x.j2")
    assert problem.line == 2
    assert problem.evidence == ("while rendering `imagegen/x:1`",)
    assert problem.hint == (
        "correct the template, or add what it asks for to the component's release"
    )


def test_a_syntax_error_has_its_line(overlay: Overlay) -> None:
    problem = failure(overlay, "\n\n{% if %}\n")
    assert problem.file.endswith("x.j2")
    assert problem.line == 3


@pytest.mark.parametrize(
    "text",
    [
        "{{ release.__class__.__mro__ }}",
        "{{ ''.__class__ }}",
        "{{ missing }}",
        "{{ 1 / 0 }}",
        "{% include 'nowhere.j2' %}",
    ],
)
def test_a_template_that_goes_wrong_is_an_error_of_the_template(
    overlay: Overlay, text: str
) -> None:
    assert failure(overlay, f"\n{text}\n").hint


def test_a_template_that_is_not_there_is_only_absent(overlay: Overlay) -> None:
    templates = Templates(overlay.payload)
    assert templates.has("components/alpha/install.j2")
    assert not templates.has("components/alpha/build.j2")


def test_a_template_that_does_not_parse_is_no_absent_one(overlay: Overlay) -> None:
    overlay.template("alpha", "{% if %}", kind="build")
    with pytest.raises(RenderError):
        Templates(overlay.payload).has("components/alpha/build.j2")
