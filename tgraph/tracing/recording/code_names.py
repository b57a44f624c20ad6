"""What code names: globals, and variables of enclosing functions."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType

from ...runtime.records import NamedTuple
from .guards import is_a


class _Names(NamedTuple):
    globals: tuple[str, ...]
    stored: tuple[str, ...]
    cells: tuple[str, ...]


@functools.lru_cache(4096)
def named_by(code: CodeType) -> _Names:
    found: dict[str, dict[str, None]] = {"globals": {}, "stored": {}, "cells": {}}
    for instruction in dis.get_instructions(code):
        kind = _NAMING.get(instruction.opname)
        if kind is not None:
            found[kind][instruction.argval] = None
    return _Names(*(tuple(found[kind]) for kind in _Names._fields))


_NAMING = {
    "LOAD_GLOBAL": "globals", "LOAD_NAME": "globals", "LOAD_FROM_DICT_OR_GLOBALS": "globals",
    "STORE_GLOBAL": "stored", "DELETE_GLOBAL": "stored",
    "LOAD_DEREF": "cells", "LOAD_CLASSDEREF": "cells", "LOAD_FROM_DICT_OR_DEREF": "cells",
    "STORE_DEREF": "cells", "DELETE_DEREF": "cells",
}  # fmt: skip


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions and comprehensions in it."""
    waiting = [code]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(const for const in each.co_consts if is_a(const, CodeType))
