"""Signs, exponents and neighbours of numbers; common divisors of whole ones."""

from __future__ import annotations

import math

import numpy as np

from ..compiler.ir import TensorType
from ..core.complex_parts import conjugate, part
from ..core.composite import composite
from ..core.operands import Operand, cast, promote, promote_float, require_tensor, result_type
from ..core.planned import planned
from ..core.public import public
from ..core.return_types import frexp as MantissaAndExponent
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import bool_, float64, int8, int16, int32, int64
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .bits import bits_as
from .loops import while_loop

_SIGNED = {each.itemsize: each for each in (int8, int16, int32, int64)}

# --- signs ---------------------------------------------------------------------------------------


@public(method=True, out="exact")
def signbit(input: Tensor) -> Tensor:
    """Whether a number has the sign of negative ones; -0.0 has, and so may NaN.

    >>> import tgraph as tg
    >>> tg.signbit(tg.tensor([1.0, -0.0, -2.0]))
    tensor([False,  True,  True])
    """
    return _signbit(require_tensor(input, "signbit"))


@planned
def _signbit(x: Tensor) -> Tensor:
    dtype = x._type.dtype
    if dtype is bool_:
        return e.logical_and(x, False)
    return e.lt(bits_as(x, _SIGNED[dtype.itemsize]) if dtype.is_floating_point else x, 0)


@public(method=True, inplace=True, out=True)
def copysign(input: Tensor, other: Operand) -> Tensor:
    """The size of `input` with the sign of `other`.

    >>> import tgraph as tg
    >>> tg.copysign(tg.tensor([1.0, -2.0]), tg.tensor([-3.0, 0.0]))
    tensor([-1.,  2.])
    """
    return _copysign(*promote_float("copysign", input, other))


@composite("copysign")
@planned
def _copysign(x: Tensor, y: Tensor) -> Tensor:
    size = e.abs(x)
    return e.where(_signbit(y), e.neg(size), size)


@input_vjp(_copysign, 0, saves=(0, OUTPUT))
@planned
def _copysign_first(g: Tensor, out: Tensor, x: Tensor, y: TensorType) -> Tensor:
    return e.mul(g, e.mul(e.sgn(x), e.sgn(out)))


@input_vjp(_copysign, 1)
@planned
def _copysign_second(g: Tensor, out: TensorType, x: TensorType, y: TensorType) -> Tensor:
    return e.mul(g, 0)


@public(method=True, inplace=True, out="exact")
@planned
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 for negative numbers and NaN, 1 for positive ones, `values` at 0.

    >>> import tgraph as tg
    >>> tg.heaviside(tg.tensor([-1.0, 0.0, 2.0, tg.nan]), tg.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000, 0.0000])
    """
    require_tensor(values, "heaviside", "values")
    if require_tensor(input, "heaviside")._type.dtype is not values._type.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    if input._type.dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    return e.where(e.eq(input, 0), values, cast(e.gt(input, 0), input._type.dtype))


@public(method=True, out="exact")
def isposinf(input: Tensor) -> Tensor:
    """Where an element is inf."""
    return e.logical_and(e.isinf(input), e.gt(input, 0))


@public(method=True, out="exact")
def isneginf(input: Tensor) -> Tensor:
    """Where an element is -inf."""
    return e.logical_and(e.isinf(input), e.lt(input, 0))


@public(method=True)
def isreal(input: Tensor) -> Tensor:
    """Where the imaginary part is zero."""
    if require_tensor(input, "isreal")._type.dtype.is_complex:
        return e.eq(part(input, 1), 0)
    return e.logical_or(e.eq(input, input), True)


@public(method=True, inplace=True, out="exact")
def conj_physical(input: Tensor) -> Tensor:
    """The conjugates; see `conj`."""
    x = require_tensor(input, "conj_physical")
    return conjugate(x) if x._type.dtype.is_complex else m.clone(x)


@public(method=True)
def resolve_conj(input: Tensor) -> Tensor:
    """`input` itself: conjugates have been computed where `conj` was called."""
    return require_tensor(input, "resolve_conj")


@public(method=True)
def resolve_neg(input: Tensor) -> Tensor:
    """`input` itself: no tensor is negated where it is read."""
    return require_tensor(input, "resolve_neg")


# --- exponents -----------------------------------------------------------------------------------


@public(method=True, out="exact")
def frexp(input: Tensor) -> MantissaAndExponent:
    """`input = mantissa * 2**exponent`, the size of the mantissa being in [0.5, 1).

    >>> import tgraph as tg
    >>> tg.frexp(tg.tensor([8.0, 0.0]))[1]
    tensor([4, 0], dtype=tgraph.int32)
    """
    if not require_tensor(input, "frexp")._type.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    exponent = _exponent(input.detach())
    wide = cast(exponent, float64)
    half = e.floor(e.mul(wide, 0.5))  # as 2**exponent itself may be infinite, or 0
    mantissa = e.mul(cast(input, float64), e.exp2(e.neg(half)))
    mantissa = e.mul(mantissa, e.exp2(e.sub(half, wide)))
    whole = e.logical_or(e.eq(input, 0), e.logical_not(e.isfinite(input)))
    return MantissaAndExponent(e.where(whole, input, cast(mantissa, input._type.dtype)), exponent)


@planned
def _exponent(x: Tensor) -> Tensor:
    """The exponent of `frexp`; what rounding of the logarithm got wrong is put right."""
    size = e.abs(cast(x, float64))
    plain = e.logical_and(e.gt(size, 0), e.isfinite(size))
    size = e.where(plain, size, 0.5)
    small = e.lt(size, 2.0**-1000)
    size = e.where(small, e.mul(size, 2.0**60), size)
    guess = e.floor(e.log2(size))
    half = e.floor(e.mul(guess, 0.5))
    ratio = e.mul(e.mul(size, e.exp2(e.neg(half))), e.exp2(e.sub(half, guess)))
    guess = e.where(
        e.ge(ratio, 2), e.add(guess, 1), e.where(e.lt(ratio, 1), e.sub(guess, 1), guess)
    )
    guess = e.sub(guess, e.where(small, 60.0, 0.0))
    return cast(e.where(plain, e.add(guess, 1), 0.0), int32)


@public(method=True, inplace=True, out=True)
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next number after `input` in the direction of `other`.

    >>> import tgraph as tg
    >>> tg.nextafter(tg.tensor(1.0), tg.tensor(2.0)) - 1
    tensor(1.1921e-07)
    """
    x, y = promote("nextafter", input, other)
    if not x._type.dtype.is_floating_point:
        raise NotImplementedError(f'"nextafter" not implemented for {x._type.dtype.name}')
    return _nextafter(x, y)


@composite("nextafter")
@planned
def _nextafter(x: Tensor, y: Tensor) -> Tensor:
    """By the spacing of numbers, which towards 0 from a power of 2 is half as large."""
    dtype = x._type.dtype
    kinds = {"float32": (24, -149), "float64": (53, -1074), "float16": (11, -24),
             "bfloat16": (8, -133)}  # fmt: skip
    digits, least = kinds[dtype.name]
    size = e.abs(x)
    exponent = e.where(e.eq(x, 0), -2000.0, cast(_exponent(x), float64))
    inward = e.lt(e.mul(e.sgn(x), e.sub(y, x)), 0)
    inward = e.where(e.isinf(x), True, inward)
    is_power = e.eq(cast(size, float64), e.exp2(e.sub(exponent, 1)))
    lower = e.sub(exponent, cast(e.logical_and(inward, is_power), float64))
    spacing = e.exp2(e.clamp(e.sub(lower, digits), min=float(least)))
    up = e.where(e.gt(y, x), 1.0, -1.0)
    moved = cast(e.add(cast(x, float64), e.mul(spacing, up)), dtype)
    largest = float(np.ldexp(1 - 2.0**-digits, {"float16": 16}.get(dtype.name, 128)))
    if dtype is float64:
        largest = float(np.finfo(np.float64).max)
    moved = e.where(e.isinf(x), e.mul(e.sgn(x), largest), moved)
    moved = e.where(e.eq(x, y), y, moved)
    return e.where(e.logical_or(e.isnan(x), e.isnan(y)), math.nan, moved)


@input_vjp(_nextafter, 0, saves=(0, 1))
@planned
def _nextafter_first(g: Tensor, out: TensorType, x: Tensor, y: Tensor) -> Tensor:
    return e.where(e.eq(x, y), 0, g)


@input_vjp(_nextafter, 1)
@planned
def _nextafter_second(g: Tensor, out: TensorType, x: TensorType, y: TensorType) -> Tensor:
    return e.mul(g, 0)


# --- whole numbers -------------------------------------------------------------------------------


def _whole(name: str, x: Operand, y: Operand) -> tuple[Tensor, ...]:
    if result_type(x, y).is_differentiable or result_type(x, y) is bool_:
        raise NotImplementedError(f'"{name}" not implemented for {result_type(x, y).name}')
    return promote(name, x, y)


@public(method=True, inplace=True, out=True)
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor of whole numbers.

    >>> import tgraph as tg
    >>> tg.gcd(tg.tensor([12, 0]), tg.tensor([18, -5]))
    tensor([6, 5])
    """
    return _gcd(*_whole("gcd", input, other))


@planned
def _gcd(x: Tensor, y: Tensor) -> Tensor:
    """By Euclid, as long as there is a remainder anywhere."""
    # What a compiled loop carries is row-major.
    x, y = m.contiguous(e.abs(e.add(x, e.mul(y, 0)))), m.contiguous(e.abs(e.add(y, e.mul(x, 0))))

    def left(a: Tensor, b: Tensor) -> Tensor:
        return r.any(e.ne(b, 0))

    def step(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        done = e.eq(b, 0)
        return e.where(done, a, b), e.where(done, 0, e.remainder(a, e.where(done, 1, b)))

    found: Tensor = while_loop(left, step, (x, y))[0]
    return found


@public(method=True, inplace=True, out=True)
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple of whole numbers; 0 where one is 0.

    >>> import tgraph as tg
    >>> tg.lcm(tg.tensor([4, 0]), tg.tensor([6, 5]))
    tensor([12,  0])
    """
    return _lcm(*_whole("lcm", input, other))


@planned
def _lcm(x: Tensor, y: Tensor) -> Tensor:
    common = _gcd(x, y)
    none = e.eq(common, 0)
    quotient = e.div(x, e.where(none, 1, common), rounding_mode="trunc")
    if x._type.dtype.itemsize < 4:  # the product of positive numbers wraps, as that of C's ints
        return e.where(none, 0, e.mul(e.abs(quotient), e.abs(y)))
    return e.where(none, 0, e.abs(e.mul(quotient, y)))
