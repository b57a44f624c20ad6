"""`if`, `while` and `for` as calls of `words`, which decide what runs.

    if x.sum() > 0:                   def _tg_then1():
        y = x                             nonlocal y
    else:                    ->           y = x
        y = -x                        def _tg_else1():
                                          nonlocal y
                                          y = -x
                                      words.branch(x.sum() > 0, _tg_then1, _tg_else1, <Branch>)

Bodies become functions inside of the function, which share its variables: so whatever decides finds
them in the cells of these functions.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from ..runtime.records import record
from .conditions import Conditions, is_truth, on_line, word
from .exits import Exits, is_flag
from .source import NotRewritten
from .variables import (
    Liveness,
    attributes,
    bound,
    declared,
    kept,
    parameters,
    read,
    updated,
    varying,
)

SPEC = "\0what tgraph knows of statement "
_CERTAIN = ("isinstance", "issubclass", "hasattr", "callable")
_GENERATES = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)


@record(eq=False)
class Branch:
    """What is known of an `if`: the variables that it binds, those among them that are read later,
    its test, and the lines of its branches."""

    bound: tuple[str, ...]
    live: tuple[str, ...]
    test: str
    lines: tuple[int, int]


@record(eq=False)
class Loop:
    """What is known of a loop.

    `live` are the bound variables that are read behind it, `carried` those that a turn reads of the
    turn before as well; `varying` get other values than constants, `updated` none but by `+=` and
    the like; `breaks` is the flag that ends it, if anything does. `header` is its first line.
    """

    bound: tuple[str, ...]
    live: tuple[str, ...]
    carried: tuple[str, ...]
    varying: frozenset[str]
    updated: frozenset[str]
    breaks: str
    header: str


class Statements:
    """Writes one function anew."""

    def __init__(self, definition: Any, specs: list[Any], left: dict[int, str]) -> None:
        self.specs, self.left = specs, left
        self._count = 0
        if isinstance(definition, ast.Lambda):
            definition.body = self._conditions(definition).visit(definition.body)
            return
        inner = _inner_functions(definition)
        self.inner = {each.name for each in inner}
        self.changed_inside = declared(inner, ast.Nonlocal)
        for each in inner:
            self._inner(each)
        self.globals = declared(definition.body, ast.Global)
        Exits().function(definition)
        self.kept = declared(definition.body, ast.Nonlocal)  # behind the function, too
        given = parameters(definition)
        Liveness(kept(definition)).block(definition.body, set())
        self.locals = (set(bound(definition.body)) | set(given)) - self.globals
        self.expressions = self._conditions(definition)
        names = [
            each for each in bound(definition.body) if each in self.locals - self.kept - set(given)
        ]
        body = self._block(definition.body)
        if names:  # bound here, whatever function inside it is that does it
            never = ast.parse("if 0: pass").body[0]
            assert isinstance(never, ast.If)
            never.body = [ast.Assign([ast.Name(each, ast.Store()) for each in names], _none())]
            ast.copy_location(never, body[0])
            for inner in ast.walk(never):
                ast.copy_location(inner, body[0])
            body = _behind_docstring(body, ast.fix_missing_locations(never))
        definition.body = body

    def _inner(self, definition: Any) -> None:
        """Write a function inside of this one anew, too, unless that cannot be done."""
        before = copy.deepcopy(definition.body)
        try:
            if generates(definition):
                raise NotRewritten("it is a generator or asynchronous")
            Statements(definition, self.specs, self.left)
        except NotRewritten as error:
            definition.body = before
            lines = range(definition.lineno, definition.end_lineno + 1)
            self.left.update(dict.fromkeys(lines, f"`{definition.name}`: {error}"))

    def _conditions(self, definition: Any) -> Conditions:
        first = definition.args.posonlyargs + definition.args.args
        made = Conditions(first[0].arg if first else None)
        made.left = self.left
        return made

    # --- blocks ---

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for each in statements:
            if isinstance(each, ast.Global | ast.Nonlocal):
                found.insert(0, each)
            elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                found += self._annotated(each)
            elif isinstance(each, ast.If):
                found += self._if(each)
            elif isinstance(each, ast.While):
                found += self._while(each)
            elif isinstance(each, ast.For):
                found += self._for(each)
            else:
                found.append(self._other(each))
        return found

    def _annotated(self, node: ast.AnnAssign) -> list[ast.stmt]:
        """`y: Tensor = x` without its annotation, which a variable from outside cannot have."""
        if node.value is None:
            return []
        return [self._other(ast.copy_location(ast.Assign([node.target], node.value), node))]

    def _other(self, node: Any) -> ast.stmt:
        """A statement that stays; its expressions and the blocks inside do not."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return node  # type: ignore[no-any-return]
        if isinstance(node, ast.Assert):
            self.left[node.lineno] = "an `assert`: return the condition, and assert it outside"
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self._block(value))
            elif isinstance(value, list):
                setattr(node, name, [self._part(each) for each in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self._part(value))
        return node  # type: ignore[no-any-return]

    def _part(self, node: Any) -> Any:
        if isinstance(node, ast.ExceptHandler | ast.match_case):
            return self._other(node)
        return self.expressions.visit(node) if isinstance(node, ast.AST) else node

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _function(
        self, name: str, body: list[ast.stmt], binds: Sequence[str], like: Any,
        arguments: Sequence[str] = (),
    ) -> ast.stmt:  # fmt: skip
        """A function inside of this one, which binds variables of it."""
        made = ast.parse(f"def {name}({', '.join(arguments)}): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        head: list[ast.stmt] = []
        for kind, names in (
            (ast.Nonlocal, [each for each in binds if each in self.locals]),
            (ast.Global, [each for each in binds if each in self.globals]),
        ):
            if names:
                head.append(ast.copy_location(kind(names), like))
        inner = [each for each in body if not isinstance(each, ast.Global | ast.Nonlocal)]
        for each in ast.walk(made):
            ast.copy_location(each, like)
        made.body = [*head, *inner] or [ast.copy_location(ast.Pass(), like)]
        return ast.fix_missing_locations(made)

    def _spec(self, spec: Any) -> ast.expr:
        self.specs.append(spec)
        return ast.Constant(f"{SPEC}{len(self.specs) - 1}")

    def _names(self, nodes: Sequence[ast.AST]) -> list[str]:
        """What statements bind, also by functions inside that they call, and attributes."""
        names = bound(nodes)
        if self.changed_inside and read(*nodes) & self.inner:
            names.update(dict.fromkeys(sorted(self.changed_inside)))
        own = [each for each in names if each in self.locals | self.globals]
        return [*own, *attributes(nodes)]

    # --- statements ---

    def _if(self, node: Any) -> list[ast.stmt]:
        spec_test, is_certain = ast.unparse(node.test), _is_certain(node.test)
        test = self.expressions.truth(node.test)
        if is_certain:
            node.test = test
            node.body, node.orelse = self._block(node.body), self._block(node.orelse)
            return [node]
        number, found = self._number(), []
        names = self._names([*node.body, *node.orelse])
        parts: list[ast.expr] = []
        for name, block in (("then", node.body), ("else", node.orelse)):
            if not block:
                parts.append(_none())
                continue
            binds = self._names(block)
            function = f"_tg_{name}{number}"
            found.append(self._function(function, self._block(block), binds, block[0]))
            parts.append(ast.Name(function, ast.Load()))
        is_last = getattr(node, "is_last", False)
        behind = self.kept if is_last else node.live
        live = tuple(each for each in names if each in behind or "." in each)
        lines = [block[0].lineno if block else 0 for block in (node.body, node.orelse)]
        spec = self._spec(Branch(tuple(names), live, spec_test, (lines[0], lines[1])))
        call = word("result" if is_last else "branch", [test, *parts, spec], node)
        made = ast.Return(call) if is_last else ast.Expr(call)
        return [*found, on_line(made, node)]

    def _while(self, node: Any) -> list[ast.stmt]:
        number, header = self._number(), f"while {ast.unparse(node.test)}:"
        names = self._names([node.test, *node.body])
        spec = self._spec(self._loop(node, names, [node.test, *node.body], header))
        of_test = self._names([node.test])
        test = self.expressions.truth(node.test)
        asks: list[ast.stmt] = [ast.copy_location(ast.Return(test), node)]
        binds = self._names(node.body)
        made = [
            self._function(f"_tg_test{number}", asks, of_test, node),
            self._function(f"_tg_body{number}", self._block(node.body), binds, node),
        ]
        functions = [ast.Name(f"_tg_{each}{number}", ast.Load()) for each in ("test", "body")]
        call = word("while_", [*functions, spec], node)
        return [*made, on_line(ast.Expr(call), node)]

    def _for(self, node: Any) -> list[ast.stmt]:
        number = self._number()
        header = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}:"
        names = self._names([node.target, *node.body])
        spec = self._spec(self._loop(node, names, [node.target, *node.body], header))
        iterable = self.expressions.iterable(node.iter)
        targets = self._names([node.target])
        value = f"_tg_value{number}"
        store = ast.Assign([node.target], ast.Name(value, ast.Load()))
        assigns: list[ast.stmt] = [ast.copy_location(store, node)]
        binds = self._names(node.body)
        over, loop = f"_tg_over{number}", f"_tg_loop{number}"
        found = [
            self._function(f"_tg_next{number}", assigns, targets, node, [value]),
            self._function(f"_tg_body{number}", self._block(node.body), binds, node),
        ]
        template = (
            f"{over} = 0\n{loop} = 0\nfor {value} in {loop}.rest:\n if {loop}.turn({value}): break"
        )
        first, second, third = ast.parse(template).body
        assert isinstance(first, ast.Assign)
        assert isinstance(second, ast.Assign)
        first.value = iterable
        functions = [ast.Name(f"_tg_{each}{number}", ast.Load()) for each in ("next", "body")]
        second.value = word("For", [ast.Name(over, ast.Load()), *functions, spec], node)
        for statement in (first, second, third):
            for each in ast.walk(statement):
                if hasattr(each, "lineno") and not _is_below(each, iterable):
                    on_line(each, node)
            found.append(ast.fix_missing_locations(statement))
        return found

    def _loop(self, node: Any, names: Sequence[str], parts: Sequence[ast.AST], header: str) -> Loop:
        live = tuple(each for each in names if each in node.live or "." in each)
        head = {*live, *node.head, node.breaks}
        carried = tuple(each for each in names if each in head)
        flags = {each for each in names if is_flag(each)}
        return Loop(
            tuple(names), live, carried, frozenset(varying(parts) | flags),
            frozenset(updated(parts)), node.breaks, header,
        )  # fmt: skip


def _is_below(node: ast.AST, root: ast.AST) -> bool:
    return any(node is each for each in ast.walk(root))


def _none() -> ast.expr:
    return ast.Constant(None)


def _behind_docstring(body: list[ast.stmt], statement: ast.stmt) -> list[ast.stmt]:
    first = body[0]
    has = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    declared_ = 0
    while declared_ < len(body) and isinstance(body[declared_], ast.Global | ast.Nonlocal):
        declared_ += 1
    at = 1 if has and isinstance(first.value.value, str) else declared_  # type: ignore[attr-defined]
    return [*body[:at], statement, *body[at:]]


def _inner_functions(node: ast.AST) -> list[Any]:
    """The functions that are defined right below, not those in them or in classes."""
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(child)
        elif not isinstance(child, ast.ClassDef):
            found += _inner_functions(child)
    return found


def generates(definition: ast.AST) -> bool:
    """Whether a function is a generator or asynchronous."""
    if isinstance(definition, ast.AsyncFunctionDef):
        return True
    waiting = list(ast.iter_child_nodes(definition))
    while waiting:
        each = waiting.pop()
        if isinstance(each, _GENERATES):
            return True
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(each)
    return False


def _is_certain(test: ast.expr) -> bool:
    """Whether a test gives a bool of Python's, by how it is written."""
    if isinstance(test, ast.Compare):
        asks_number = any(map(is_truth, (test.left, *test.comparators)))
        return not asks_number and all(isinstance(each, ast.Is | ast.IsNot) for each in test.ops)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_certain(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(map(_is_certain, test.values))
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
        return test.func.id in _CERTAIN
    return isinstance(test, ast.Constant)
