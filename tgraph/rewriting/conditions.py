"""Operators that ask for the truth of their operands, as calls of `words`.

`a and b`, `a or b`, `not a`, `a < b < c`, `a if c else b`: what Python evaluates only sometimes
becomes a lambda.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

WORDS = "\0words of tgraph"
"""Stands for the module `words` until the code is made."""

_BUILTINS = ("max", "min", "int", "float", "bool", "complex", "type")
_ITERABLES = ("range", "enumerate", "zip", "reversed")


def word(name: str, arguments: list[ast.expr], like: ast.AST) -> Any:
    """A call of a function in `words`."""
    function = ast.Attribute(ast.Constant(WORDS), name, ast.Load())
    return on_line(ast.Call(function, arguments, []), like)


def on_line(node: Any, like: Any) -> Any:
    """`node` at the beginning of `like`: Python names the last line of a call, not the first."""
    ast.copy_location(node, like)
    node.end_lineno, node.end_col_offset = node.lineno, node.col_offset + 1
    return ast.fix_missing_locations(node)


def _later(body: ast.expr) -> ast.Lambda:
    nothing = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(nothing, body), body)


def is_truth(node: ast.AST) -> bool:
    """Whether an expression is written out as True or False."""
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _binds(node: ast.AST) -> bool:
    """Whether an expression binds a variable of the user's."""
    named = (each.target.id for each in ast.walk(node) if isinstance(each, ast.NamedExpr))
    return any(not each.startswith("_tg_") for each in named)


class Conditions(ast.NodeTransformer):
    """Rewrites expressions; `left` are lines on which one stays as it is, and why."""

    def __init__(self, first_parameter: str | None) -> None:
        self.first_parameter = first_parameter
        self.left: dict[int, str] = {}
        self._count = 0
        self._in_iterable = False

    def _left(self, node: Any) -> Any:
        self.left[node.lineno] = "`:=` stands in an operand that is evaluated only sometimes"
        return node

    def _comprehension(self, node: Any) -> Any:
        what = "a comprehension, which can be a `for` loop"
        self.left.update(dict.fromkeys(range(node.lineno, node.end_lineno + 1), what))
        self.generic_visit(node)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """A value; of a test, which `truth` visits, only the truth is asked."""
        names = ("last_of", "either")
        return self._of_bools(node, names, self.visit)

    def truth(self, node: Any) -> Any:
        """An expression of which only the truth is asked."""
        if isinstance(node, ast.BoolOp):
            return self._of_bools(node, ("and_", "or_"), self.truth)
        return self.visit(node)

    def _of_bools(
        self, node: ast.BoolOp, names: tuple[str, str], visit: Callable[[ast.expr], Any]
    ) -> Any:
        node.values = [visit(each) for each in node.values]
        if any(map(_binds, node.values[1:])):
            return self._left(node)
        name = names[0] if isinstance(node.op, ast.And) else names[1]
        return word(name, [node.values[0], *map(_later, node.values[1:])], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if not isinstance(node.op, ast.Not):
            self.generic_visit(node)
            return node
        return word("not_", [self.truth(node.operand)], node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        node.test = self.truth(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        if _binds(node.body) or _binds(node.orelse):
            return self._left(node)
        return word("choice", [node.test, _later(node.body), _later(node.orelse)], node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """A chain compares neighbours, and evaluates each operand once."""
        self.generic_visit(node)
        if len(node.ops) == 1:
            return self._compared(node)
        if self._in_iterable or any(map(_binds, node.comparators)):
            return self._left(node)
        left = node.left
        parts: list[ast.expr] = []
        for at, (operator, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            given: ast.expr = right
            if at + 1 < len(node.ops):
                given = self._named(right)
            part = ast.copy_location(ast.Compare(left, [operator], [given]), node)
            parts.append(self._compared(part))
            if isinstance(given, ast.NamedExpr):
                left = ast.Name(given.target.id, ast.Load())
        found: ast.expr = parts[-1]
        for part in reversed(parts[:-1]):
            found = word("and_", [part, _later(found)], node)
        return ast.fix_missing_locations(found)

    def _named(self, node: ast.expr) -> ast.NamedExpr:
        """An operand that is read once more, by the name that it gets."""
        self._count += 1
        return ast.NamedExpr(ast.Name(f"_tg_compared{self._count}", ast.Store()), node)

    def _compared(self, node: ast.Compare) -> ast.expr:
        """`is True` and `in` ask numbers for what those of the graph do not have."""
        (operator,), (right,) = node.ops, node.comparators
        if isinstance(operator, ast.Is | ast.IsNot):
            if not any(is_truth(each) for each in (node.left, right)):
                return node
            made: ast.expr = word("same", [node.left, right], node)
            return word("not_", [made], node) if isinstance(operator, ast.IsNot) else made  # type: ignore[no-any-return]
        if not isinstance(operator, ast.In | ast.NotIn) or self._in_iterable:
            return node
        found, container = self._named(node.left), self._named(right)
        names = [ast.Name(each.target.id, ast.Load()) for each in (found, container)]
        asked = word("contains", [names[0], container], node)
        if isinstance(operator, ast.NotIn):
            asked = word("not_", [asked], node)
        plain = ast.Compare(names[0], [operator], [right])
        test = word("carries", [found], node)
        made = ast.IfExp(test, asked, plain)
        return on_line(made, node)  # type: ignore[no-any-return]

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        before, self._in_iterable = self._in_iterable, True
        node.iter = self.visit(node.iter)
        self._in_iterable = before
        node.ifs = [self.truth(each) for each in node.ifs]
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        """`super()` of a function is that of a function inside of it, too."""
        self.generic_visit(node)
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super"
        if is_super and not (node.args or node.keywords) and self.first_parameter:
            given = [ast.Name("__class__", ast.Load()), ast.Name(self.first_parameter, ast.Load())]
            node.args = [ast.copy_location(each, node) for each in given]
        is_builtin = isinstance(node.func, ast.Name) and node.func.id in _BUILTINS
        if not is_builtin or not node.args:
            return node
        made = word("call", [node.func, *node.args], node)
        made.keywords = node.keywords
        return made

    def iterable(self, node: ast.expr) -> Any:
        """What a `for` loop goes over: `range(n)` and the like may be given tensors."""
        is_known = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if not is_known or node.func.id not in _ITERABLES:  # type: ignore[attr-defined]
            return self.visit(node)
        assert isinstance(node, ast.Call)
        node.args = [self.iterable(each) for each in node.args]
        for each in node.keywords:
            each.value = self.visit(each.value)
        made = word("over", [node.func, *node.args], node)
        made.keywords = node.keywords
        return made

    def visit_FunctionDef(self, node: Any) -> Any:
        return node  # a function of its own

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.body = self.visit(node.body)
        return node
