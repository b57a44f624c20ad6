"""Every attribute of an object is there from the start: a reader finds all in `__init__`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("tgraph", "compiler", "runtime")
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
FIRST = ("__init__", "__new__", "__post_init__", "__init_subclass__", "__set_name__")


def assigned(function: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """The attributes of its first argument that a method assigns, with lines."""
    if not function.args.args:
        return
    owner = function.args.args[0].arg
    for node in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = list(node.targets)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.For)):
            targets = [node.target]
        elif isinstance(node, ast.With):
            targets = [item.optional_vars for item in node.items if item.optional_vars]
        for target in targets:
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


@cache
def classes() -> dict[str, list[tuple[Path, ast.ClassDef]]]:
    """All classes, read by the tests here and not by whoever collects them."""
    found: dict[str, list[tuple[Path, ast.ClassDef]]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append((path, node))
    return found


@pytest.fixture(autouse=True, scope="module")
def forget() -> Iterator[None]:
    yield
    classes.cache_clear()


def known(node: ast.ClassDef) -> set[str]:
    """What is there once `__init__` has run, that of the classes below included."""
    found = declared(node.body)
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name in FIRST:
            found |= {name for name, _ in assigned(method)}
    for base in node.bases:
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        if isinstance(base, ast.Subscript):
            name = getattr(base.value, "id", "")
        for _, other in classes().get(name, []):
            found |= known(other)
    return found


def is_of_the_class(method: ast.FunctionDef) -> bool:
    marks = {getattr(each, "id", "") for each in method.decorator_list}
    return bool(marks & {"staticmethod", "classmethod"})


def test_no_attribute_is_born_outside_init() -> None:
    late = []
    for path, node in (item for items in classes().values() for item in items):
        there = known(node)
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
