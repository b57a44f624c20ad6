"""Tensors that stand for numbers of Python's.

A number that a loop changes is a tensor of the graph. `n += 1` binds a number anew, where a tensor
would be written in place for all that hold it; so it has to be known which is which.
"""

from __future__ import annotations

import operator
import weakref
from typing import Any

from ..compiler.ir.dim import SymInt
from ..core.operands import is_scalar
from ..core.state import state
from ..core.tensor import Tensor
from ..core.traced_number import TracedNumber

_NUMBERS: dict[int, weakref.ref[Tensor]] = {}


def as_number(tensor: Tensor) -> Tensor:
    """`tensor`, which stands for a number from now on."""
    key = id(tensor)
    _NUMBERS[key] = weakref.ref(tensor, lambda _: _NUMBERS.pop(key, None))
    return tensor


def stands_for_number(value: Any) -> bool:
    return isinstance(value, Tensor) and id(value) in _NUMBERS


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python's, is one in a trace, or stands for one."""
    return is_scalar(value) or isinstance(value, TracedNumber | SymInt) or stands_for_number(value)


def computed(name: str, *operands: Any) -> Any:
    """What an operator gives; it stands for a number where the operands are numbers."""
    if state.recorder is not None:
        state.recorder.look_at_each(*operands)
    found = getattr(operator, name)(*operands)
    is_of_numbers = isinstance(found, Tensor) and all(map(is_number, operands))
    return as_number(found) if is_of_numbers else found
