"""Source files as syntax trees, each parsed once in a process."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = {"tgraph": "tgraph", "compiler": "tgraph.compiler", "runtime": "tgraph.runtime"}
"""The folders of the package and the name under which each is imported."""
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of syntax trees that have statements."""


@cache
def tree_of(file: Path) -> ast.Module:
    """The syntax tree of a file, which the caller does not change.

    The garbage collector never looks at it: trees have no cycles, and looking for some in those of
    all files takes three times as long as parsing them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


@cache
def files() -> dict[str, Path]:
    """Every module of the package and its file."""
    return {
        _module(file): file for folder in PACKAGES for file in sorted((ROOT / folder).rglob("*.py"))
    }


def _module(file: Path) -> str:
    folder, *inner = file.relative_to(ROOT).with_suffix("").parts
    parts = [PACKAGES[folder], *inner]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def inner_statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements of a statement, and what has some of them: handlers and cases."""
    for field in BODIES:
        inner = getattr(node, field, ())
        if isinstance(inner, list):  # a conditional expression has one expression
            yield from inner


def statements(body: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """Every statement below `body`; a tenth of the nodes that `ast.walk` visits."""
    todo = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.stmt):
            yield node
        todo += inner_statements(node)


def forget() -> None:
    """Drops all trees, which take some hundred megabytes."""
    tree_of.cache_clear()
