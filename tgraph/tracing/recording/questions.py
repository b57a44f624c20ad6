"""Small questions about values, that ask no code of the user's."""

from __future__ import annotations

import keyword
import re
import sys
from collections import OrderedDict, deque
from types import (
    CodeType,
    GeneratorType,
    MappingProxyType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from ...compiler.ir import Node
from ...compiler.ir.dim import SymInt
from ...core.carried_number import CarriedNumber
from ...core.tensor import Tensor
from ...core.traced_number import TracedNumber
from .guards import is_a
from .snapshots import ABSENT
from .watched_code import is_constant_class, is_constant_code

NUMBERS = (TracedNumber, SymInt, CarriedNumber)
"""What stands for numbers."""
PLAIN = frozenset({int, float, bool, str, bytes, complex, type(None), *NUMBERS})
CONTAINERS = (list, tuple, dict, set, frozenset, deque)
DICT_ITERATORS = (dict.__iter__, OrderedDict.__iter__)
DICT_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
VIEWS = (*DICT_VIEWS, MappingProxyType)


def own_attributes(obj: Any) -> Any:
    """The dictionary of an object's attributes, without asking code of the user's."""
    try:
        found = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return found if is_a(found, dict) else None


def lookup(kind: type, name: str) -> tuple[type | None, Any]:
    """The class that gives objects of a class the attribute `name`, and what stands there."""
    for each in kind.__mro__:
        found = vars(each).get(name, ABSENT)
        if found is not ABSENT:
            return each, found
    return None, ABSENT


class _Slotted:
    __slots__ = ("value",)


MEMBER = type(vars(_Slotted)["value"])
UNBOUND = (MethodDescriptorType, WrapperDescriptorType)
# They put a value where it is put, and do no more.
SETTING = (
    object.__setattr__, ModuleType.__setattr__, dict.__setitem__, OrderedDict.__setitem__,
    list.__setitem__, deque.__setitem__,
)  # fmt: skip


def is_data_descriptor(found: Any) -> bool:
    kind = type(found)
    return hasattr(kind, "__set__") or hasattr(kind, "__delete__")


def running_code() -> CodeType:
    """The code with hooks that runs now."""
    frame: Any = sys._getframe(1)
    while is_constant_code(frame.f_code):
        frame = frame.f_back
    code: CodeType = frame.f_code
    return code


def is_plain_read(value: Any) -> bool:
    return type(value) in PLAIN or is_a(value, Tensor)


def is_builtin(value: Any) -> bool:
    return type(value).__module__ in ("builtins", "collections")


def is_data(value: Any) -> bool:
    """Whether an object is of a class that others made for data of the user's."""
    return is_a(value, (*CONTAINERS, *VIEWS, np.ndarray)) or (
        type(value).__module__ in ("collections", "types", "argparse", "weakref")
    )


def is_iterator(value: Any) -> bool:
    kind = type(value)
    return is_a(value, GeneratorType) or (
        hasattr(kind, "__next__") and hasattr(kind, "__iter__") and is_constant_class(kind)
    )


def first_of(pair: tuple[int, Any]) -> int:
    return pair[0]


def is_empty_cell(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def is_written_out(key: Any) -> bool:
    """Whether the text of a key gives an equal one."""
    if type(key) is tuple:
        return all(map(is_written_out, key))
    return type(key) in (str, int, bool, bytes, type(None))


def is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def is_stand_in(value: Any) -> bool:
    if type(value) in NUMBERS:
        return True
    return is_a(value, Tensor) and type(value._value) is Node


def parent_path(path: str) -> str:
    return path.rpartition(".")[0] or "self"


# What a place can be written by that does not need the names of a trace.
_WRITABLE = re.compile(r"""\.cell_contents|\[(-?\d+|b?'.*'|b?".*"|\(.*\))\]""", re.DOTALL)


def is_place(holder: Any, access: str) -> bool:
    """Whether another value can be put where one was read."""
    if is_a(holder, type):
        return access.startswith(".__dict__[")
    if access[:1] == "." and access != ".cell_contents":
        return type(lookup(type(holder), access[1:])[1]) is MEMBER
    return bool(_WRITABLE.fullmatch(access))


FACTS = frozenset({
    "shape", "dtype", "device", "ndim", "requires_grad", "is_leaf", "grad_fn", "dim", "size",
    "numel", "nelement", "element_size", "itemsize", "nbytes", "is_floating_point", "is_complex",
    "is_cuda", "layout",
})  # fmt: skip
FAST = frozenset({Tensor, int, float, str, bool, type(None), slice, bytes, *NUMBERS})
