"""Tensors of random numbers: of one distribution, integers, draws by probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ..compiler.ir import primitives as p
from ..compiler.ir import promotion
from ..core.devices import DeviceLike, as_device
from ..core.dispatch import apply
from ..core.operands import cast
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import float32, float64, int8, int16, int64, uint8
from . import elementwise as e
from . import movement as m
from .basic_draws import (
    check_range,
    drawn_bits,
    float_dtype,
    integer_bounds,
    integers_below,
    normal_numbers,
    of_parts,
    probabilities,
    probability,
    scaled,
    uniform,
    waiting_time,
)
from .creation import made_like
from .creation_options import as_dtype, finished
from .generator import Generator


@public(out=True)
def rand(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform numbers in [0, 1); so are both parts of complex ones."""
    wanted, place = float_dtype(dtype, "rand", or_complex=True), as_device(device)
    result = of_parts(m.as_sizes(size), wanted, lambda *own: uniform(*own, generator, place))
    return finished(result, requires_grad)


@public(out=True)
def randn(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from the standard normal distribution, complex ones with a variance of 1, too."""
    wanted = float_dtype(dtype, "normal_kernel_cpu", or_complex=True)
    result = normal_numbers(m.as_sizes(size), wanted, generator, as_device(device))
    return finished(result, requires_grad)


@public(out=True)
def randint(
    low: int = 0,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers in [low, high), int64 unless `dtype` says otherwise; `low` may be left out.

    >>> import tgraph as tg
    >>> tg.randint(10, (2, 3)).shape
    tgraph.Size([2, 3])
    """
    if size is None:
        low, high, size = 0, low, high
    if size is None:
        raise TypeError("randint() missing the size: randint(high, size), randint(low, high, size)")
    for name, each in (("low", low), ("high", high)):
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            kind = type(each).__name__
            raise TypeError(f"randint(): argument '{name}' must be int, not {kind}")
    if high <= low:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got {low} >= {high}")
    wanted = as_dtype(dtype) or int64
    if wanted.is_complex:
        raise RuntimeError(f"randint(): expected a dtype of real numbers, got {wanted.name}")
    check_range(low, high, wanted)
    numbers = integers_below(m.as_sizes((size,)), high - low, generator, as_device(device))
    result = cast(e.add(numbers, low) if low else numbers, wanted)
    return finished(result, requires_grad)


@public(out=True)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """The integers below `n` in random order."""
    place = as_device(device)
    wanted = as_dtype(dtype) or int64
    if wanted in (uint8, int8, int16) and n - 1 > integer_bounds(wanted)[1]:
        raise RuntimeError(
            f"randperm(): n = {n} cannot be converted to {wanted.name} without overflow"
        )
    order = apply(p.argsort, drawn_bits((n,), generator, place), count=n, descending=False)
    return finished(cast(order, wanted), requires_grad)


@public(out=True)
def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Normal numbers with mean and standard deviation, which may be tensors."""
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    tensors = [each for each in (mean, std) if isinstance(each, Tensor)]
    if size is not None and tensors:
        raise TypeError("normal(): a size is for a mean and std that are numbers, not tensors")
    if size is None:
        shapes = [each._type.shape if isinstance(each, Tensor) else () for each in (mean, std)]
        size = m.broadcast_shapes(*shapes)
    wanted = as_dtype(dtype) or (tensors[0]._type.dtype if tensors else promotion.default_dtype)
    if isinstance(std, Tensor):
        std = _deviations(std)
    wanted = float_dtype(wanted, "normal", or_complex=True)
    if device is None and tensors:
        device = tensors[0]._type.device
    drawn = normal_numbers(m.as_sizes((size,)), wanted, generator, as_device(device))
    if wanted.is_complex:
        return cast(e.add(e.mul(drawn, std), mean), wanted)
    return scaled(drawn, std, mean, wanted)


@planned
def _deviations(std: Tensor) -> Tensor:
    """The elements, none of which may be below 0."""
    if std._type.dtype.is_complex:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    message = "normal expects all elements of std >= 0.0"
    return apply(p.require, e.logical_not(e.lt(std, 0)), std, message=message)


@public(method=True, out=True)
@planned
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Ones with the probabilities that the elements give, or all with `p`, else zeros.

    RuntimeError for elements outside of 0 to 1, in compiled code too.
    """
    shape, dtype, device = input._type
    if p is not None:
        return cast(e.lt(uniform(shape, float32, generator, device), probability(p)), dtype)
    if not dtype.is_floating_point:
        raise NotImplementedError(f'"bernoulli_tensor_cpu_p_" not implemented for {dtype.name}')
    chances = probabilities(input)
    return cast(e.lt(uniform(shape, dtype, generator, device), chances), dtype)


def _weights(input: Tensor) -> Tensor:
    """The weights of a distribution, of which not all of a row may be 0."""
    weights = _distribution(input)
    holds = e.logical_and(e.ge(weights, 0), e.lt(weights, math.inf))
    message = "probability tensor contains either `inf`, `nan` or element < 0"
    weights = apply(p.require, holds, weights, message=message)
    total = apply(p.sum_, cast(weights, float64), axes=(input.ndim - 1,), keepdims=True)
    message = "invalid multinomial distribution (sum of probabilities <= 0)"
    return apply(p.require, e.gt(total, 0), weights, message=message)


@public(method=True, out=True)
@planned
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Indices drawn with probabilities proportional to the elements of the last dimension.

    The index that comes first where each waits for an exponentially distributed time, at the rate
    of its weight. Memory grows with the number of samples times the number of weights.
    RuntimeError, in compiled code too, for weights that are negative, infinite or NaN, and where
    all of a row are 0.
    """
    weights = _weights(input)
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights._type.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    shape, dtype, device = weights._type
    rows = (*shape[:-1], num_samples, shape[-1]) if replacement else shape
    wide = dtype if dtype is float64 else float32
    chances = uniform(rows, wide, generator, device)
    times = e.maximum(cast(waiting_time(chances), wide), 2.0**-30)
    scores = e.div(cast(m.unsqueeze(weights, -2) if replacement else weights, wide), times)
    if replacement:
        return apply(p.argmax, scores, axes=(len(rows) - 1,), keepdims=False)
    order = scores.argsort(-1, descending=True)
    return m.clone(m.narrow(order, -1, 0, num_samples))


def _distribution(input: Tensor) -> Tensor:
    if not input._type.dtype.is_floating_point:
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: "
            f"{input._type.dtype.name}"
        )
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    return input.detach()


@public()
def rand_like(input: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
    """`rand` with the shape, dtype and device of `input`."""
    return _drawn_like(input, partial(rand, input._type.shape), dtype, options)


@public()
def randn_like(input: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
    """`randn` with the shape, dtype and device of `input`."""
    return _drawn_like(input, partial(randn, input._type.shape), dtype, options)


@public()
def randint_like(
    input: Tensor,
    low: int | None = None,
    high: int | None = None,
    *,
    dtype: Any = None,
    **options: Any,
) -> Tensor:
    """`randint` with the shape, dtype and device of `input`; `low` may be left out."""
    if low is None and high is None:
        raise TypeError("randint_like() missing a bound: randint_like(input, high)")
    low, high = (low or 0, high) if high is not None else (0, low)
    return _drawn_like(input, partial(randint, low, high, input._type.shape), dtype, options)


def _drawn_like(
    input: Tensor, draw: Callable[..., Tensor], dtype: Any, options: dict[str, Any]
) -> Tensor:
    """What `draw` gives of the type of `input` unless another one is given, in its order."""
    place, memory_format = options.pop("device", None), options.pop("memory_format", None)
    requires_grad = options.pop("requires_grad", False)
    device = input._type.device if place is None else place
    drawn = draw(dtype=as_dtype(dtype) or input._type.dtype, device=device, **options)
    return finished(made_like(input, drawn, memory_format), requires_grad)
