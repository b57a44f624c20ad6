"""Blocks that are left at their end alone.

`return`, `break` and `continue` leave a block from its middle, which the body of a branch or loop
of a graph cannot do. Here the rest of a block moves into the branches that come to it:

    if c: return a          if c: return a
    b = f(a)         ->     else:
    return b                    b = f(a)
                                return b

In loops, and in `with`, `try` and `match`, an exit becomes a flag that is set, which is asked
behind them. So an `if` that leaves its block stands last in it, and has `is_last` where both of its
branches return from the function.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from .source import NotRewritten

RETURNS, RETURNED = "_tg_returns", "_tg_returned"
BREAKS, SKIPS = "_tg_breaks", "_tg_skips"
_MOST = 50_000
_LOOPS = (ast.While, ast.For)
_OPAQUE = (ast.With, ast.Try, ast.TryStar, ast.Match)
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def is_flag(name: str) -> bool:
    """Whether a variable says that a block has been left."""
    return name.startswith((RETURNS, BREAKS, SKIPS)) and name != RETURNED


class _Propagated(ast.Return):
    """A return whose value is set already."""


def _exits(node: ast.stmt) -> set[str]:
    """How a statement may leave the block that it stands in."""
    if isinstance(node, ast.Return):
        return {"return"}
    if isinstance(node, ast.Break):
        return {"break"}
    if isinstance(node, ast.Continue):
        return {"continue"}
    if isinstance(node, _INNER):
        return set()
    found = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            found |= _exits(child)  # type: ignore[arg-type]
    if isinstance(node, _LOOPS):
        behind = [_exits(each) for each in node.orelse]
        found = (found & {"return"}).union(*behind)
    return found


class _Place:
    """The block whose statements are written: of the function, of a loop, or of another one."""

    def __init__(self, kind: str, loop: int = 0, number: int = 0) -> None:
        self.kind, self.loop, self.number = kind, loop, number

    @property
    def is_function(self) -> bool:
        return self.kind == "function"

    def leave(self, node: ast.stmt) -> list[ast.stmt]:
        """What stands in the place of an exit."""
        if isinstance(node, ast.Return):
            return self._return(node)
        if isinstance(node, ast.Break):
            return [_set(f"{BREAKS}{self.loop}", node)]
        return [] if self.kind == "loop" else [_set(f"{SKIPS}{self.number}", node)]

    def _return(self, node: ast.Return) -> list[ast.stmt]:
        is_set = isinstance(node, _Propagated)
        if self.is_function:
            value: ast.expr | None = _name(RETURNED) if is_set else node.value
            return [_at(ast.Return(value), node)]
        found: list[ast.stmt] = []
        if not is_set:
            value = node.value or ast.Constant(None)
            found += [_at(ast.Assign([_stored(RETURNED)], value), node), _set(RETURNS, node)]
        if self.kind == "loop":
            found.append(_set(f"{BREAKS}{self.loop}", node))
        return found


class Exits:
    """Moves the exits of one function."""

    def __init__(self) -> None:
        self._count = 0
        self._written = 0

    def function(self, definition: Any) -> None:
        """The body of a definition, whose paths all end in a `return`."""
        body = self._block(definition.body, _Place("function"))
        definition.body = body or [ast.copy_location(ast.Pass(), definition)]

    def _block(self, statements: Sequence[ast.stmt], place: _Place) -> list[ast.stmt]:
        """The statements of a block; nothing stands behind one that leaves it."""
        found: list[ast.stmt] = []
        for at, each in enumerate(statements):
            self._written += 1
            if self._written > _MOST:
                raise NotRewritten("it has too many ways out of its branches")
            rest = statements[at + 1 :]
            if isinstance(each, ast.Return | ast.Break | ast.Continue):
                return found + place.leave(each)
            if isinstance(each, ast.Raise):
                return [*found, each]
            exits = _exits(each)
            if isinstance(each, ast.If) and (exits or _ends(each)):
                return [*found, self._if(each, rest, place)]
            if isinstance(each, (*_LOOPS, *_OPAQUE)):
                made, behind = self._compound(each, exits, place)
                found += made
                if behind:
                    return found + self._block([*behind, *rest], place)
            else:
                found += self._simple(each, place)
        if place.is_function:
            found.append(_at(ast.Return(None), statements[-1]))
        return found

    def _if(self, node: ast.If, rest: Sequence[ast.stmt], place: _Place) -> ast.If:
        """An `if` that takes what stands behind it into its branches."""
        both = not _always_leaves(node.body) and not _always_leaves(node.orelse)
        made = ast.copy_location(ast.If(node.test, [], []), node)
        copied = copy.deepcopy(list(rest)) if both else rest
        made.body = self._block([*node.body, *copied], place) or [_pass(node)]
        behind = [*node.orelse, *rest]
        if not behind and place.is_function:
            behind = [_at(ast.Return(None), node)]
        made.orelse = self._block(behind, place)
        made.is_last = place.is_function  # type: ignore[attr-defined]
        return made

    def _simple(self, node: ast.stmt, place: _Place) -> list[ast.stmt]:
        if isinstance(node, ast.If):
            inner = _Place("plain", place.loop, place.number)
            node.body = self._block(node.body, inner)
            node.orelse = self._block(node.orelse, inner)
        return [node]

    def _compound(
        self, node: Any, exits: set[str], place: _Place
    ) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """The statement, with what goes before it, and what is asked behind it."""
        self._count += 1
        number = self._count
        if isinstance(node, ast.While) and _binds(node.test):
            node, exits = _asking_inside(node), exits | {"break"}
        before: list[ast.stmt] = []
        behind: list[ast.stmt] = []
        if isinstance(node, _LOOPS):
            leaves = {each for child in node.body for each in _exits(child)}
            body = self._block(node.body, _Place("loop", number))
            made = copy.copy(node)
            made.body, made.orelse = body or [_pass(node)], []
            made.breaks = ""  # type: ignore[union-attr]
            if leaves & {"break", "return"}:
                made.breaks = f"{BREAKS}{number}"  # type: ignore[union-attr]
                before.append(_set(made.breaks, node, False))  # type: ignore[union-attr]
            if "return" in leaves:
                before.append(_set(RETURNS, node, False))
                behind.append(_when(RETURNS, [_at(_Propagated(None), node)], node))
            if node.orelse and made.breaks:  # type: ignore[union-attr]
                ask = ast.UnaryOp(ast.Not(), _name(made.breaks))  # type: ignore[union-attr]
                behind.append(_at(ast.If(ask, node.orelse, []), node))
            else:
                behind += node.orelse
            return [*before, made], behind
        is_try = isinstance(node, ast.Try | ast.TryStar) and exits
        if is_try and (node.orelse or any(_exits(each) for each in node.finalbody)):
            raise NotRewritten(
                f"line {node.lineno}: a try with an else or a finally is left from inside"
            )
        inner = _Place("opaque", place.loop, number)
        made = copy.copy(node)
        for field in ("body", "orelse", "finalbody"):
            if getattr(node, field, None):
                setattr(made, field, self._block(getattr(node, field), inner) or [_pass(node)])
        for field in ("handlers", "cases"):
            parts = [copy.copy(each) for each in getattr(node, field, ())]
            for part in parts:
                part.body = self._block(part.body, inner) or [_pass(node)]
            if parts:
                setattr(made, field, parts)
        if "return" in exits:
            before.append(_set(RETURNS, node, False))
            behind.append(_when(RETURNS, [_at(_Propagated(None), node)], node))
        if "break" in exits:
            behind.append(_when(f"{BREAKS}{place.loop}", [_at(ast.Break(), node)], node))
        if "continue" in exits:
            before.append(_set(f"{SKIPS}{number}", node, False))
            behind.append(_when(f"{SKIPS}{number}", [_at(ast.Continue(), node)], node))
        return [*before, made], behind


def _binds(node: ast.AST) -> bool:
    return any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))


def _asking_inside(node: ast.While) -> ast.While:
    """`while (n := f(x)): ...` as `while True: if not (n := f(x)): break; ...`."""
    if node.orelse:
        raise NotRewritten(f"line {node.lineno}: the test of a while loop with an else binds names")
    leaves = _at(ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], []), node.test)
    return ast.copy_location(ast.While(ast.Constant(True), [leaves, *node.body], []), node)


def _ends(node: ast.If) -> bool:
    """Whether a branch ends in an error: what stands behind belongs to the other one."""
    return _always_leaves(node.body) or _always_leaves(node.orelse)


def _always_leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether a block is never come to the end of."""
    for each in statements:
        if isinstance(each, ast.Return | ast.Break | ast.Continue | ast.Raise):
            return True
        if isinstance(each, ast.If) and _always_leaves(each.body) and _always_leaves(each.orelse):
            return True
    return False


def _at(node: Any, like: Any) -> Any:
    if like is not None:
        ast.copy_location(node, like)
    return ast.fix_missing_locations(node)


def _pass(like: ast.AST) -> ast.stmt:
    made: ast.stmt = _at(ast.Pass(), like)
    return made


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _stored(name: str) -> ast.expr:
    return ast.Name(name, ast.Store())


def _set(name: str, like: ast.AST, value: bool = True) -> ast.stmt:
    made: ast.stmt = _at(ast.Assign([_stored(name)], ast.Constant(value)), like)
    return made


def _when(name: str, body: list[ast.stmt], like: ast.AST) -> ast.stmt:
    made: ast.stmt = _at(ast.If(_name(name), body, []), like)
    return made
