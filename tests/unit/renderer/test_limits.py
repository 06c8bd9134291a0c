"""Test the limits of templates: what does too much ends at once, and the same way each time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from imagegen.errors import Problem, RenderError
from imagegen.renderer.templates import Templates

if TYPE_CHECKING:
    from pathlib import Path

    from unit.conftest import Overlay

DOUBLE = (
    "{{% set ns = namespace(x={start}, y={start}) %}}{{% for i in range(60) %}}{step}{{% endfor %}}"
)


def doubling(start: str, *steps: str) -> str:
    step = "".join(f"{{% set ns.{one} %}}" for one in steps)
    return DOUBLE.format(start=start, step=step)


LARGE = {
    "times": "{{ 'x' * 10**10 }}",
    "times, from the right": "{{ 10**10 * 'x' }}",
    "list times": "{{ [1, release] * 10**9 }}",
    "power": "{{ 2 ** 100000000 }}",
    "product": "{{ 10**900 * 10**900 }}",
    "format filter": "{{ '%1000000000d'|format(1) }}",
    "format with a star": "{{ '%*d'|format(10**9, 1) }}",
    "percent": "{{ '%1000000000d' % 1 }}",
    "precision": "{{ '%.1000000000f' % 1 }}",
    "many fields": "{{ '%(a)s' * 1000 % {'a': 'x' * 100000} }}",
    "center": "{{ 'x'|center(10**9) }}",
    "center by map": "{{ ['x']|map('center', 10**9)|join }}",
    "center by a block": "{% filter center(10**9) %}x{% endfilter %}",
    "indent": "{{ ('a\\n' * 10000)|indent(10**6) }}",
    "indent with a word": "{{ ('a\\n' * 10000)|indent('x' * 10000) }}",
    "wordwrap": "{{ ('a b ' * 10000)|wordwrap(1, true, 'x' * 10000) }}",
    "replace": "{{ ('a' * 10000)|replace('', 'b' * 10000) }}",
    "replace of a text": "{{ ('a' * 10000).replace('a', 'b' * 10000) }}",
    "join": "{{ range(10000)|join('x' * 10000) }}",
    "join of a text": "{{ ('x' * 10000).join(range(1000)|map('string')) }}",
    "batch": "{{ [1]|batch(10**9, 'x')|list }}",
    "slice": "{{ [1]|slice(10**9, 'x')|list }}",
    "tojson": "{{ [1, [2]]|tojson(indent=10**9) }}",
    "doubled text": doubling("'xx'", "x = ns.x ~ ns.x"),
    "doubled sum": doubling("'xx'", "x = ns.x + ns.x"),
    "doubled list": doubling("[1]", "x = ns.x + ns.x"),
    "nested list": doubling("[1]", "x = [ns.x, ns.x]"),
    "nested mapping": doubling("1", "x = {'a': ns.x, 'b': ns.x}"),
    "nested by dict": doubling("1", "x = dict(a=ns.x, b=ns.x)"),
    "compared": doubling("[1]", "x = [ns.x, ns.x]", "y = [ns.y, ns.y]") + "{{ ns.x == ns.y }}",
    "one output": "{{ 'x' * 600000 }}{{ 'y' * 600000 }}",
}

LONG = {
    "loops": "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
    "loops in a macro": (
        "{% macro m() %}{% for b in range(9999) %}{% endfor %}{% endmacro %}"
        "{% for a in range(9999) %}{% set x = m() %}{% endfor %}"
    ),
    "literal text": "{% for a in range(9999) %}" + "y" * 9999 + "{% endfor %}",
    "literal text, kept": (
        "{% for a in range(9999) %}{% set q %}" + "y" * 9999 + "{% endset %}{% endfor %}"
    ),
    "included text": "{% for a in range(99) %}{% include 'long.j2' %}{% endfor %}",
    "map": "{{ range(100000)|map('string')|map('center', 999)|list|length }}",
    "filters": "{% for a in range(9999) %}{% set q = range(9999)|sort %}{% endfor %}",
}

DEEP = {
    "macro": "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}",
    "two macros": (
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}"
    ),
    "loop": "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "block": "{% block a %}{{ self.a() }}{% endblock %}",
    "blocks": "{% for a in [1] %}" * 25 + "{% endfor %}" * 25,
    "conditions": "{% if 1 %}" * 200 + "{% endif %}" * 200,
}

RECURSIVE = ["{% include 'x.j2' %}", "{% extends 'x.j2' %}", "{% import 'x.j2' as y %}"]


def failure(overlay: Overlay, text: str) -> Problem:
    """Render a text twice; both have to fail in the same words, at the second line."""
    overlay.write("dockerfiles/x.j2", f"one\n{text}\n")
    overlay.write("dockerfiles/long.j2", "y" * 200_000)
    templates, begun = Templates(overlay.payload), time.monotonic()
    found = []
    for _ in range(2):
        with pytest.raises(RenderError) as caught:
            templates.render("x.j2", {"release": object()}, "imagegen/x:1")
        (problem,) = caught.value.problems
        found.append(problem)
    assert found[0] == found[1]
    assert time.monotonic() - begun < 20
    assert found[0].file.endswith(".j2")
    return found[0]


@pytest.mark.parametrize("kind", LARGE)
def test_what_is_too_large_is_not_made(kind: str, overlay: Overlay) -> None:
    assert "too large" in failure(overlay, LARGE[kind]).text or kind in (
        "format filter",
        "format with a star",
        "percent",
        "precision",
    )


@pytest.mark.parametrize("kind", LONG)
def test_what_takes_too_long_ends_by_its_count(kind: str, overlay: Overlay) -> None:
    problem = failure(overlay, LONG[kind])
    assert problem.text == "the template does more than 10000000 steps"
    assert "limits.py" in problem.hint


@pytest.mark.parametrize("kind", DEEP)
def test_what_calls_itself_is_told_with_its_line(kind: str, overlay: Overlay) -> None:
    problem = failure(overlay, DEEP[kind])
    assert "deep" in problem.text
    assert problem.line == 2


@pytest.mark.parametrize("text", RECURSIVE)
def test_a_template_that_includes_itself_is_told(text: str, overlay: Overlay) -> None:
    assert "does one include itself?" in failure(overlay, text).text


@pytest.mark.parametrize(
    "text",
    [
        "{% include 'none.j2' %}",
        "{% import 'none.j2' as x %}",
        "{% from 'none.j2' import x %}",
        "{% extends 'none.j2' %}",
    ],
)
def test_a_missing_template_is_told_with_who_asks_for_it(text: str, overlay: Overlay) -> None:
    problem = failure(overlay, text)
    assert (problem.text, problem.line) == ("there is no template `none.j2`", 2)


@pytest.mark.parametrize(
    "text",
    [
        "{{ [1, 2]|random }}",
        "{{ lipsum() }}",
        "{{ release }}",
        "{{ release ~ '' }}",
        "{{ [release]|join }}",
        "{{ 'x'.upper }}",
        "{{ '%s'|format(release) }}",
    ],
)
def test_chance_and_addresses_are_in_no_recipe(text: str, overlay: Overlay) -> None:
    assert failure(overlay, text).line == 2


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'x'.center(9) }}",
        "{{ 'x'.zfill(9) }}",
        "{{ '{:9}'.format(1) }}",
        "{{ 'x'['ljust'](9) }}",
        "{{ ('x'|attr('expandtabs'))(9) }}",
        "{{ (1).to_bytes(9, 'big') }}",
        "{{ {}.fromkeys([1]) }}",
    ],
)
def test_methods_that_make_much_of_little_are_closed(text: str, overlay: Overlay) -> None:
    assert "is unsafe" in failure(overlay, text).text


def test_usual_templates_are_not_limited(overlay: Overlay) -> None:
    overlay.write(
        "dockerfiles/x.j2",
        "{% for name, version in {'b': 1, 'a': 2}|dictsort %}{{ name ~ '=' ~ version }} "
        "{% endfor %}{{ ['b', 'a']|sort|join(', ') }} {{ 'ab' * 2 }} {{ 3 * 4 - 2 }} "
        "{{ '%5s|%-3d|' % ('a', 3) }} {{ 'a,b'.split(',')[1] }} {{ [1, given] }} {{ 2 ** 10 }} "
        "{{ 'x'|center(3) }}|{{ 'a.b'.replace('.', '-') }} {{ given|default('no') }}",
    )
    text = Templates(overlay.payload).render("x.j2", {"given": "v"}, "")
    assert text == "a=2 b=1 a, b abab 10     a|3  | b [1, 'v'] 1024  x |a-b v"


def test_the_limit_is_of_each_rendering(overlay: Overlay) -> None:
    overlay.write("dockerfiles/x.j2", "{% for a in range(9999) %}{{ a }}{% endfor %}")
    templates = Templates(overlay.payload)
    assert len({templates.render("x.j2", {}, "") for _ in range(12)}) == 1


def test_a_template_that_is_a_link_to_elsewhere_is_refused(
    overlay: Overlay, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("root:x:0")
    (overlay.root / "dockerfiles/y.j2").symlink_to(tmp_path / "secret")
    overlay.write("dockerfiles/x.j2", "{% include 'y.j2' %}")
    with pytest.raises(RenderError, match="leads out of its folder"):
        Templates(overlay.payload).render("x.j2", {}, "")


def test_a_template_without_end_is_refused(overlay: Overlay) -> None:
    (overlay.root / "dockerfiles/x.j2").symlink_to("/dev/zero")
    assert not Templates(overlay.payload).has("x.j2")
    (overlay.root / "dockerfiles/x.j2").unlink()
    overlay.write("dockerfiles/x.j2", "y" * 1_000_001)
    with pytest.raises(RenderError, match="has 1000001 bytes, 1000000 are allowed"):
        Templates(overlay.payload).has("x.j2")


def test_a_line_of_many_tags_is_read_fast(overlay: Overlay) -> None:
    overlay.write("dockerfiles/x.j2", "{% if 1 %}{% endif %}" * 40 + "x")
    begun = time.monotonic()
    assert Templates(overlay.payload).render("x.j2", {}, "") == "x"
    assert time.monotonic() - begun < 5
