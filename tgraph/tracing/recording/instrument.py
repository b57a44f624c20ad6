"""Code objects whose reads and writes of the world pass through hooks.

`instrument(code, hooks)` gives code that does what `code` does, and tells hooks of what it reads:
attributes, items, membership, truth values, what is called and with what, what is iterated over,
and what it writes into. It works on bytecode, so that it needs no source, and for whatever the
function is: a lambda, a method with `super()`, something typed at a prompt. Nothing is known here
of what the hooks do.

What is put in uses few instructions, which all supported versions of Python have: copies of values
on the stack are put into a tuple and given to a hook as ``hook | operands``. Lines and columns,
jumps and exception handlers are moved along. How Python lays code out is told in its sources,
Objects/locations.md and Objects/exception_handling_notes.txt (Objects/lnotab_notes.txt).
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

_OP = dis.opmap
_EXTENDED = _OP["EXTENDED_ARG"]
_CACHE = 0
_NB_OR = 7
_CALLABLE_IS_LOWEST = sys.version_info >= (3, 13)  # [callable, NULL, ...], before [NULL, callable]


class Hooks(NamedTuple):
    """What instrumented code calls; each gets one operand, a tuple where several are named.

    Of those that say so, the result takes the place of what the instruction would have given.
    """

    enter: Callable[[CodeType], Any]  # makes the hook for the beginning of a function
    attribute: Callable[[str], Any]  # makes a hook: object -> its attribute
    super_attribute: Callable[[str], Any]  # makes a hook: (super, class, self) -> attribute
    imported: Callable[[str], Any]  # makes a hook: (module, what was imported from it)
    module: Any  # a module that was imported
    item: Any  # (container, key) -> item
    contains: Any  # (item, container) -> bool
    lacks: Any  # (item, container) -> bool
    identical: Any  # (object, other) -> bool
    differs: Any  # (object, other) -> bool
    call: Any  # (callable, *arguments) -> what is called instead
    call_unpacked: Any  # (callable, arguments, keywords if any) -> what is called instead
    look: Any  # a value all of which may be read
    look_at_each: Any  # several of them
    update: Any  # (value, other) of += or |=
    change: Any  # (value, other) of another operator in place
    truth: Any  # a value that is asked for its truth
    iterate: Any  # a value that is iterated over
    store: Any  # an object that is written into
    store_item: Any  # (container, key)
    delete_item: Any  # (container, key)
    store_attribute: Callable[[str], Any]  # makes a hook: an object that is written into
    store_global: Callable[[str], Any]  # makes a hook: what is written


class _Instruction(NamedTuple):
    op: int
    arg: int
    start: int  # of the first code unit, with extensions of the argument
    end: int  # behind the last one, with caches
    target: int | None  # unit that it jumps to

    @property
    def name(self) -> str:
        return dis.opname[self.op]


class _Item:
    """An instruction of the new code, made for the one that began at `origin`."""

    __slots__ = ("arg", "at", "caches", "op", "origin", "size", "target")

    def __init__(
        self, op: int, arg: int, caches: int, origin: int, target: int | None = None
    ) -> None:
        self.op, self.arg, self.caches, self.origin, self.target = op, arg, caches, origin, target
        self.at = self.size = 0


def _units_behind(code: CodeType, op: int) -> int:
    """How many caches follow the instruction `op` in compiled code."""
    raw = code.co_code
    at = next(at for at in range(0, len(raw), 2) if raw[at] == op)
    count = 0
    while raw[at + 2 + 2 * count] == _CACHE:
        count += 1
    return count


_BINARY_CACHES = _units_behind(compile("a | b", "", "eval"), _OP["BINARY_OP"])


def _decoded(code: CodeType) -> list[_Instruction]:
    """The instructions of a code object; its arguments are whole, its jumps resolved."""
    raw, found = code.co_code, []
    at, start, extended = 0, 0, 0
    count = len(raw) // 2
    while at < count:
        op, arg = raw[2 * at], raw[2 * at + 1] | extended
        at += 1
        if op == _EXTENDED:
            extended = arg << 8
            continue
        while at < count and raw[2 * at] == _CACHE:
            at += 1
        target = None
        if op in _JUMPS:
            target = at - arg if "BACKWARD" in dis.opname[op] else at + arg
        found.append(_Instruction(op, arg, start, at, target))
        start, extended = at, 0
    return found


_JUMPS = frozenset(dis.hasjrel)


class _Writer:
    """Writes the instructions of instrumented code."""

    def __init__(self, code: CodeType, hooks: Hooks) -> None:
        self.code, self.hooks = code, hooks
        self.items: list[_Item] = []
        self.consts = [
            _instrumented(each, hooks) if isinstance(each, CodeType) else each
            for each in code.co_consts
        ]
        self.origin = 0
        self.deepest = 0
        self._hook_at: dict[int, int] = {}

    # --- pieces ---

    def emit(self, name: str, arg: int = 0, caches: int = 0) -> None:
        self.items.append(_Item(_OP[name], arg, caches, self.origin))

    def const(self, value: Any) -> int:
        at = self._hook_at.get(id(value))
        if at is None:
            at = self._hook_at[id(value)] = len(self.consts)
            self.consts.append(value)
        return at

    def give(self, hook: Any) -> None:
        """The top of the stack becomes what the hook makes of it."""
        self.emit("LOAD_CONST", self.const(hook))
        self.emit("SWAP", 2)
        self.emit("BINARY_OP", _NB_OR, _BINARY_CACHES)

    def gather(self, *depths: int) -> None:
        """Push a copy of what lies so deep, several as a tuple."""
        for pushed, depth in enumerate(depths):
            self.emit("COPY", depth + pushed)
        if len(depths) > 1:
            self.emit("BUILD_TUPLE", len(depths))
        self.deepest = max(self.deepest, len(depths) + 2)

    def note(self, hook: Any, *depths: int) -> None:
        """Tell the hook of what lies so deep."""
        self.gather(*depths)
        self.give(hook)
        self.emit("POP_TOP")

    def take(self, hook: Any, count: int) -> None:
        """What the hook makes of the top takes its place; of several, as a tuple."""
        if count > 1:
            self.emit("BUILD_TUPLE", count)
        self.give(hook)

    def push_null(self) -> None:
        """Below the top of the stack, or above, as calls of this version want it."""
        self.emit("PUSH_NULL")
        if not _CALLABLE_IS_LOWEST:
            self.emit("SWAP", 2)

    def called(self, hook: Any, callable_: int, arguments: Sequence[int]) -> None:
        """The callable that lies so deep becomes what the hook makes of it and the arguments."""
        self.gather(callable_, *arguments)
        if not arguments:
            self.emit("BUILD_TUPLE", 1)
        self.give(hook)
        self.emit("SWAP", callable_ + 1)
        self.emit("POP_TOP")

    def keep(self, each: _Instruction, caches: int) -> None:
        self.items.append(_Item(each.op, each.arg, caches, self.origin, each.target))

    # --- the code ---

    def write(self) -> CodeType:
        instructions, hooks = _decoded(self.code), self.hooks
        entered = False
        for number, each in enumerate(instructions):
            self.origin = each.start
            if not self._replaced(each):
                self._noted(each, instructions, number)
                self.keep(each, each.end - each.start - 1 - _extensions(each.arg))
            if each.name == "IMPORT_NAME":
                self.note(hooks.module, 1)
            if each.name == "IMPORT_FROM":
                self.note(hooks.imported(self.code.co_names[each.arg]), 2, 1)
            if each.name == "RESUME" and not entered:
                entered = True
                self._enter()
        return self._assembled(instructions)

    def _enter(self) -> None:
        hook = self.const(self.hooks.enter(self.code))
        self.emit("LOAD_CONST", hook)
        self.emit("LOAD_CONST", hook)
        self.emit("BINARY_OP", _NB_OR, _BINARY_CACHES)
        self.emit("POP_TOP")
        self.deepest = max(self.deepest, 2)

    def _replaced(self, each: _Instruction) -> bool:
        """Write what reads through a hook instead; False where the instruction stays."""
        name, arg, hooks = each.name, each.arg, self.hooks
        if name in ("LOAD_ATTR", "LOAD_METHOD"):
            wide = sys.version_info >= (3, 12)
            self.take(hooks.attribute(self.code.co_names[arg >> 1 if wide else arg]), 1)
            if name == "LOAD_METHOD" or (wide and arg & 1):
                self.push_null()
        elif name == "LOAD_SUPER_ATTR":
            self.take(hooks.super_attribute(self.code.co_names[arg >> 2]), 3)
            if arg & 1:
                self.push_null()
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and arg == _NB_SUBSCR):
            self.take(hooks.item, 2)
        elif name == "BINARY_SLICE":
            self.emit("BUILD_SLICE", 2)
            self.take(hooks.item, 2)
        elif name == "CONTAINS_OP":
            self.take(hooks.lacks if arg else hooks.contains, 2)
        elif name == "IS_OP":
            self.take(hooks.differs if arg else hooks.identical, 2)
        else:
            return False
        self.deepest = max(self.deepest, 2)
        return True

    def _noted(self, each: _Instruction, all_: Sequence[_Instruction], number: int) -> None:
        """Write what tells hooks of the operands of an instruction that stays."""
        name, arg, hooks = each.name, each.arg, self.hooks
        if name in _CALLS:
            self._call(each, all_, number)
        elif name == "BINARY_OP":
            self.note(_operator_hook(hooks, arg), 2, 1)
        elif name in _LOOKED_AT:
            depths = _LOOKED_AT[name]
            self.note(hooks.look_at_each if len(depths) > 1 else hooks.look, *depths)
        elif name == "FORMAT_VALUE":
            self.note(hooks.look, 2 if arg & 4 else 1)
        elif name == "GET_ITER" or name == "GET_YIELD_FROM_ITER":
            self.note(hooks.iterate, 1)
        elif name in ("TO_BOOL", "UNARY_NOT") or "IF_TRUE" in name or "IF_FALSE" in name:
            if not _gives_bool(all_, number):
                self.note(hooks.truth, 1)
        elif name == "STORE_SUBSCR":
            self.note(hooks.store_item, 2, 1)
        elif name == "DELETE_SUBSCR":
            self.note(hooks.delete_item, 2, 1)
        elif name in ("STORE_ATTR", "DELETE_ATTR"):
            self.note(hooks.store_attribute(self.code.co_names[arg]), 1)
        elif name == "STORE_GLOBAL":
            self.note(hooks.store_global(self.code.co_names[arg]), 1)
        elif name == "STORE_SLICE":
            self.note(hooks.store, 3)
        elif name == "MATCH_CLASS":
            self.note(hooks.look_at_each, 3, 2)

    def _call(self, each: _Instruction, all_: Sequence[_Instruction], number: int) -> None:
        name, arg = each.name, each.arg
        if name == "CALL_FUNCTION_EX":
            above = 1 if sys.version_info >= (3, 14) else arg & 1
            callable_ = above + (3 if _CALLABLE_IS_LOWEST else 2)
            self.called(
                self.hooks.call_unpacked, callable_, [above + 1, 1] if arg & 1 else [1 + above]
            )
            return
        before = [all_[at].name for at in range(max(number - 2, 0), number)]
        if (name == "CALL" and before and before[-1] in ("PRECALL", "KW_NAMES")) or (
            name == "PRECALL" and before and before[-1] == "KW_NAMES"
        ):
            return  # written before the first of them
        if name == "KW_NAMES":
            arg = all_[number + 1].arg
        above = 1 if name == "CALL_KW" else 0
        callable_ = above + arg + (2 if _CALLABLE_IS_LOWEST else 1)
        self.called(self.hooks.call, callable_, range(above + arg, above, -1))

    # --- putting it together ---

    def _assembled(self, instructions: Sequence[_Instruction]) -> CodeType:
        first = self._placed()
        first[len(self.code.co_code) // 2] = self.items[-1].at + self.items[-1].size
        raw = bytearray()
        for item in self.items:
            arg = item.arg if item.target is None else self._distance(item, first)
            count = item.size - 1 - item.caches
            for shift in range(count, 0, -1):
                raw += bytes((_EXTENDED, arg >> (8 * shift) & 0xFF))
            raw += bytes((item.op, arg & 0xFF))
            raw += bytes(2 * item.caches)
        return self.code.replace(
            co_code=bytes(raw),
            co_consts=tuple(self.consts),
            co_stacksize=self.code.co_stacksize + self.deepest,
            co_linetable=_line_table(self.code, self.items),
            co_exceptiontable=_exception_table(self.code, first),
        )

    def _placed(self) -> dict[int, int]:
        """Old code unit -> new one; items get their place and size."""
        for item in self.items:
            item.size = 1 + item.caches + _extensions(item.arg if item.target is None else 0)
        while True:
            at, first = 0, {}
            for item in self.items:
                first.setdefault(item.origin, at)
                item.at = at
                at += item.size
            grown = False
            for item in self.items:
                if item.target is None:
                    continue
                size = 1 + item.caches + _extensions(self._distance(item, first))
                if size > item.size:
                    item.size, grown = size, True
            if not grown:
                return first

    @staticmethod
    def _distance(item: _Item, first: dict[int, int]) -> int:
        assert item.target is not None
        return abs(first[item.target] - item.at - item.size)


_NB_INPLACE, _NB_INPLACE_OR = 13, 20  # the first is +=
_NB_SUBSCR = 26  # an operator since Python 3.14
_CALLS = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX", "PRECALL", "KW_NAMES"})
_LOOKED_AT: dict[str, tuple[int, ...]] = {
    "COMPARE_OP": (2, 1),
    "UNPACK_SEQUENCE": (1,), "UNPACK_EX": (1,),
    "LIST_EXTEND": (1,), "SET_UPDATE": (1,), "DICT_UPDATE": (1,), "DICT_MERGE": (1,),
    "CONVERT_VALUE": (1,), "FORMAT_SIMPLE": (1,), "FORMAT_WITH_SPEC": (2,),
    "BEFORE_WITH": (1,), "LOAD_SPECIAL": (1,),
    "MATCH_MAPPING": (1,), "MATCH_SEQUENCE": (1,), "MATCH_KEYS": (2, 1), "GET_LEN": (1,),
}  # fmt: skip
_BOOLEAN = frozenset({"COMPARE_OP", "IS_OP", "CONTAINS_OP", "UNARY_NOT", "TO_BOOL"})


def _operator_hook(hooks: Hooks, operator: int) -> Any:
    if operator in (_NB_INPLACE, _NB_INPLACE_OR):
        return hooks.update
    return hooks.change if _NB_INPLACE < operator < _NB_SUBSCR else hooks.look_at_each


def _gives_bool(instructions: Sequence[_Instruction], number: int) -> bool:
    return number > 0 and instructions[number - 1].name in _BOOLEAN


def _extensions(arg: int) -> int:
    return max((arg.bit_length() - 1) // 8, 0) if arg else 0


# --- tables of positions and of exception handlers ------------------------------------------------


def _varint(value: int) -> Iterator[int]:
    while value > 63:
        yield 64 | value & 63
        value >>= 6
    yield value


def _signed(value: int) -> Iterator[int]:
    return _varint(-value << 1 | 1 if value < 0 else value << 1)


class _Lines:
    """Writes a table of positions."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.table = bytearray()

    def add(self, position: tuple[int | None, ...], count: int) -> None:
        while count > 8:
            self._entry(position, 8)
            count -= 8
        self._entry(position, count)

    def _entry(self, position: tuple[int | None, ...], count: int) -> None:
        line, end_line, column, end_column = position
        if line is None:
            self.table.append(0x80 | 15 << 3 | count - 1)
            return
        delta, self.line = line - self.line, line
        if end_line is None or column is None or end_column is None:
            self.table.append(0x80 | 13 << 3 | count - 1)
            self.table += bytes(_signed(delta))
            return
        self.table.append(0x80 | 14 << 3 | count - 1)
        self.table += bytes((*_signed(delta), *_varint(end_line - line)))
        self.table += bytes((*_varint(column + 1), *_varint(end_column + 1)))


def _line_table(code: CodeType, items: Sequence[_Item]) -> bytes:
    positions = list(code.co_positions())
    lines = _Lines(code.co_firstlineno)
    at = 0
    while at < len(items):
        origin, count = items[at].origin, 0
        while at < len(items) and items[at].origin == origin:
            count += items[at].size
            at += 1
        lines.add(positions[origin], count)
    return bytes(lines.table)


def _exception_table(code: CodeType, first: dict[int, int]) -> bytes:
    """The table of handlers: start, length, target, and depth of the stack with a flag, each."""
    numbers = _numbers(code.co_exceptiontable)
    table = bytearray()
    for start, length, target, depth in zip(numbers, numbers, numbers, numbers):
        begin = first[start]
        values = (begin, first[start + length] - begin, first[target], depth)
        entry = bytearray(part for value in values for part in _big_endian(value))
        entry[0] |= 0x80  # marks the beginning of an entry
        table += entry
    return bytes(table)


def _numbers(table: bytes) -> Iterator[int]:
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            yield value
            value = 0


def _big_endian(value: int) -> Iterator[int]:
    parts = list(_varint_parts(value))
    for part in parts[:-1]:
        yield 64 | part
    yield parts[-1]


def _varint_parts(value: int) -> list[int]:
    parts = [value & 63]
    while value := value >> 6:
        parts.append(value & 63)
    return parts[::-1]


# --- newer Pythons --------------------------------------------------------------------------------

KNOWN = ((3, 11), (3, 13))
"""The first and the last version of Python that all tests have passed on."""


def why_unknown() -> str | None:
    """Why code of this Python cannot have hooks; None where it can.

    A newer version may have instructions that read what no hook is told of: what a plan depends on
    would be missed, and results would be wrong.
    """
    if sys.version_info[:2] <= KNOWN[1]:
        return None
    first, last = (".".join(map(str, each)) for each in KNOWN)
    return (
        f"tgraph.compile and tgraph.trace know the bytecode of Python {first} to {last}, not that "
        f"of Python {sys.version.split()[0]}: use one of these versions"
    )


# --- results are kept -----------------------------------------------------------------------------

_INSTRUMENTED: dict[tuple[CodeType, int], tuple[CodeType, Hooks]] = {}
_MOST = 4096  # programs may make code as they go


def instrument(code: CodeType, hooks: Hooks) -> CodeType:
    """`code` with hooks; code objects inside of it (of functions, comprehensions) as well.

    RuntimeError in a Python that is newer than those known.
    """
    reason = why_unknown()
    if reason is not None:
        raise RuntimeError(reason)
    return _instrumented(code, hooks)


def _instrumented(code: CodeType, hooks: Hooks) -> CodeType:
    key = (code, id(hooks))
    found = _INSTRUMENTED.get(key)
    if found is None:
        if len(_INSTRUMENTED) >= _MOST:
            _INSTRUMENTED.clear()
        found = _INSTRUMENTED[key] = (_Writer(code, hooks).write(), hooks)
    return found[0]
