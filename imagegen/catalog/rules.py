"""Read the rules that warnings and refusals name: what each says, why, and its source.

Each rule is a file, `dockerfiles/rules/<name>.yaml`. A text names it at its end: `(rule
two-nccls)`.
"""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, cast

from imagegen.config import schemas
from imagegen.config.payload import RULES_FOLDER, shown
from imagegen.config.schema_check import check_schema
from imagegen.config.yamlfile import load
from imagegen.errors import ConfigError, Problem
from imagegen.model.catalog import Rule, rules_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from imagegen.catalog.data import RuleData
    from imagegen.config.payload import Payload

_YAML = ".yaml"

PAGE = """\
# Rules

What decides which versions go together, and what warnings mean. A warning ends with the name of its
rule, so does the reason of a refusal; `imagegen catalog --rule NAME` prints one.

Each rule is a file of `dockerfiles/rules`; `make generated` writes this page.
"""


def rule_names(payload: Payload) -> tuple[str, ...]:
    """List the names of all rules, sorted."""
    files = payload.names(RULES_FOLDER)
    return tuple(name.removesuffix(_YAML) for name in files if name.endswith(_YAML))


def read_rules(payload: Payload) -> tuple[Rule, ...]:
    """Read all rules, sorted by name.

    Raises ConfigError with every problem of every file.
    """
    rules: list[Rule] = []
    problems: list[Problem] = []
    for name in rule_names(payload):
        path = payload.find(f"{RULES_FOLDER}/{name}{_YAML}")
        if path is None:
            continue
        try:
            document = load(path, shown(path))
        except ConfigError as error:
            problems += error.problems
            continue
        wrong = check_schema(document, schemas.RULE)
        problems += wrong
        if not wrong:
            data = cast("RuleData", document.data)
            rules.append(Rule(name, data["what"], data["why"], tuple(data["source"])))
    if problems:
        raise ConfigError(*problems)
    return tuple(rules)


def unknown_rules(named: Iterable[tuple[str, str, int]], known: Iterable[str]) -> Iterator[Problem]:
    """Report each rule that a text names and that has no file; a text comes with file and line."""
    names = {*known}
    for text, file, line in named:
        for name in rules_named(text):
            if name not in names:
                wrong = f"names the rule `{name}`, which does not exist"
                hint = f"add {RULES_FOLDER}/{name}{_YAML}, or correct the name"
                yield Problem(wrong, file, line, hint=hint)


def as_page(rules: Iterable[Rule]) -> str:
    """Write the page docs/rules.md."""
    parts = [PAGE]
    for rule in rules:
        sources = ", ".join(f"<{one}>" if "://" in one else f"`{one}`" for one in rule.source)
        why = fill(rule.why, 120, break_long_words=False, break_on_hyphens=False)
        parts.append(f"## {rule.name}\n\n{rule.what}\n\n{why}\n\nSource: {sources}\n")
    return "\n".join(parts)
