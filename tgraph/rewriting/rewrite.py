"""The code of a function whose `if`, `while` and `for` ask `words` what to do."""

from __future__ import annotations

import copy
import inspect
import weakref
from types import CodeType
from typing import Any

from . import words
from .conditions import WORDS
from .source import NotRewritten, compiled, source_of
from .statements import SPEC, Statements

_ASYNCHRONOUS = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    | inspect.CO_ITERABLE_COROUTINE
)  # fmt: skip


class Rewritten:
    """What became of a function: its new code, or else why there is none.

    `left` are lines on which something stays as it is, and why.
    """

    def __init__(self, original: CodeType) -> None:
        self.code: CodeType | None = None
        self.reason = ""
        self.left: dict[int, str] = {}
        try:
            self.code = self._write(original)
        except NotRewritten as error:
            self.reason = str(error)

    def _write(self, original: CodeType) -> CodeType:
        if original.co_flags & _ASYNCHRONOUS:
            raise NotRewritten("it is a generator or asynchronous")
        source = source_of(original)
        definition = copy.deepcopy(source.definition)
        specs: list[Any] = []
        Statements(definition, specs, self.left)
        try:
            made = compiled(source, definition, original)
        except (SyntaxError, RecursionError) as error:
            raise NotRewritten(f"its rewritten source does not compile: {error}") from error
        return _completed(made, specs, original.co_name)


def _completed(code: CodeType, specs: list[Any], name: str) -> CodeType:
    """With what stands in for constants that have no syntax, and names as the user knows them."""
    consts: list[Any] = []
    for each in code.co_consts:
        if isinstance(each, CodeType):
            is_own = each.co_name.startswith("_tg_")
            each = _completed(each, specs, name if is_own else each.co_name)
        elif isinstance(each, str) and each == WORDS:
            each = words
        elif isinstance(each, str) and each.startswith(SPEC):
            each = specs[int(each.removeprefix(SPEC))]
        consts.append(each)
    return code.replace(co_consts=tuple(consts), co_name=name)


_REWRITTEN: weakref.WeakKeyDictionary[CodeType, Rewritten] = weakref.WeakKeyDictionary()


def rewritten(code: CodeType) -> Rewritten:
    """What becomes of `code`, written once."""
    found = _REWRITTEN.get(code)
    if found is None:
        found = _REWRITTEN[code] = Rewritten(code)
    return found
