"""Define the environment of templates: Jinja's sandbox, with the limits of `limits`.

The calls that count are put into the tree of a template before it is compiled.
"""

from __future__ import annotations

from functools import cache, wraps
from types import MethodType
from typing import TYPE_CHECKING, cast

from jinja2 import TemplateSyntaxError, nodes, pass_context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from imagegen.renderer.limits import (
    MOST_CALLS_DEEP,
    MOST_NESTED,
    TURN,
    Budget,
    TooMuch,
    check_filter,
    check_operation,
    items_of,
    size_of,
    small,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2.runtime import Context

WITHOUT = ("random", "pprint", "urlize", "xmlattr")
"""Filters that templates do not have: chance, and what HTML needs."""

_OF_TEXT = """
capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit isidentifier
islower isnumeric isspace istitle isupper join lower lstrip partition removeprefix removesuffix
replace rfind rindex rpartition rsplit rstrip split splitlines startswith strip swapcase title upper
"""
_METHODS: tuple[tuple[type, frozenset[str]], ...] = (
    (str, frozenset(_OF_TEXT.split())),
    (dict, frozenset({"copy", "get", "items", "keys", "values"})),
    (list, frozenset({"copy", "count", "index"})),
    (tuple, frozenset({"count", "index"})),
    (bytes, frozenset()),
    (int, frozenset()),
    (float, frozenset({"is_integer"})),
)
"""The methods that templates may call; the others can make much of little."""


@cache
def _methods_of(kind: type) -> frozenset[str] | None:
    """Return the methods that templates may call of a built-in type; None for other types."""
    return next((methods for one, methods in _METHODS if issubclass(kind, one)), None)


@pass_context
def _finalize(context: Context, value: object) -> object:
    text = value if type(value) is str else text_of(value)
    cast("Sandbox", context.environment).budget.charge(len(text))
    return value if isinstance(value, str) else text


class Sandbox(ImmutableSandboxedEnvironment):
    """Compiles and renders templates that can do little, and each time the same."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, **options: object) -> None:
        super().__init__(finalize=_finalize, **options)
        self.budget = Budget()
        self._safe: dict[tuple[type, str], bool] = {}
        del self.globals["lipsum"]
        for name, function in [*self.filters.items()]:
            self.filters[name] = self._guarded(name, function)
        for name in WITHOUT:
            del self.filters[name]

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        return self._counted(tree)

    def _generate(
        self,
        source: nodes.Template,
        name: str | None,
        filename: str | None,
        defer_init: bool = False,
    ) -> str:
        """Compute what is constant for free: that happens only once for all renderings."""
        self.budget.compiling += 1
        try:
            return super()._generate(source, name, filename, defer_init)
        finally:
            self.budget.compiling -= 1

    def _counted(self, tree: nodes.Template) -> nodes.Template:
        """Put a call into a template, each loop and each macro, and around what makes lists."""
        _check_nesting(tree, 0)
        for node in tree.find_all((nodes.For, nodes.Macro, nodes.CallBlock)):
            assert isinstance(node, (nodes.For, nodes.Macro, nodes.CallBlock))
            node.body.insert(0, self._count("turn", node))
        tree.body.insert(0, self._count("begin", tree))
        _Replace(self).visit(tree)
        return tree

    def _count(self, name: str, around: nodes.Node) -> nodes.ExprStmt:
        literal = sum(len(one.data) for one in around.find_all(nodes.TemplateData))
        call = self.calling(name, [nodes.Const(literal, lineno=around.lineno)], around.lineno)
        return nodes.ExprStmt(call, lineno=around.lineno).set_environment(self)  # type: ignore[return-value]

    def calling(self, name: str, arguments: list[nodes.Expr], line: int) -> nodes.Call:
        """Make a call of a method of this class for the tree of a template."""
        method = nodes.EnvironmentAttribute(name, lineno=line)
        call = nodes.Call(method, arguments, [], None, None, lineno=line)
        return call.set_environment(self)  # type: ignore[return-value]

    def turn(self, literal: int) -> None:
        """Count a turn of a loop, or a call of a macro, with the text in it."""
        self.budget.charge(TURN + literal)

    def begin(self, literal: int) -> None:
        """Count a template that is begun."""
        self.budget.begin_template(TURN + literal)

    def glue(self, *values: object) -> str:
        """Join texts, as `~` does."""
        texts = [text_of(value) for value in values]
        self._pay(texts)
        return "".join(texts)

    def made(self, value: object) -> object:
        """Check a list or a mapping that a template makes."""
        self._pay(value)
        return value

    def _pay(self, value: object) -> None:
        small(value)
        self.budget.charge(TURN + size_of(value))

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        """Compute an operation, if its result is not too large."""
        check_operation(operator, left, right)
        made = super().call_binop(context, operator, left, right)
        self._pay(made)
        return made

    def call(__self, __context: Context, __obj: object, *args: object, **named: object) -> object:
        """Call a macro, a method, or one of the calls that count."""
        if isinstance(__obj, MethodType) and __obj.__self__ is __self:
            made: object = __obj(*args)
            return made
        budget = __self.budget
        args = __self._checked_call(__obj, args)
        if budget.deep >= MOST_CALLS_DEEP:
            raise TooMuch(f"calls are more than {MOST_CALLS_DEEP} deep: does a macro call itself?")
        budget.deep += 1
        try:
            made = super().call(__context, __obj, *args, **named)
        finally:
            budget.deep -= 1
        __self._pay(made)
        return made

    def _checked_call(self, function: object, args: tuple[object, ...]) -> tuple[object, ...]:
        """Check the two methods of a text that can make much of little."""
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        if not isinstance(owner, str) or name not in ("join", "replace") or not args:
            return args
        if name == "replace":
            check_filter("replace", owner, args, {})
            return args
        items = items_of(args[0])
        check_filter("join", items, (owner,), {})
        return (items, *args[1:])

    def getattr(self, obj: object, attribute: str) -> object:
        """Return an attribute, if it is not a method that can make much of little."""
        if self._is_closed(obj, attribute):
            return self.unsafe_undefined(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: object, argument: object) -> object:
        """Return an item, or an attribute as `getattr` does."""
        is_key = isinstance(obj, dict) and argument in obj
        if isinstance(argument, str) and not is_key and self._is_closed(obj, argument):
            return self.unsafe_undefined(obj, argument)
        return super().getitem(obj, argument)

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        """Say whether templates may read an attribute; it depends on the type of the object."""
        key = (type(obj), attr)
        if key not in self._safe:
            self._safe[key] = super().is_safe_attribute(obj, attr, value)
        return self._safe[key]

    def _is_closed(self, obj: object, name: str) -> bool:
        methods = _methods_of(type(obj))  # type: ignore[arg-type]
        return methods is not None and name not in methods and hasattr(obj, name)

    def _guarded(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        """Make a filter that refuses what would be too large, and counts what it makes."""
        first = 1 if hasattr(function, "jinja_pass_arg") else 0

        @wraps(function)
        def guarded(*args: object, **named: object) -> object:
            given, value, rest = args[:first], args[first], args[first + 1 :]
            if name == "join":
                value = items_of(value)
            check_filter(name, value, rest, named)
            made = function(*given, value, *rest, **named)
            self._pay(made)
            return made

        return guarded


class _Replace:
    """Replaces in the tree of a template what makes texts and lists without a call."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def visit(self, node: nodes.Node) -> nodes.Node:
        for name, value in [*node.iter_fields()]:
            if isinstance(value, list):
                made = [self.visit(one) if isinstance(one, nodes.Node) else one for one in value]
                setattr(node, name, made)
            elif isinstance(value, nodes.Node):
                setattr(node, name, self.visit(value))
        return self._replaced(node)

    def _replaced(self, node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.Concat):
            return self._sandbox.calling("glue", node.nodes, node.lineno)
        makes = isinstance(node, (nodes.List, nodes.Dict)) or (
            isinstance(node, nodes.Tuple) and node.ctx == "load"
        )
        if makes and not _is_constant(node):
            return self._sandbox.calling("made", [node], node.lineno)  # type: ignore[list-item]
        return node


def _is_constant(node: nodes.Node) -> bool:
    return all(
        isinstance(one, (nodes.Const, nodes.Pair)) and _is_constant(one)
        for one in node.iter_child_nodes()
    )


_BLOCKS = (nodes.For, nodes.If, nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.With)


def _check_nesting(node: nodes.Node, deep: int) -> None:
    """Raise TemplateSyntaxError for blocks too deep in one another.

    Jinja compiles twice as long for each loop in a loop; Python refuses the twentieth.
    """
    deep += isinstance(node, _BLOCKS)
    if deep > MOST_NESTED:
        text = f"blocks are more than {MOST_NESTED} deep in one another"
        raise TemplateSyntaxError(text, node.lineno)
    for one in node.iter_child_nodes():
        _check_nesting(one, deep)
