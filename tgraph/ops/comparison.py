"""Comparison, logic and bits of one element at a time.

Operands broadcast and promote as in `elementwise`; comparisons give booleans.
"""

from __future__ import annotations

import builtins
from typing import Any

from ..compiler.ir import Primitive
from ..compiler.ir import primitives as p
from ..core.complex_parts import part
from ..core.dispatch import apply
from ..core.operands import (
    Operand,
    as_operand,
    common_device,
    is_scalar,
    on_device,
    promote_pair,
    require_tensor,
)
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.device import Device
from ..runtime.dtypes import bool_

# --- comparison --------------------------------------------------------------------------------


@public(method=True, inplace=True, out=True)
def eq(input: Operand, other: Operand) -> Tensor:
    """Where two elements are equal."""
    return apply(p.eq, *promote_pair("eq", input, other))


@public(method=True, inplace=True, out=True, aliases=("not_equal",))
def ne(input: Operand, other: Operand) -> Tensor:
    """Where two elements differ; NaN differs from everything."""
    return apply(p.ne, *promote_pair("ne", input, other))


@public(method=True, inplace=True, out=True, aliases=("less",))
def lt(input: Operand, other: Operand) -> Tensor:
    """Where `input < other`."""
    return apply(p.lt, *promote_pair("lt", input, other))


@public(method=True, inplace=True, out=True, aliases=("less_equal",))
def le(input: Operand, other: Operand) -> Tensor:
    """Where `input <= other`."""
    return apply(p.le, *promote_pair("le", input, other))


@public(method=True, inplace=True, out=True, aliases=("greater",))
def gt(input: Operand, other: Operand) -> Tensor:
    """Where `input > other`."""
    return apply(p.gt, *promote_pair("gt", input, other))


@public(method=True, inplace=True, out=True, aliases=("greater_equal",))
def ge(input: Operand, other: Operand) -> Tensor:
    """Where `input >= other`."""
    return apply(p.ge, *promote_pair("ge", input, other))


@public(method=True, out=True)
def isnan(input: Tensor) -> Tensor:
    """Where elements are NaN; complex numbers where one of their parts is."""
    if input._type.dtype.is_complex:
        return logical_or(isnan(part(input, 0)), isnan(part(input, 1)))
    if input._type.dtype.is_floating_point:
        return apply(p.isnan, input)
    return ne(input, input)


@public(method=True, out=True)
def isinf(input: Tensor) -> Tensor:
    """Where elements are infinite; complex numbers where one of their parts is."""
    if input._type.dtype.is_complex:
        return logical_or(isinf(part(input, 0)), isinf(part(input, 1)))
    if input._type.dtype.is_floating_point:
        return apply(p.isinf, input)
    return ne(input, input)


@public(method=True, out=True)
def isfinite(input: Tensor) -> Tensor:
    """Where elements are neither NaN nor infinite."""
    return logical_not(logical_or(isnan(input), isinf(input)))


# --- logic -------------------------------------------------------------------------------------


def _truth(x: Operand, device: Device) -> Tensor:
    if is_scalar(x):
        return as_operand(builtins.bool(x), bool_, "logical", device)
    tensor = require_tensor(x, "logical")
    truth = tensor if tensor._type.dtype is bool_ else ne(tensor, 0)
    return truth if truth._type.shape else on_device(truth, device)


@public(method=True, inplace=True, out=True)
def logical_not(input: Tensor) -> Tensor:
    """Where elements are zero."""
    return apply(p.logical_not, *_truths(input))


def _truths(*operands: Operand) -> tuple[Tensor, ...]:
    device = common_device(*operands)
    return tuple(_truth(each, device) for each in operands)


@public(method=True, inplace=True, out=True)
def logical_and(input: Tensor, other: Operand) -> Tensor:
    """Where both elements are nonzero."""
    return apply(p.logical_and, *_truths(input, other))


@public(method=True, inplace=True, out=True)
def logical_or(input: Tensor, other: Operand) -> Tensor:
    """Where either element is nonzero."""
    return apply(p.logical_or, *_truths(input, other))


@public(method=True, inplace=True, out=True)
def logical_xor(input: Tensor, other: Operand) -> Tensor:
    """Where exactly one element is nonzero."""
    return apply(p.logical_xor, *_truths(input, other))


def _bitwise(of_integers: Primitive, of_bools: Primitive | None, a: Any, b: Any) -> Tensor:
    x, y = promote_pair(of_integers.name, a, b)
    if x._type.dtype.is_differentiable:
        raise NotImplementedError(
            f'"{of_integers.name}_cpu" not implemented for {x._type.dtype.name}'
        )
    if x._type.dtype is bool_ and of_bools is not None:
        return apply(of_bools, x, y)
    return apply(of_integers, x, y)


@public(method=True, inplace=True, out=True)
def bitwise_and(input: Operand, other: Operand) -> Tensor:
    """Bits set in both; for booleans, logical and."""
    return _bitwise(p.bitwise_and, p.logical_and, input, other)


@public(method=True, inplace=True, out=True)
def bitwise_or(input: Operand, other: Operand) -> Tensor:
    """Bits set in either; for booleans, logical or."""
    return _bitwise(p.bitwise_or, p.logical_or, input, other)


@public(method=True, inplace=True, out=True)
def bitwise_xor(input: Operand, other: Operand) -> Tensor:
    """Bits set in exactly one; for booleans, logical exclusive or."""
    return _bitwise(p.bitwise_xor, p.logical_xor, input, other)


@public(method=True, inplace=True, out="exact")
def bitwise_not(input: Tensor) -> Tensor:
    """All bits inverted; for booleans, logical not."""
    dtype = require_tensor(input, "bitwise_not")._type.dtype
    if dtype.is_differentiable:
        raise NotImplementedError(f"bitwise_not(): expected integers or booleans, got {dtype.name}")
    return apply(p.logical_not if dtype is bool_ else p.bitwise_not, input)


def invert(self: Tensor) -> Tensor:
    """`~`, of integers and booleans alone."""
    if self._type.dtype.is_differentiable:
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return bitwise_not(self)


@public(method=True, inplace=True, out=True)
def bitwise_left_shift(input: Operand, other: Operand) -> Tensor:
    """Bits moved towards the higher places."""
    return _bitwise(p.shift_left, None, input, other)


@public(method=True, inplace=True, out=True)
def bitwise_right_shift(input: Operand, other: Operand) -> Tensor:
    """Bits moved towards the lower places, keeping the sign."""
    return _bitwise(p.shift_right, None, input, other)
