"""Every attribute of an object is there from the start: a reader finds all in `__init__`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.parsed import ROOT, files, statements, tree_of

FIRST = ("__init__", "__new__", "__post_init__", "__init_subclass__", "__set_name__")


def targets_of(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    if isinstance(statement, ast.AnnAssign | ast.For):
        return [statement.target]
    if isinstance(statement, ast.With):
        return [item.optional_vars for item in statement.items if item.optional_vars]
    return []


def assigned(function: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """The attributes of its first argument that a method assigns, with lines."""
    if not function.args.args:
        return
    owner = function.args.args[0].arg
    for statement in statements(function.body):
        for target in targets_of(statement):
            for each in ast.walk(target):
                if (
                    isinstance(each, ast.Attribute)
                    and isinstance(each.ctx, ast.Store)
                    and isinstance(each.value, ast.Name)
                    and each.value.id == owner
                ):
                    yield each.attr, each.lineno


def declared(body: list[ast.stmt]) -> set[str]:
    """What a class has without any object: annotations, class attributes, methods, slots."""
    found: set[str] = set()
    for each in body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found.add(each.target.id)
        elif isinstance(each, ast.Assign):
            found |= {name.id for name in each.targets if isinstance(name, ast.Name)}
        elif isinstance(each, (ast.FunctionDef, ast.ClassDef)):
            found.add(each.name)
    return found


Classes = dict[str, list[tuple[Path, ast.ClassDef]]]


def classes() -> Classes:
    """All classes of the package by name."""
    found: Classes = {}
    for path in files().values():
        for node in statements(tree_of(path).body):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append((path, node))
    return found


class Attributes:
    """The attributes of classes, each class examined once."""

    def __init__(self) -> None:
        self.classes = classes()
        self.known = cache(self._known)

    def _known(self, node: ast.ClassDef) -> set[str]:
        """What is there once `__init__` has run, that of the base classes included."""
        found = declared(node.body)
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name in FIRST:
                found |= {name for name, _ in assigned(method)}
        for base in node.bases:
            for _, other in self.classes.get(name_of(base), []):
                found |= self.known(other)
        return found


def name_of(base: ast.expr) -> str:
    if isinstance(base, ast.Subscript):
        return str(getattr(base.value, "id", ""))
    return base.attr if isinstance(base, ast.Attribute) else str(getattr(base, "id", ""))


def is_of_the_class(method: ast.FunctionDef) -> bool:
    marks = {getattr(each, "id", "") for each in method.decorator_list}
    return bool(marks & {"staticmethod", "classmethod"})


def test_no_attribute_is_born_outside_init() -> None:
    late = []
    attributes = Attributes()
    for path, node in (item for items in attributes.classes.values() for item in items):
        there = attributes.known(node)
        for method in node.body:
            if not isinstance(method, ast.FunctionDef) or method.name in FIRST:
                continue
            if not is_of_the_class(method):
                late += [
                    f"{path.relative_to(ROOT)}:{line} {node.name}.{name}"
                    for name, line in assigned(method)
                    if name not in there
                ]
    assert not late
