"""Reads pickles without running code: a machine for those instructions that data needs.

Python's own unpickler imports and calls whatever a pickle names. This one knows names only through
`Allowed`, calls only what that allows, with functions of ours that look at the arguments, and takes
memory and time in proportion to the pickle. The instructions are those of `pickletools`.
"""

from __future__ import annotations

import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from .allowed import Allowed, checked_keys
from .errors import LoadError

_MOST_DIGITS = 4096  # bytes of an integer
_MOST_NESTED = 1000
_MARK = object()
_SIZED = (list, dict, tuple, str, bytes, bytearray)

# Instructions with an argument of fixed size whose value is pushed.
_NUMBERS = {
    b"J": struct.Struct("<i"), b"K": struct.Struct("<B"), b"M": struct.Struct("<H"),
    b"G": struct.Struct(">d"),
}  # fmt: skip
# Instructions with a number behind them, of so many bytes: the size of bytes or text that follow,
# or a place in the memo.
_BYTES = {b"B": 4, b"C": 1, b"\x8e": 8, b"T": 4, b"U": 1}
_TEXT = {b"X": 4, b"\x8c": 1, b"\x8d": 8}
_CONSTANTS = {b"N": None, b"\x88": True, b"\x89": False}
_EMPTY: dict[bytes, Callable[[], Any]] = {b"]": list, b"}": dict, b")": tuple, b"\x8f": set}
_TUPLES = {b"\x85": 1, b"\x86": 2, b"\x87": 3}
_GETS = {b"h": 1, b"j": 4}
_PUTS = {b"q": 1, b"r": 4}


class Unpickler:
    """Reads the pickles that lie behind each other in `data`.

    `persistent_load` gives what a persistent id stands for.
    """

    def __init__(
        self,
        data: bytes,
        allowed: Allowed,
        persistent_load: Callable[[Any], Any],
        encoding: str = "utf-8",
    ) -> None:
        self.data = data
        self.at = 0
        self._allowed = allowed
        self.persistent_load = persistent_load
        self._encoding = encoding
        # Calls copy their arguments, of which each costs a pickle some bytes, unless it means harm.
        self._to_copy = 2 * len(data) + (1 << 16)
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._hashes: dict[int, tuple[Any, Counter[int]]] = {}  # by containers, which are kept
        self._nested = 0

    def load(self) -> Any:
        """The object of the next pickle; LoadError where it is none, or is not allowed."""
        self._stack, self._memo, self._hashes = [], {}, {}
        try:
            while True:
                code = self._bytes(1)
                if code == b".":
                    (found,) = self._stack
                    if found is _MARK:
                        raise LoadError("the pickle ends inside of a list: it is damaged")
                    return found
                self._step(code)
        except (
            IndexError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
        ) as error:
            # What a machine of this kind runs into where the instructions make no sense.
            raise LoadError(
                f"the pickle makes no sense at byte {self.at}, so it is damaged: "
                f"{type(error).__name__}: {str(error)[:200]}"
            ) from error

    def _bytes(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if len(found) != size:
            raise LoadError("the pickle ends too early: the file is damaged")
        self.at += size
        return found

    def _number(self, size: int) -> int:
        return int.from_bytes(self._bytes(size), "little")

    def _line(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + 1000)
        if end < 0:
            raise LoadError("the pickle has a name without an end: the file is damaged")
        found = self.data[self.at : end].decode("utf-8")
        self.at = end + 1
        return found

    def _pop(self) -> Any:
        found = self._stack.pop()
        if found is _MARK:
            raise LoadError("the pickle takes more values than it has: it is damaged")
        return found

    def _pop_to_mark(self) -> list[Any]:
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise LoadError("the pickle ends a list that it did not begin: it is damaged")
        found = self._stack[at + 1 :]
        del self._stack[at:]
        return found

    def _step(self, code: bytes) -> None:
        stack = self._stack
        if code in _GETS:
            stack.append(self._memo[self._number(_GETS[code])])
        elif code in _PUTS:
            self._memo[self._number(_PUTS[code])] = self._top()
        elif code == b"\x94":
            self._memo[len(self._memo)] = self._top()
        elif code in _NUMBERS:
            form = _NUMBERS[code]
            stack.append(form.unpack(self._bytes(form.size))[0])
        elif code in _TEXT:
            text = self._bytes(self._number(_TEXT[code]))
            stack.append(text.decode("utf-8", "surrogatepass"))
        elif code in _CONSTANTS:
            stack.append(_CONSTANTS[code])
        elif code in _EMPTY:
            stack.append(_EMPTY[code]())
        elif code in _TUPLES:
            stack.append(tuple(reversed([self._pop() for _ in range(_TUPLES[code])])))
        elif code == b"(":
            stack.append(_MARK)
        elif code in _INSTRUCTIONS:
            _INSTRUCTIONS[code](self)
        elif code in _BYTES:
            self._push_bytes(code)
        elif code in (b"\x8a", b"\x8b"):
            size = self._number(1 if code == b"\x8a" else 4)
            if size > _MOST_DIGITS:
                raise LoadError(f"an integer of {size} bytes: the file is damaged")
            stack.append(int.from_bytes(self._bytes(size), "little", signed=True))
        else:
            raise LoadError(
                f"the pickle has the instruction {code!r}, which data does not need: the file is "
                "damaged, or was written by something else than torch.save or tgraph.save"
            )

    def _top(self) -> Any:
        found = self._stack[-1]
        if found is _MARK:
            raise LoadError("the pickle keeps what is no value: it is damaged")
        return found

    def _push_bytes(self, code: bytes) -> None:
        found = self._bytes(self._number(_BYTES[code]))
        is_text = code in (b"T", b"U") and self._encoding != "bytes"  # Python 2's strings
        self._stack.append(found.decode(self._encoding) if is_text else found)

    # --- instructions that build ---

    def _protocol(self) -> None:
        version = self._number(1)
        if not 2 <= version <= 5:
            raise LoadError(f"the pickle has protocol {version}; 2 to 5 are known")

    def _frame(self) -> None:
        self._number(8)  # a hint for who reads from a file

    def _tuple(self) -> None:
        self._stack.append(tuple(self._pop_to_mark()))

    def _list(self) -> None:
        self._stack.append(self._pop_to_mark())

    def _append(self) -> None:
        value = self._pop()
        self._target(list).append(value)

    def _appends(self) -> None:
        values = self._pop_to_mark()
        self._target(list).extend(values)

    def _set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set_pairs([key, value])

    def _set_items(self) -> None:
        self._set_pairs(self._pop_to_mark())

    def _set_pairs(self, values: list[Any]) -> None:
        target = self._target(dict)
        for key, value in self._pairs(values, target):
            if type(target) is type(value) is defaultdict:
                self._count_nested()
            target[key] = value

    def _pairs(self, values: list[Any], target: Any) -> list[tuple[Any, Any]]:
        if len(values) % 2:
            raise LoadError("the pickle has a key without a value: it is damaged")
        return list(zip(checked_keys(values[::2], self._hashes_of(target)), values[1::2]))

    def _hashes_of(self, target: Any) -> Counter[int]:
        """How many keys of a container have each hash."""
        return self._hashes.setdefault(id(target), (target, Counter[int]()))[1]

    def _count_nested(self) -> None:
        """Python frees defaultdicts in each other by calls in each other, until it crashes."""
        self._nested += 1
        if self._nested > _MOST_NESTED:
            raise LoadError(f"the pickle has more than {_MOST_NESTED} defaultdicts in others")

    def _dict(self) -> None:
        made: dict[Any, Any] = {}
        made.update(self._pairs(self._pop_to_mark(), made))
        self._stack.append(made)

    def _add_items(self) -> None:
        values, target = self._pop_to_mark(), self._target(set)
        target.update(checked_keys(values, self._hashes_of(target)))

    def _frozen_set(self) -> None:
        self._stack.append(frozenset(checked_keys(self._pop_to_mark())))

    def _target(self, kind: type) -> Any:
        found = self._stack[-1]
        if not isinstance(found, kind) and not self._allowed.is_of_user(type(found)):
            raise LoadError(f"the pickle adds to what is no {kind.__name__}: it is damaged")
        return found

    def _byte_array(self) -> None:
        self._stack.append(bytearray(self._bytes(self._number(8))))

    def _drop(self) -> None:
        self._stack.pop()

    def _drop_to_mark(self) -> None:
        self._pop_to_mark()

    # --- instructions that name and call ---

    def _global(self) -> None:
        module, name = self._line(), self._line()
        module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        self._stack.append(self._allowed.find(module, name))

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise LoadError("the pickle names something by what is no text: it is damaged")
        self._stack.append(self._allowed.find(module, name))

    def _reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        if type(arguments) is not tuple:
            raise LoadError("the pickle calls a function with no arguments: it is damaged")
        self._count_copies(arguments)
        self._stack.append(self._allowed.call(function, arguments))

    def _new_object(self) -> None:
        arguments, cls = self._pop(), self._pop()
        self._count_copies(arguments)
        self._stack.append(self._allowed.new(cls, arguments, {}))

    def _new_object_with_names(self) -> None:
        names, arguments, cls = self._pop(), self._pop(), self._pop()
        self._count_copies(arguments)
        if type(names) is dict:
            self._count_copies(tuple(names.values()))
        self._stack.append(self._allowed.new(cls, arguments, names))

    def _count_copies(self, arguments: Any) -> None:
        """Refuse a pickle whose calls copy what it holds again and again."""
        if type(arguments) is tuple:  # else the call is refused
            self._to_copy -= sum(len(each) for each in arguments if type(each) in _SIZED)
        if self._to_copy < 0:
            raise LoadError("the pickle copies more than it holds: the file is damaged")

    def _build(self) -> None:
        state = self._pop()
        self._stack.append(self._allowed.build(self._pop(), state))

    def _persistent(self) -> None:
        self._stack.append(self.persistent_load(self._pop()))


_INSTRUCTIONS: dict[bytes, Callable[[Unpickler], None]] = {
    b"\x80": Unpickler._protocol, b"\x95": Unpickler._frame, b"t": Unpickler._tuple,
    b"l": Unpickler._list, b"d": Unpickler._dict, b"a": Unpickler._append,
    b"e": Unpickler._appends, b"s": Unpickler._set_item, b"u": Unpickler._set_items,
    b"\x90": Unpickler._add_items, b"\x91": Unpickler._frozen_set, b"\x96": Unpickler._byte_array,
    b"0": Unpickler._drop, b"1": Unpickler._drop_to_mark, b"c": Unpickler._global,
    b"\x93": Unpickler._stack_global, b"R": Unpickler._reduce, b"\x81": Unpickler._new_object,
    b"\x92": Unpickler._new_object_with_names, b"b": Unpickler._build, b"Q": Unpickler._persistent,
}  # fmt: skip
