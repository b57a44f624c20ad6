"""Uniform and normal numbers and integers from counters, which others are made of.

Numbers come from Philox 4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
2011): a function of the generator's seed, a counter that every call moves on by one, and the
position of the element. The same seed therefore gives the same numbers, eager and compiled, to the
last bit: logarithms and cosines are computed in float64 and rounded to float32, which hides by how
little one library's differ from another's (all 2**24 arguments are tested), and products are exact
in float64, so that it is the same whether or not they are fused with a sum. Only numbers of float64
drawn by a logarithm or cosine may differ in their last bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.ir import primitives as p
from ..compiler.ir import promotion
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.operands import as_operand, cast
from ..core.planned import planned
from ..core.tensor import Tensor
from ..runtime.device import CPU, Device
from ..runtime.dtypes import DType, bool_, float32, float64, int64, uint64
from . import elementwise as e
from . import movement as m
from .creation_options import as_dtype, check_sizes
from .generator import Generator, default_generator


def check_range(low: int, high: int, dtype: DType) -> None:
    """RuntimeError for integers in [low, high) that the dtype does not have."""
    if dtype.is_floating_point or dtype.is_complex:
        return
    bounds = (0, 1) if dtype is bool_ else integer_bounds(dtype)
    for name, each in (("from", low), ("to - 1", high - 1)):
        if not bounds[0] <= each <= bounds[1]:
            raise RuntimeError(f"{name} is out of bounds for {dtype.name}, got {each}")


def integer_bounds(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest integer of a dtype."""
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def drawn_bits(shape: tuple[int, ...], generator: Generator | None, device: Device) -> Tensor:
    """Words of 32 bits: the next call of the generator, a word for each element."""
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(
            f"argument 'generator' must be tgraph.Generator, not {type(generator).__name__}"
        )
    check_sizes(shape)
    key, counter = current_context().draw_from(generator or default_generator, device)
    if device is CPU:
        return apply(p.random_bits, key, counter, shape=shape)
    return apply(p.random_bits, key, counter, shape=shape, device=device)


@planned
def uniform(
    shape: tuple[int, ...],
    dtype: DType,
    generator: Generator | None = None,
    device: Device = CPU,
) -> Tensor:
    """Numbers in [0, 1), multiples of 2**-24 (2**-53 for float64), in one call's counter."""
    if dtype is float64:
        words = drawn_bits((2, *shape), generator, device)
        high = cast(e.bitwise_right_shift(m.select(words, 0, 0), 5), float64)
        low = cast(e.bitwise_right_shift(m.select(words, 0, 1), 6), float64)
        return e.mul(e.add(e.mul(high, 2.0**26), low), 2.0**-53)
    kept = 24 if dtype is float32 else 11 if dtype.name == "float16" else 8
    words = e.bitwise_right_shift(drawn_bits(shape, generator, device), 32 - kept)
    return cast(e.mul(cast(words, float32), 2.0**-kept), dtype)


_SINE_OF_TURNS = {  # sin(2 pi z) / z in z**2, for |z| <= 1/4 (tools/fit_polynomials.py)
    "float32": (
        6.283185307046689,
        -41.34170209692579,
        81.60522369011294,
        -76.70417025179891,
        42.00779713394504,
        -14.381390760195016,
    ),
    "float64": (
        6.283185307179586,
        -41.34170224039958,
        81.60524927603468,
        -76.70585974901206,
        42.05869372651455,
        -15.094635769221755,
        3.819827925238541,
        -0.7168305222605351,
        0.09753718457436954,
    ),
}


def _cosine_of_turns(turns: Tensor, dtype: DType) -> Tensor:
    """cos(2 pi turns) in float64, for turns in [0, 1), as precise as `dtype` needs.

    Those are multiples of a small number, so that which part of a turn it is can be told exactly: a
    cosine of any number would have to find that out first, which takes most of its time. Sums and
    products give the same bits on every device.
    """
    quarter = e.sub(e.abs(e.sub(turns, 0.5)), 0.25)  # of whose turns the sine is that cosine
    square = e.mul(quarter, quarter)
    *rest, total = _SINE_OF_TURNS["float64" if dtype is float64 else "float32"]
    value: Any = total
    for coefficient in reversed(rest):
        value = e.add(e.mul(square, value), coefficient)
    return e.mul(quarter, value)


@planned
def real_normal_numbers(
    shape: tuple[int, ...], dtype: DType, generator: Generator | None, device: Device
) -> Tensor:
    """Box and Muller (1958): the radius from one uniform number, the angle from another."""
    wide = dtype if dtype is float64 else float32
    pair = uniform((2, *shape), wide, generator, device)
    chance, turns = m.select(pair, 0, 0), cast(m.select(pair, 0, 1), float64)
    radius = _rounded(e.sqrt(e.mul(waiting_time(chance), 2)), wide)
    along = _rounded(_cosine_of_turns(turns, wide), wide)
    return cast(cast(e.mul(radius, along), wide), dtype)


def waiting_time(chance: Tensor) -> Tensor:
    """-log(1 - chance) in float64."""
    return e.neg(e.log(e.sub(1, cast(chance, float64))))


def _rounded(x: Tensor, dtype: DType) -> Tensor:
    """Numbers of float64 that `dtype` has; products of two of them are exact, but for float64."""
    return cast(cast(x, dtype), float64)


def scaled(drawn: Tensor, scale: Any, shift: Any, dtype: DType) -> Tensor:
    """`drawn * scale + shift`, rounded once. Numbers are rounded to float32 first."""
    wide = dtype if dtype is float64 else float32
    factor, term = (
        cast(as_operand(each, each._type.dtype if isinstance(each, Tensor) else wide, "random",
                        drawn._type.device), float64)
        for each in (scale, shift)
    )  # fmt: skip
    return cast(e.add(e.mul(cast(drawn, float64), factor), term), dtype)


def of_parts(
    shape: tuple[int, ...], dtype: DType, draw: Callable[[tuple[int, ...], DType], Tensor]
) -> Tensor:
    """What `draw` gives; for complex numbers it draws the two parts of each."""
    if not dtype.is_complex:
        return draw(shape, dtype)
    return apply(p.view_as_complex, draw((*shape, 2), dtype.to_real()))


def normal_numbers(
    shape: tuple[int, ...], dtype: DType, generator: Generator | None, device: Device
) -> Tensor:
    """Standard normal numbers; those of complex ones have parts of half the variance."""
    if not dtype.is_complex:
        return real_normal_numbers(shape, dtype, generator, device)
    return of_parts(
        shape,
        dtype,
        lambda *own: scaled(
            real_normal_numbers(*own, generator, device), math.sqrt(0.5), 0.0, own[1]
        ),
    )


def float_dtype(dtype: Any, operation: str, or_complex: bool = False) -> DType:
    """The dtype that is meant, which has to be one of floats, or of complex numbers."""
    wanted = as_dtype(dtype) or promotion.default_dtype
    if not (wanted.is_floating_point or (or_complex and wanted.is_complex)):
        raise NotImplementedError(f'"{operation}" not implemented for {wanted.name}')
    return wanted


def integers_below(
    shape: tuple[int, ...], count: int, generator: Generator | None, device: Device
) -> Tensor:
    """Integers in [0, count) as int64: the high half of a product, or a remainder.

    Of a `count` above 2**63 some are negative: what the same 64 bits mean.
    """
    if count < 1 << 31:
        words = cast(drawn_bits(shape, generator, device), int64)
        return e.bitwise_right_shift(e.mul(words, count), 32)
    words = cast(drawn_bits((2, *shape), generator, device), int64)
    high, low = m.select(words, 0, 0), m.select(words, 0, 1)
    if count > 1 << 63:
        whole = cast(e.add(e.bitwise_left_shift(high, 32), low), uint64)
        return cast(e.remainder(whole, count), int64)
    wide = e.add(e.bitwise_left_shift(e.bitwise_right_shift(high, 1), 32), low)
    return wide if count == 1 << 63 else e.remainder(wide, count)


def probability(p: float) -> float:
    """The number, which must be a probability."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return p


@planned
def probabilities(input: Tensor) -> Tensor:
    """The elements, which must be probabilities."""
    chances = input.detach()
    holds = e.logical_and(e.ge(chances, 0), e.le(chances, 1))
    message = "Expected p_in >= 0 && p_in <= 1 to be true, but got false."
    return apply(p.require, holds, chances, message=message)
