"""The syntax tree of the function that a code object was compiled from."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from types import CodeType
from typing import Any

from ..runtime.records import NamedTuple

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FLAGS = 0x1FE0000  # of `from __future__` imports, as `compile` takes them (Include/cpython/code.h)


class NotRewritten(Exception):
    """Why a function runs as it is written."""


class Source(NamedTuple):
    """A function's definition, the name of the class around it, if there is one, and the imports
    of the file, on which depends how Python calls what is in a module."""

    definition: Any
    class_name: str | None
    imports: list[ast.stmt]


def source_of(code: CodeType) -> Source:
    """Where `code` was written; NotRewritten where that cannot be told."""
    lines = tuple(linecache.getlines(code.co_filename))
    absent = NotRewritten(f"its source is not there (it was made in {code.co_filename})")
    if not lines:
        raise absent
    try:
        found = [each for each in _definitions(lines) if _fits(each.definition, code)]
    except SyntaxError:
        found = []
    same = [each for each in found if is_compiled_from(each, code)]
    if not same:
        if code.co_filename == "<string>":  # the text of `python -c`, which other code is not from
            raise absent
        raise NotRewritten("its source cannot be found, or has changed since it was imported")
    return same[0]


@functools.lru_cache(64)
def _definitions(lines: tuple[str, ...]) -> list[Source]:
    module = ast.parse("".join(lines))
    return list(_defined(module, None, list(_imports(module))))


def _imports(node: ast.AST) -> Iterator[ast.stmt]:
    """The imports of a module's own scope, also those under `try` and `if`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield child
        elif isinstance(child, ast.ImportFrom):
            if child.module != "__future__":
                yield child
        elif not isinstance(child, (*_SCOPES, ast.expr)):
            yield from _imports(child)


def _defined(node: ast.AST, class_name: str | None, imports: list[ast.stmt]) -> Iterator[Source]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield Source(child, class_name, imports)
        inner = child.name if isinstance(child, ast.ClassDef) else class_name
        yield from _defined(child, inner, imports)


def _fits(definition: Definition, code: CodeType) -> bool:
    if isinstance(definition, ast.Lambda):
        return code.co_name == "<lambda>" and definition.lineno == code.co_firstlineno
    first = min([definition.lineno, *(each.lineno for each in definition.decorator_list)])
    return definition.name == code.co_name and first == code.co_firstlineno


def is_compiled_from(source: Source, code: CodeType) -> bool:
    """Whether the code of a definition is `code`; assertions may have been rewritten by others."""
    if any(isinstance(each, ast.Assert) for each in ast.walk(source.definition)):
        return True
    try:
        made = compiled(source, source.definition, code)
    except (SyntaxError, NotRewritten):
        return False
    return _outline(made) == _outline(code)


def _outline(code: CodeType) -> tuple[Any, ...]:
    plain = [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]
    return code.co_code, code.co_names, code.co_varnames, plain


def compiled(source: Source, definition: Definition, code: CodeType) -> CodeType:
    """The code of `definition` where the one of `code` stands: in its class, with its variables."""
    factory = ast.parse("def factory(): pass")
    body: ast.stmt = definition if isinstance(definition, ast.stmt) else ast.Expr(definition)
    if source.class_name is not None:  # for names with two underscores, and __class__
        class_ = ast.parse("class C: pass").body[0]
        assert isinstance(class_, ast.ClassDef)
        class_.name, class_.body = source.class_name, [body]
        body = class_
    outer = factory.body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.args.args = [ast.arg(each) for each in code.co_freevars]
    outer.body = [body]
    if isinstance(body, _SCOPES) and body.name not in code.co_freevars:
        outer.body.insert(0, ast.Global([body.name]))  # so it finds itself, or its class
    factory.body = [*source.imports, outer]
    ast.fix_missing_locations(factory)
    flags = code.co_flags & _FLAGS
    module = compile(factory, code.co_filename, "exec", flags, dont_inherit=True)
    first = code.co_firstlineno
    for each in _codes(module):
        if each.co_name == code.co_name and each.co_firstlineno == first and each is not module:
            if each.co_freevars != code.co_freevars:
                raise NotRewritten("it does not name the variables around it that its code reads")
            return each
    raise NotRewritten("it has no code")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)
