"""The standard's elementwise functions: those of `tgraph`, by the standard's names and rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core.operands import cast, is_scalar, require_tensor
from ..core.tensor import Tensor
from ..ops import elementwise as e
from ..ops.functions import FUNCTIONS
from .arguments import pair

UNARY = {
    name: name
    for name in (
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "conj", "cos", "cosh",
        "exp", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log10", "log1p",
        "log2", "logical_not", "negative", "positive", "real", "reciprocal", "signbit", "sin",
        "sinh", "sqrt", "square", "tan", "tanh", "trunc",
    )
} | {"bitwise_invert": "bitwise_not"}  # fmt: skip
"""The standard's name, and that of `tgraph`."""

BINARY = {
    name: name
    for name in (
        "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
        "bitwise_xor", "divide", "floor_divide", "greater", "greater_equal", "less", "less_equal",
        "maximum", "minimum", "multiply", "not_equal", "pow", "subtract",
    )
} | {"equal": "eq"}  # fmt: skip
_OF_TENSORS = (
    "copysign", "hypot", "logaddexp", "logical_and", "logical_or", "logical_xor", "nextafter",
)  # fmt: skip
"""Those of which `tgraph` has functions of tensors alone, without numbers."""


def _unary(name: str, own: str) -> Callable[[Tensor], Tensor]:
    function = FUNCTIONS[own]

    def call(x: Tensor, /) -> Tensor:
        return function(require_tensor(x, name, "x"))

    return _named(call, name, f"`tgraph.{own}` of each element.")


def _binary(name: str, own: str, of_tensors: bool) -> Callable[[Any, Any], Tensor]:
    function = FUNCTIONS[own]

    def call(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
        x1, x2 = pair(name, x1, x2)
        return function(*_as_tensors(x1, x2)) if of_tensors else function(x1, x2)

    doc = f"`tgraph.{own}` of elements in one place, of operands that broadcast and promote."
    return _named(call, name, doc)


def _as_tensors(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """A number as a tensor of the other operand's dtype."""
    if is_scalar(x1):
        return FUNCTIONS["full_like"](x2, x1), x2
    return x1, FUNCTIONS["full_like"](x1, x2) if is_scalar(x2) else x2


def _named(call: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


globals().update({name: _unary(name, own) for name, own in UNARY.items()})
globals().update({name: _binary(name, own, False) for name, own in BINARY.items()})
globals().update({name: _binary(name, name, True) for name in _OF_TENSORS})


def expm1(x: Tensor, /) -> Tensor:
    """`exp(x) - 1`, accurate near 0; of complex infinities and NaN as the standard has it.

    >>> import tgraph as tg
    >>> tg.array_api.expm1(tg.tensor([complex("-inf+infj"), complex("inf+0j")]))
    tensor([-1.+0.j, inf+0.j])
    """
    found = e.expm1(require_tensor(x, "expm1", "x"))
    if not found._type.dtype.is_complex:
        return found
    (size, angle), (real, imaginary) = (
        (FUNCTIONS["real"](each), FUNCTIONS["imag"](each)) for each in (x, found)
    )
    open_angle = e.logical_not(FUNCTIONS["isfinite"](angle))
    low = e.eq(size, -math.inf)
    high = e.logical_and(e.eq(size, math.inf), open_angle)
    real = e.where(low, -1.0, e.where(high, math.inf, e.add(real, 0.0)))  # no -0.0
    imaginary = e.where(e.eq(angle, 0), angle, imaginary)
    return FUNCTIONS["complex"](real, e.where(e.logical_and(low, open_angle), 0.0, imaginary))


def round(x: Tensor, /) -> Tensor:
    """Each element, or each part of a complex one, rounded; halves to the even neighbour."""
    if not require_tensor(x, "round", "x")._type.dtype.is_complex:
        return e.round(x)
    return FUNCTIONS["complex"](e.round(FUNCTIONS["real"](x)), e.round(FUNCTIONS["imag"](x)))


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; NaN of NaN, and x / abs(x) of complex numbers."""
    found = e.sgn(require_tensor(x, "sign", "x"))
    dtype = x._type.dtype
    if not dtype.is_differentiable:
        return found
    nan = complex(math.nan, math.nan) if dtype.is_complex else x
    return e.where(FUNCTIONS["isnan"](x), nan, found)


def remainder(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """What division leaves, with the sign of the divisor, which zeros have, too."""
    x1, x2 = pair("remainder", x1, x2)
    found = e.remainder(x1, x2)
    if not found._type.dtype.is_floating_point:
        return found
    below = e.neg(e.add(e.neg(found), 0.0))  # no other zero than -0.0
    return e.where(FUNCTIONS["less"](x2, 0), below, e.add(found, 0.0))


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Elements within bounds, numbers or tensors, as the dtype of `x`.

    >>> import tgraph as tg
    >>> tg.array_api.clip(tg.tensor([1, 5, 9]), 2, 8)
    tensor([2, 5, 8])
    """
    dtype = require_tensor(x, "clip", "x")._type.dtype
    low, high = (cast(each, dtype) if isinstance(each, Tensor) else each for each in (min, max))
    if low is None and high is None:
        return x.clone()
    return cast(e.clamp(x, low, high), dtype)


__all__ = [*UNARY, *BINARY, *_OF_TENSORS, "clip", "expm1", "remainder", "round", "sign"]
