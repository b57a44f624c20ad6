"""Which variables statements bind, and which of them are read behind a branch or loop."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound(nodes: Iterable[ast.AST]) -> dict[str, None]:
    """The names that statements bind or delete in their own scope, in order."""
    found: dict[str, None] = {}
    for each in nodes:
        _Bound(found).visit(each)
    return found


class _Bound(ast.NodeVisitor):
    def __init__(self, found: dict[str, None]) -> None:
        self.found = found
        self._inner = False

    def visit_Name(self, node: ast.Name) -> None:
        if not self._inner and not isinstance(node.ctx, ast.Load):
            self.found[node.id] = None

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.found[node.target.id] = None  # also in a comprehension
        self.visit(node.value)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        before, self._inner = self._inner, True
        self.visit(node.target)
        self._inner = before
        for each in (node.iter, *node.ifs):
            self.visit(each)

    def visit_FunctionDef(self, node: Any) -> None:
        self.found[node.name] = None
        for each in (*node.decorator_list, node.args):
            self.visit(each)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.found[node.name] = None
        for each in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(each)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)

    def visit_alias(self, node: ast.alias) -> None:
        self.found[node.asname or node.name.partition(".")[0]] = None

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.found[node.name] = None
        self.generic_visit(node)

    def visit_MatchAs(self, node: Any) -> None:
        if node.name:
            self.found[node.name] = None
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.found[node.rest] = None
        self.generic_visit(node)


def dotted(node: ast.AST) -> str:
    """`self.cell.h` as a text; empty for anything else than attributes of a variable."""
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else dotted(node.value)
        return owner and f"{owner}.{node.attr}"
    return ""


def attributes(nodes: Sequence[ast.AST]) -> dict[str, None]:
    """The attributes that statements assign to, of objects that they do not choose themselves."""
    own, found = bound(nodes), {}
    waiting = list(nodes)
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load):
            name = dotted(each)
            if name and name.partition(".")[0] not in own:
                found[name] = None
        if not isinstance(each, (*_FUNCTIONS, ast.ClassDef)):
            waiting += ast.iter_child_nodes(each)
    return found


def declared(nodes: Iterable[ast.AST], kind: type) -> set[str]:
    """The names of `global` or `nonlocal` statements."""
    walked = (each for node in nodes for each in ast.walk(node))
    return {name for each in walked if isinstance(each, kind) for name in each.names}  # type: ignore[attr-defined]


def read(*nodes: ast.AST | None) -> set[str]:
    """The names that are read somewhere below, those of functions inside among them."""
    return {
        each.id
        for node in nodes
        if node is not None
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }


def parameters(definition: Any) -> list[str]:
    args = definition.args
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return [each.arg for each in every if each is not None]


def kept(definition: Any) -> set[str]:
    """What functions inside read, at whatever time they are called."""
    inner = [
        each
        for each in ast.walk(definition)
        if isinstance(each, (*_FUNCTIONS, ast.ClassDef, ast.GeneratorExp))
        and each is not definition
    ]
    outer = declared(definition.body if isinstance(definition.body, list) else [], ast.Nonlocal)
    return read(*inner) | outer


def varying(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that are given something else than a constant."""
    nodes = list(nodes)
    found = {*bound(nodes), *attributes(nodes)}
    constant: set[str] = set()
    other: set[str] = set()
    for each in (inner for node in nodes for inner in ast.walk(node)):
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant):
            constant |= {target.id for target in each.targets if isinstance(target, ast.Name)}
        elif isinstance(each, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr | ast.For):
            other |= set(bound([each]))
    return found - (constant - other)


def updated(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that are bound by `+=` and the like alone: what they hold may change in place."""
    found, other = set(), set()
    for node in nodes:
        for each in ast.walk(node):
            if isinstance(each, ast.AugAssign):
                found |= {*bound([each.target]), dotted(each.target)}
            elif isinstance(each, ast.stmt):
                names = [each for each in ast.iter_child_nodes(each) if isinstance(each, ast.expr)]
                other |= {*bound(names), *attributes(names)}
    return found - other


class Liveness:
    """Notes on every `if` and loop below which variables are read behind it: `live`.

    On loops also those that a turn may read of the turn before: `head`.
    """

    def __init__(self, always: set[str]) -> None:
        self.always = always

    def block(self, statements: Sequence[ast.stmt], behind: set[str]) -> set[str]:
        """What is read before the block is run, if `behind` is read after it."""
        live = behind
        for each in reversed(statements):
            live = self._statement(each, live)
        return live

    def _statement(self, node: Any, behind: set[str]) -> set[str]:
        if isinstance(node, ast.Return):
            return read(node.value) | self.always
        if isinstance(node, ast.If):
            node.live = behind | self.always  # type: ignore[attr-defined]
            return read(node.test) | self.block(node.body, behind) | self.block(node.orelse, behind)
        if isinstance(node, ast.While | ast.For):
            return self._loop(node, behind)
        if isinstance(node, ast.With):
            inner = self.block(node.body, behind)
            return (inner - set(bound(node.items))) | read(*node.items)
        if isinstance(node, ast.Try | ast.TryStar | ast.Match):
            every = behind | read(node)  # it may be left anywhere
            self._within(node, every)
            return every
        if isinstance(node, ast.Raise):
            return read(node) | self.always
        if isinstance(node, ast.Delete):  # which asks whether they are there
            return behind | read(node) | set(bound(node.targets))
        is_function = isinstance(node, (*_FUNCTIONS, ast.ClassDef))
        gone = {node.name} if is_function else _overwritten(node)
        more = {node.target.id} if _adds(node) else set()
        return (behind - gone) | read(node) | more

    def _loop(self, node: Any, behind: set[str]) -> set[str]:
        is_for = isinstance(node, ast.For)
        targets = set(bound([node.target])) if is_for else set()
        around = behind | (set() if is_for else read(node.test))
        if node.breaks:
            around = around | {node.breaks}
        head = around
        while True:
            inner = self.block(node.body, head) - targets
            if inner <= head:
                break
            head = head | inner
        node.live, node.head = behind | self.always, head | self.always
        return head | (read(node.iter) if is_for else set())

    def _within(self, node: ast.AST, every: set[str]) -> None:
        for field in ("body", "orelse", "finalbody"):
            self.block(getattr(node, field, ()), every)
        for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.block(each.body, every)


def _overwritten(node: ast.AST) -> set[str]:
    """What a simple statement binds whatever it was before."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    elif isinstance(node, ast.Import | ast.ImportFrom):
        return set(bound([node]))
    else:
        return set()
    return set(bound(targets))


def _adds(node: ast.AST) -> bool:
    return isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
