"""Result types of operations for all pairs of types: what PyTorch gives, as a table for tests.

Run: python -m tools.promotion_table tests/compat/data/promotion.txt   (needs PyTorch)

A line is an operation and one letter for each pair of `PAIRS`: that of the result's type in
`LETTERS`, or a capital one where it is refused, that of the error's class in `call_table.LETTERS`.
"""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .call_table import letters

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128", "uint16", "uint32", "uint64",
)  # fmt: skip
UNSIGNED = DTYPES[-3:]
LETTERS = dict(zip(DTYPES, "abcdefghijklmno", strict=True))
NUMBERS = (True, 2, 2.5, 1j)
Call = Callable[[Any, Any, Any], Any]


def pairs() -> Iterator[tuple[str, bool, Any, bool]]:
    """First type, whether it has no dimensions, the second type or a number, the same of it."""
    for first in DTYPES:
        for second in DTYPES:
            yield from (
                (first, *flags)
                for flags in ((False, second, False), (False, second, True), (True, second, False))
            )
        yield from ((first, False, number, True) for number in NUMBERS)


PAIRS = list(pairs())


def _function(name: str) -> Call:
    return lambda library, a, b: getattr(library, name)(a, b)


def _method(name: str) -> Call:
    return lambda library, a, b: getattr(a, name)(b)


def _operator(name: str) -> Call:
    return lambda library, a, b: getattr(operator, name)(a, b)


def _mask(library: Any, a: Any) -> Any:
    return library.ones(a.shape, dtype=library.bool)


OPERATIONS: dict[str, Call] = {
    **{name: _function(name) for name in (
        "add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "eq", "lt",
        "bitwise_and", "bitwise_or", "bitwise_left_shift", "copysign", "float_power", "isclose",
        "maximum", "atan2", "logical_and", "ldexp", "matmul", "result_type",
    )},
    **{name: _method(name) for name in (
        "add_", "sub_", "mul_", "div_", "floor_divide_", "remainder_", "pow_", "bitwise_and_",
        "eq_", "copy_", "fill_", "logical_and_",
    )},
    **{name: _operator(name) for name in ("truediv", "floordiv", "mod", "xor", "lshift")},
    "rsub": lambda library, a, b: b - a,
    "rpow": lambda library, a, b: b**a,
    "rfloordiv": lambda library, a, b: b // a,
    "div, trunc": lambda library, a, b: library.div(a, b, rounding_mode="trunc"),
    "where": lambda library, a, b: library.where(library.ones(2, dtype=library.bool), a, b),
    "lerp": lambda library, a, b: library.lerp(a, b, 0.5),
    "addcmul": lambda library, a, b: library.addcmul(a, b, b),
    "add, alpha": lambda library, a, b: library.add(a, b, alpha=2),
    "cat": lambda library, a, b: library.cat([a, b]),
    "stack": lambda library, a, b: library.stack([a, b]),
    "masked_fill": lambda library, a, b: a.masked_fill(_mask(library, a), b),
    "index_put": lambda library, a, b: a.index_put((library.tensor([0, 1]),), b),
    "clamp": lambda library, a, b: library.clamp(a, min=b),
    "sum, dtype": lambda library, a, b: a.sum(dtype=b.dtype),
    "can_cast": lambda library, a, b: library.zeros(
        (), dtype=library.int8 if library.can_cast(a.dtype, b.dtype) else library.bool
    ),
}  # fmt: skip


def found(library: Any, call: Call, pair: tuple[str, bool, Any, bool]) -> Any:
    """What an operation of `library` gives for a pair, or the error that it raises."""
    first, is_scalar, second, no_dimensions = pair
    a = library.ones(() if is_scalar else 2, dtype=getattr(library, first))
    b = second
    if isinstance(second, str):
        b = library.ones(() if no_dimensions else 2, dtype=getattr(library, second))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(library, a, b)
    except Exception as error:
        return error


def possible(result: Any) -> list[str]:
    """The letter of the type of a result, or those of the classes of an error."""
    if isinstance(result, Exception):
        return letters(result)
    return [LETTERS.get(str(getattr(result, "dtype", result)).rpartition(".")[2], "?")]


def line(library: Any, call: Call) -> str:
    return "".join(possible(found(library, call, pair))[0] for pair in PAIRS)


if __name__ == "__main__":
    import torch

    rows = [f"{name}: {line(torch, call)}\n" for name, call in OPERATIONS.items()]
    Path(sys.argv[1]).write_text("".join(rows))
