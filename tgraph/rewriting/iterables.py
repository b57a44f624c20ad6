"""What a `for` loop goes over in the graph: rows of tensors, and ranges of traced numbers."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.provenance import user_site
from ..core.tensor import Tensor
from ..ops.elementwise import maximum
from ..runtime.dtypes import int64
from .branches import expression
from .decisions import is_traced
from .numbers import as_number


class Turns:
    """The turns of a loop: how many, and what each is given.

    `count` is an int, an open size or a traced tensor. `rows` are taken along their first axis, a
    row of each in each turn; `value` makes what the loop's variables are given of the number of
    the turn and the rows.
    """

    def __init__(
        self, count: Any, value: Callable[[Tensor, Sequence[Tensor]], Any],
        rows: Sequence[Tensor] = (),
    ) -> None:  # fmt: skip
        self.count, self.value, self.rows = count, value, list(rows)

    @property
    def is_known(self) -> bool:
        """Whether the number of turns is."""
        return not isinstance(self.count, Tensor)

    @classmethod
    def of_rows(cls, over: Tensor) -> Turns:
        if not over._type.shape:
            raise TypeError(f"iteration over a 0-d tensor, at {user_site()}")
        return cls(over._type.shape[0], lambda at, rows: rows[0], [over])

    @classmethod
    def of_range(cls, numbers: range) -> Turns:
        step, start = numbers.step, numbers.start
        return cls(len(numbers), lambda at, rows: as_number(at * step + start))

    @classmethod
    def up_to(cls, start: Any, stop: Any, step: Any) -> Turns:
        """`range(start, stop, step)` of tensors."""
        first, end, by = (_whole(each) for each in (start, stop, step))
        if isinstance(by, Tensor):
            raise TypeError(f"range(): expected a number of Python's as step, at {user_site()}")
        if by == 0:
            raise ValueError("range() arg 3 must not be zero")
        span = end - first if by > 0 else first - end
        count = maximum((span + (abs(by) - 1)) // abs(by), current_context().constant(0, int64))
        return cls(count, lambda at, rows: as_number(at * by + first))


def _whole(value: Any) -> Any:
    """A bound of a range."""
    if not isinstance(value, Tensor):
        return value.__index__()
    if value._type.numel != 1 or value._type.dtype.kind not in ("int", "uint"):
        raise TypeError(
            "range(): only integer tensors of a single element can be converted to an index"
        )
    return value.reshape(()).to(int64)


def tensors_over(function: Any, args: Sequence[Any]) -> Any:
    """`range`, `enumerate`, `zip` or `reversed` of traced tensors; None of other functions."""
    if function is builtins.range and len(args) <= 3:
        return Turns.up_to(*((0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]))
    if function is builtins.enumerate and is_traced(args[0]):
        turns, start = Turns.of_rows(args[0]), args[1] if len(args) > 1 else 0
        return Turns(turns.count, lambda at, rows: (as_number(at + start), rows[0]), turns.rows)
    if function is builtins.zip and all(map(is_traced, args)):
        sizes = [Turns.of_rows(each).count for each in args]
        count = min(sizes)
        rows = [each if each._type.shape[0] == count else each[:count] for each in args]
        return Turns(count, lambda at, rows: tuple(rows), rows)
    if function is builtins.reversed and is_traced(args[0]):
        turns = Turns.of_rows(args[0])
        return Turns(turns.count, turns.value, [each.flip(0) for each in turns.rows])
    return None


def larger_of(values: Sequence[Any], is_max: bool) -> Any:
    """`max` or `min` of values, the first of equal ones, as Python chooses."""
    found = values[0]
    for each in values[1:]:
        test = each > found if is_max else each < found
        if is_traced(test):
            found = expression(test, lambda each=each: each, lambda found=found: found)
        elif test:
            found = each
    return found


def row(tensor: Tensor, at: Tensor) -> Tensor:
    """A row of a tensor, of a number that is traced and known to be there."""
    made: Tensor = apply(p.index, tensor, at, axis=0)
    return made
