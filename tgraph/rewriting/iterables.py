"""What a `for` loop goes over in the graph: rows of tensors, and ranges of traced numbers."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import primitives as p
from ..core.carried_number import TYPES, CarriedNumber, number_kind
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.provenance import user_site
from ..core.tensor import Tensor
from ..ops import from_data
from ..ops.concatenation import stack
from ..ops.elementwise import maximum
from ..runtime.dtypes import int64
from .branches import expression
from .decisions import is_traced
from .values import error, shown


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
        is_natural = start >= 0 and step > 0
        return cls(len(numbers), lambda at, rows: CarriedNumber(at * step + start, is_natural))

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
        is_natural = type(first) is int and first >= 0 and by > 0
        return cls(count, lambda at, rows: CarriedNumber(at * by + first, is_natural))


def _whole(value: Any) -> Any:
    """A bound of a range."""
    if type(value) is CarriedNumber and value.kind in (bool, int):
        return value.to(int64)
    if not isinstance(value, Tensor):
        return value.__index__()
    if value._type.numel != 1 or value._type.dtype.kind not in ("int", "uint"):
        raise TypeError(
            "range(): only integer tensors of a single element can be converted to an index"
        )
    return value.reshape(()).to(int64)


def turns_of(function: Any, args: Sequence[Any], strict: bool = False) -> Turns | None:
    """`range`, `enumerate`, `zip` or `reversed` of what a loop of the graph goes over, if it is."""
    if function is builtins.range and any(map(is_traced, args)) and len(args) <= 3:
        return Turns.up_to(*((0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]))
    if function is builtins.zip:
        return _zipped(args, strict)
    over = _rows_of(args[0]) if args else None
    if over is None:
        return None
    if function is builtins.enumerate and len(args) <= 2:
        start = args[1] if len(args) > 1 else 0

        def numbered(at: Tensor, rows: Sequence[Tensor]) -> tuple[Any, Any]:
            return _counted(at, start), over.value(at, rows)

        return Turns(over.count, numbered, over.rows)
    if function is builtins.reversed and len(args) == 1 and is_traced(args[0]):
        return Turns(over.count, over.value, [each.flip(0) for each in over.rows])
    return None


def _rows_of(value: Any) -> Turns | None:
    """The turns of a loop over a tensor, or over what `turns_of` gave; None of all else."""
    if type(value) is Turns:
        return value
    return Turns.of_rows(value) if isinstance(value, Tensor) and is_traced(value) else None


def _counted(at: Tensor, start: Any) -> CarriedNumber:
    return CarriedNumber(at, is_natural=True) + start  # type: ignore[no-any-return]


def _zipped(args: Sequence[Any], strict: bool) -> Turns | None:
    """`zip` of tensors, and of ranges, and lists of tensors and numbers of one type beside them."""
    parts = [_rows_of(each) for each in args]
    if all(each is None for each in parts):
        return None
    for at, (part, given) in enumerate(zip(parts, args, strict=True)):
        if part is None:
            parts[at] = _of_other(given)
    known = [each for each in parts if each is not None]
    counts = [each.count for each in known]
    if any(isinstance(each, Tensor) for each in counts):
        return None
    if strict and any(each != counts[0] for each in counts):
        at = next(at for at, each in enumerate(counts) if each != counts[0])
        longer = "longer" if counts[at] > counts[0] else "shorter"
        before = "argument 1" if at == 1 else f"arguments 1-{at}"
        raise ValueError(f"zip() argument {at + 1} is {longer} than {before}")
    count = min(counts)
    sizes = [len(each.rows) for each in known]
    starts = [sum(sizes[:at]) for at in range(len(sizes))]

    def value(at: Tensor, rows: Sequence[Tensor]) -> tuple[Any, ...]:
        return tuple(
            each.value(at, rows[start : start + size])
            for each, start, size in zip(known, starts, sizes, strict=True)
        )

    rows = [row for each in known for row in each.rows]
    rows = [each if each._type.shape[0] == count else each[:count] for each in rows]
    return Turns(count, value, rows)


def _of_other(value: Any) -> Turns:
    """What stands beside tensors in a `zip`; an error for what has no rows."""
    if type(value) is range:
        return Turns.of_range(value)
    if isinstance(value, (list, tuple)):
        kinds = {number_kind(each) for each in value}
        if len(kinds) == 1 and None not in kinds:
            made = from_data.tensor(list(value), dtype=TYPES[kinds.pop()])
            return Turns(len(value), lambda at, rows: CarriedNumber(rows[0]), [made])
        if value and all(isinstance(each, Tensor) for each in value):
            types = {(each._type.shape, each._type.dtype, each._type.device) for each in value}
            if len(types) == 1:
                return Turns.of_rows(stack(list(value)))
    raise error(
        f"`zip` goes over a tensor and {shown(value)} together: beside tensors it takes "
        "ranges, and lists of numbers of one type or of tensors of one shape",
        "for i in range(len(rows)): ...  # over a list of other things",
    )


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
