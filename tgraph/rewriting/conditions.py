"""Operators that ask for the truth of their operands, as calls of `words`.

`a and b`, `a or b`, `not a`, `a < b < c`, `a if c else b`: what Python evaluates only sometimes
becomes a lambda.
"""

from __future__ import annotations

import ast
from typing import Any

WORDS = "\0words of tgraph"
"""Stands for the module `words` until the code is made."""

_OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift",
    ast.RShift: "rshift", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert",
}  # fmt: skip
_BUILTINS = ("max", "min", "abs", "int", "float")


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
        self.generic_visit(node)
        if any(map(_binds, node.values[1:])):
            return self._left(node)
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return word(name, [node.values[0], *map(_later, node.values[1:])], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return word("not_", [node.operand], node)
        if isinstance(node.operand, ast.Constant):
            return node
        return word("computed", [ast.Constant(_OPERATORS[type(node.op)]), node.operand], node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return self.operator(node)

    def operator(self, node: ast.BinOp) -> ast.expr:
        """An operator, of whose result is known whether it stands for a number."""
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            return node
        name = ast.Constant(_OPERATORS[type(node.op)])
        return word("computed", [name, node.left, node.right], node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        if _binds(node.body) or _binds(node.orelse):
            return self._left(node)
        return word("choice", [node.test, _later(node.body), _later(node.orelse)], node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """A chain compares neighbours, and evaluates each operand once."""
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        if self._in_iterable or any(map(_binds, node.comparators)):
            return self._left(node)
        left = node.left
        parts: list[ast.expr] = []
        for at, (operator, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            given = right
            if at + 1 < len(node.ops):
                self._count += 1
                name = f"_tg_compared{self._count}"
                given = ast.NamedExpr(ast.Name(name, ast.Store()), right)
            parts.append(ast.copy_location(ast.Compare(left, [operator], [given]), node))
            if given is not right:
                left = ast.Name(name, ast.Load())
        found: ast.expr = parts[-1]
        for part in reversed(parts[:-1]):
            found = word("and_", [part, _later(found)], node)
        return ast.fix_missing_locations(found)

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        before, self._in_iterable = self._in_iterable, True
        node.iter = self.visit(node.iter)
        self._in_iterable = before
        node.ifs = [self.visit(each) for each in node.ifs]
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        """`super()` of a function is that of a function inside of it, too."""
        self.generic_visit(node)
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super"
        if is_super and not (node.args or node.keywords) and self.first_parameter:
            given = [ast.Name("__class__", ast.Load()), ast.Name(self.first_parameter, ast.Load())]
            node.args = [ast.copy_location(each, node) for each in given]
        is_builtin = isinstance(node.func, ast.Name) and node.func.id in _BUILTINS
        if not is_builtin or any(isinstance(each, ast.Starred) for each in node.args):
            return node
        made = word("call", [node.func, *node.args], node)
        made.keywords = node.keywords
        return made

    def visit_FunctionDef(self, node: Any) -> Any:
        return node  # a function of its own

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.body = self.visit(node.body)
        return node
