"""Tensors filled with random numbers in place."""

from __future__ import annotations

import math
from typing import Any

from ..core.inplace import assign
from ..core.operands import cast
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import DType, bfloat16, bool_, float16, float32, float64
from . import elementwise as e
from .basic_draws import (
    check_range,
    float_dtype,
    integer_bounds,
    of_parts,
    probabilities,
    probability,
    real_normal_numbers,
    scaled,
    uniform,
    waiting_time,
)
from .generator import Generator
from .random import randint

_BELOW_LOW: Any = type("BelowLow", (), {"__repr__": lambda self: "..."})()
"""In the place of an upper bound: the lower one is it."""
_DIGITS = {float16: 11, bfloat16: 8, float32: 24, float64: 53}
"""Binary digits of floats: up to that power of two, all integers are there."""


# --- in place ----------------------------------------------------------------------------------


def _filled(
    self: Tensor, operation: str, or_complex: bool = False
) -> tuple[tuple[int, ...], DType]:
    return self._type.shape, float_dtype(self._type.dtype, operation, or_complex)


@public(function=False, method=True)
def uniform_(
    self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with uniform numbers in [a, b)."""
    if a > b:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found {a} > {b}")
    shape, dtype = _filled(self, "uniform_", or_complex=True)

    def draw(shape: tuple[int, ...], dtype: DType) -> Tensor:
        drawn = scaled(uniform(shape, dtype, generator, self._type.device), b - a, a, dtype)
        return e.where(e.ge(drawn, b), a, drawn)  # what was rounded up to the end

    return assign(self, of_parts(shape, dtype, draw), "uniform_")


@public(function=False, method=True)
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normal numbers."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    shape, dtype = _filled(self, "normal_", or_complex=True)
    scale = std * math.sqrt(0.5) if dtype.is_complex else std
    drawn = of_parts(
        shape,
        dtype,
        lambda *own: scaled(
            real_normal_numbers(*own, generator, self._type.device), scale, mean, own[1]
        ),
    )
    return assign(self, drawn, "normal_")


@public(function=False, method=True)
def bernoulli_(
    self: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Fill with ones with probability `p`, else zeros."""
    if isinstance(p, Tensor):
        p = probabilities(p)
    else:
        p = probability(p)
    if self._type.dtype.is_complex:
        raise NotImplementedError(
            f'"bernoulli_scalar_cpu_" not implemented for {self._type.dtype.name}'
        )
    drawn = e.lt(uniform(self._type.shape, float32, generator, self._type.device), p)
    return assign(self, cast(drawn, self._type.dtype), "bernoulli_")


@public(function=False, method=True)
def random_(
    self: Tensor,
    low: int | None = None,
    high: Any = _BELOW_LOW,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with integers in [low, high); with one argument, below it.

    Without either, or with None for `high`, up to the largest integer that the dtype has (of 63
    bits at most), of floats the largest up to which they have all integers.
    """
    dtype = self._type.dtype
    if dtype.is_complex:
        raise NotImplementedError(f'"random_kernel_cpu" not implemented for {dtype.name}')
    if high is _BELOW_LOW:
        low, high = (None, None) if low is None else (0, low)
    if high is None:
        high = _largest_drawn(dtype) + 1
    low = low or 0
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    check_range(low, high, dtype)
    drawn = randint(low, high, self._type.shape, generator=generator, device=self._type.device)
    return assign(self, cast(drawn, dtype), "random_")


def _largest_drawn(dtype: DType) -> int:
    if dtype is bool_:
        return 1
    if dtype.is_floating_point:
        return 1 << _DIGITS[dtype]
    return min(integer_bounds(dtype)[1], (1 << 63) - 1)


@public(function=False, method=True)
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers of rate `lambd`."""
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    shape, dtype = _filled(self, "exponential_")
    wide = dtype if dtype is float64 else float32
    times = cast(waiting_time(uniform(shape, wide, generator, self._type.device)), wide)
    return assign(self, cast(e.div(times, lambd), dtype), "exponential_")


@public(function=False, method=True)
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers whose logarithms are normal with mean and standard deviation."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    shape, dtype = _filled(self, "log_normal_")
    wide = dtype if dtype is float64 else float32
    drawn = scaled(real_normal_numbers(shape, wide, generator, self._type.device), std, mean, wide)
    return assign(self, cast(e.exp(cast(drawn, float64)), dtype), "log_normal_")


@public(function=False, method=True)
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers of Cauchy's distribution around `median`, with the scale `sigma`."""
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    if not self._type.dtype.is_floating_point:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {self._type.dtype.name}"
        )
    shape, dtype = _filled(self, "cauchy_")
    wide = dtype if dtype is float64 else float32
    chances = cast(uniform(shape, wide, generator, self._type.device), float64)
    drawn = cast(e.tan(e.mul(e.sub(chances, 0.5), math.pi)), wide)
    return assign(self, scaled(drawn, sigma, median, dtype), "cauchy_")


@public(function=False, method=True)
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials up to the first success, each of probability `p`."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    dtype = self._type.dtype
    if dtype is bool_ or dtype.is_complex:
        raise NotImplementedError(f'"geometric" not implemented for {dtype.name}')
    wide = dtype if dtype is float64 else float32
    times = waiting_time(uniform(self._type.shape, wide, generator, self._type.device))
    trials = e.ceil(e.div(times, -math.log1p(-p)))
    return assign(self, cast(e.maximum(trials, 1), dtype), "geometric_")
