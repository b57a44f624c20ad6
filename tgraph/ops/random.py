"""Random numbers from counters.

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
import os
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..compiler.ir import primitives as p
from ..compiler.ir import promotion
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.inplace import assign
from ..core.operands import Scalar, as_operand, cast, result_type
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.device import CPU, Device
from ..runtime.dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int64,
    uint8,
    uint64,
)
from . import elementwise as e
from . import movement as m
from .creation import DeviceLike, as_device, as_dtype, check_sizes

_DEFAULT_SEED = 67280421310721  # PyTorch's


class Generator:
    """A source of random numbers: a seed, and a counter of the calls made so far.

    >>> import tgraph as tg
    >>> g = tg.Generator().manual_seed(1)
    >>> a = tg.rand(3, generator=g)
    >>> tg.equal(a, tg.rand(3, generator=g.manual_seed(1)))
    True
    """

    def __init__(self, device: DeviceLike = "cpu") -> None:
        self.device = as_device(device)
        self._seed = _DEFAULT_SEED
        self.counter = 0
        current_context().seeded(self, self._seed)

    def manual_seed(self, seed: int) -> Generator:
        """Start again from `seed`, a number of 64 bits."""
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise RuntimeError(f"Overflow when unpacking long: seed {seed} has more than 64 bits")
        current_context().seeded(self, seed % (1 << 64))
        self.restart(seed, 0)
        return self

    def restart(self, seed: int, counter: int) -> None:
        """Go on from a seed and a number of calls."""
        self._seed, self.counter = seed % (1 << 64), counter

    def seed(self) -> int:
        """Start again from a seed that the operating system gives, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed in use."""
        return self._seed

    @property
    def seed_as_int64(self) -> int:
        """The seed's bits as a signed number, as the key of `random_bits` holds it."""
        return self._seed - (1 << 64) if self._seed >= 1 << 63 else self._seed

    def get_state(self) -> Tensor:
        """Seed and counter as an int64 tensor of two elements."""
        return current_context().random_state(self)

    def set_state(self, state: Tensor) -> Generator:
        """Go on from what `get_state` returned."""
        if tuple(state._type.shape) != (2,) or state._type.dtype is not int64:
            raise RuntimeError(
                "set_state() expected what get_state() gives, an int64 tensor of a seed and a "
                f"counter, got {state._type}; the state of another library's generator cannot go "
                "on here, manual_seed() starts anew"
            )
        seed, counter = state.tolist()
        self.restart(seed, counter)
        return self

    def clone_state(self) -> Generator:
        """A generator that goes on as this one would."""
        return generator_at(self._seed, self.counter, self.device)

    def graphsafe_get_state(self) -> NoReturn:
        """Refused: states are values here, as those of PyTorch's generators of a CPU."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator) -> NoReturn:
        """Refused, as `graphsafe_get_state` is."""
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def __reduce__(self) -> tuple[Any, ...]:
        return generator_at, (self._seed, self.counter, self.device)

    def __repr__(self) -> str:
        return f"<tgraph.Generator seed={self._seed} counter={self.counter}>"


def generator_at(seed: int, counter: int, device: Device) -> Generator:
    """A generator that goes on from a seed and a number of calls."""
    made = Generator(device)
    made.restart(seed, counter)
    return made


default_generator = Generator()


@public()
def manual_seed(seed: int) -> Generator:
    """Seed the default generator."""
    return default_generator.manual_seed(seed)


@public()
def seed() -> int:
    """Seed the default generator from the operating system; returns the seed."""
    return default_generator.seed()


@public()
def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


@public()
def get_rng_state() -> Tensor:
    """The state of the default generator."""
    return default_generator.get_state()


@public()
def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator back into a state."""
    default_generator.set_state(new_state)


# --- distributions -----------------------------------------------------------------------------


def _in_range(low: int, high: int, dtype: DType) -> None:
    """RuntimeError for integers in [low, high) that the dtype does not have."""
    if dtype.is_floating_point or dtype.is_complex:
        return
    bounds = (0, 1) if dtype is bool_ else _integer_bounds(dtype)
    for name, each in (("from", low), ("to - 1", high - 1)):
        if not bounds[0] <= each <= bounds[1]:
            raise RuntimeError(f"{name} is out of bounds for {dtype.name}, got {each}")


def _integer_bounds(dtype: DType) -> tuple[int, int]:
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def _bits(shape: tuple[int, ...], generator: Generator | None, device: Device) -> Tensor:
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
        words = _bits((2, *shape), generator, device)
        high = cast(e.bitwise_right_shift(m.select(words, 0, 0), 5), float64)
        low = cast(e.bitwise_right_shift(m.select(words, 0, 1), 6), float64)
        return e.mul(e.add(e.mul(high, 2.0**26), low), 2.0**-53)
    kept = 24 if dtype is float32 else 11 if dtype.name == "float16" else 8
    words = e.bitwise_right_shift(_bits(shape, generator, device), 32 - kept)
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
def _normal(
    shape: tuple[int, ...], dtype: DType, generator: Generator | None, device: Device
) -> Tensor:
    """Box and Muller (1958): the radius from one uniform number, the angle from another."""
    wide = dtype if dtype is float64 else float32
    pair = uniform((2, *shape), wide, generator, device)
    chance, turns = m.select(pair, 0, 0), cast(m.select(pair, 0, 1), float64)
    radius = _rounded(e.sqrt(e.mul(_waiting_time(chance), 2)), wide)
    along = _rounded(_cosine_of_turns(turns, wide), wide)
    return cast(cast(e.mul(radius, along), wide), dtype)


def _waiting_time(chance: Tensor) -> Tensor:
    """-log(1 - chance) in float64."""
    return e.neg(e.log(e.sub(1, cast(chance, float64))))


def _rounded(x: Tensor, dtype: DType) -> Tensor:
    """Numbers of float64 that `dtype` has; products of two of them are exact, but for float64."""
    return cast(cast(x, dtype), float64)


def _scaled(drawn: Tensor, scale: Any, shift: Any, dtype: DType) -> Tensor:
    """`drawn * scale + shift`, rounded once. Numbers are rounded to float32 first."""
    wide = dtype if dtype is float64 else float32
    factor, term = (
        cast(as_operand(each, each._type.dtype if isinstance(each, Tensor) else wide, "random",
                        drawn._type.device), float64)
        for each in (scale, shift)
    )  # fmt: skip
    return cast(e.add(e.mul(cast(drawn, float64), factor), term), dtype)


def _of_parts(
    shape: tuple[int, ...], dtype: DType, draw: Callable[[tuple[int, ...], DType], Tensor]
) -> Tensor:
    """What `draw` gives; for complex numbers it draws the two parts of each."""
    if not dtype.is_complex:
        return draw(shape, dtype)
    return apply(p.view_as_complex, draw((*shape, 2), dtype.to_real()))


def _normal_numbers(
    shape: tuple[int, ...], dtype: DType, generator: Generator | None, device: Device
) -> Tensor:
    """Standard normal numbers; those of complex ones have parts of half the variance."""
    if not dtype.is_complex:
        return _normal(shape, dtype, generator, device)
    return _of_parts(
        shape,
        dtype,
        lambda *own: _scaled(_normal(*own, generator, device), math.sqrt(0.5), 0.0, own[1]),
    )


def _float_dtype(dtype: Any, operation: str, or_complex: bool = False) -> DType:
    wanted = as_dtype(dtype) or promotion.default_dtype
    if not (wanted.is_floating_point or (or_complex and wanted.is_complex)):
        raise NotImplementedError(f'"{operation}" not implemented for {wanted.name}')
    return wanted


def _finished(result: Tensor, requires_grad: bool) -> Tensor:
    return result.requires_grad_() if requires_grad else result


@public(out=True)
def rand(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform numbers in [0, 1); so are both parts of complex ones."""
    wanted, place = _float_dtype(dtype, "rand", or_complex=True), as_device(device)
    result = _of_parts(m.as_sizes(size), wanted, lambda *own: uniform(*own, generator, place))
    return _finished(result, requires_grad)


@public(out=True)
def randn(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from the standard normal distribution, complex ones with a variance of 1, too."""
    wanted = _float_dtype(dtype, "normal_kernel_cpu", or_complex=True)
    result = _normal_numbers(m.as_sizes(size), wanted, generator, as_device(device))
    return _finished(result, requires_grad)


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
    if isinstance(high, (tuple, list)):
        low, high, size = 0, low, high
    if high <= low:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got {low} >= {high}")
    for name, each in (("low", low), ("high", high)):
        if isinstance(each, float):
            raise TypeError(f"randint(): argument '{name}' must be int, not float")
    _in_range(low, high, as_dtype(dtype) or int64)
    numbers = _integers(m.as_sizes((size,)), high - low, generator, as_device(device))
    result = cast(e.add(numbers, low) if low else numbers, as_dtype(dtype) or int64)
    return _finished(result, requires_grad)


def _integers(
    shape: tuple[int, ...], count: int, generator: Generator | None, device: Device
) -> Tensor:
    """Integers in [0, count) as int64: the high half of a product, or a remainder.

    Of a `count` above 2**63 some are negative: what the same 64 bits mean.
    """
    if count < 1 << 31:
        words = cast(_bits(shape, generator, device), int64)
        return e.bitwise_right_shift(e.mul(words, count), 32)
    words = cast(_bits((2, *shape), generator, device), int64)
    high, low = m.select(words, 0, 0), m.select(words, 0, 1)
    if count > 1 << 63:
        whole = cast(e.add(e.bitwise_left_shift(high, 32), low), uint64)
        return cast(e.remainder(whole, count), int64)
    wide = e.add(e.bitwise_left_shift(e.bitwise_right_shift(high, 1), 32), low)
    return wide if count == 1 << 63 else e.remainder(wide, count)


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
    if wanted in (uint8, int8, int16) and n - 1 > _integer_bounds(wanted)[1]:
        raise RuntimeError(
            f"randperm(): n = {n} cannot be converted to {wanted.name} without overflow"
        )
    order = apply(p.argsort, _bits((n,), generator, place), count=n, descending=False)
    return _finished(cast(order, wanted), requires_grad)


@public(out=True)
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Normal numbers with mean and standard deviation, which may be tensors."""
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if size is None:
        shapes = [each._type.shape if isinstance(each, Tensor) else () for each in (mean, std)]
        size = m.broadcast_shapes(*shapes)
    tensors = [each for each in (mean, std) if isinstance(each, Tensor)]
    wanted = as_dtype(dtype) or (tensors[0]._type.dtype if tensors else promotion.default_dtype)
    if isinstance(std, Tensor):
        std = _deviations(std)
    if tensors and not wanted.is_floating_point:
        raise NotImplementedError(f'"normal_kernel_cpu" not implemented for {wanted.name}')
    if device is None and tensors:
        device = tensors[0]._type.device
    drawn = _normal(m.as_sizes((size,)), wanted, generator, as_device(device))
    return _scaled(drawn, std, mean, result_type(drawn, *tensors))


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
        return cast(e.lt(uniform(shape, float32, generator, device), _probability(p)), dtype)
    if not dtype.is_floating_point:
        raise NotImplementedError(f'"bernoulli_tensor_cpu_p_" not implemented for {dtype.name}')
    chances = _probabilities(input)
    return cast(e.lt(uniform(shape, dtype, generator, device), chances), dtype)


def _probability(p: float) -> float:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return p


@planned
def _probabilities(input: Tensor) -> Tensor:
    """The elements, which must be probabilities."""
    chances = input.detach()
    holds = e.logical_and(e.ge(chances, 0), e.le(chances, 1))
    message = "Expected p_in >= 0 && p_in <= 1 to be true, but got false."
    return apply(p.require, holds, chances, message=message)


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
    times = e.maximum(cast(_waiting_time(chances), wide), 2.0**-30)
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
    return rand(input._type.shape, **_like(input, dtype, options))


@public()
def randn_like(input: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
    """`randn` with the shape, dtype and device of `input`."""
    return randn(input._type.shape, **_like(input, dtype, options))


@public()
def randint_like(
    input: Tensor, low: int = 0, high: int | None = None, *, dtype: Any = None, **options: Any
) -> Tensor:
    """`randint` with the shape, dtype and device of `input`."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input._type.shape, **_like(input, dtype, options))


def _like(input: Tensor, dtype: Any, options: dict[str, Any]) -> dict[str, Any]:
    place = options.pop("device", None)
    device = input._type.device if place is None else place
    return {"dtype": as_dtype(dtype) or input._type.dtype, "device": device, **options}


_BELOW_LOW: Any = type("BelowLow", (), {"__repr__": lambda self: "..."})()
"""In the place of an upper bound: the lower one is it."""
_DIGITS = {float16: 11, bfloat16: 8, float32: 24, float64: 53}
"""Binary digits of floats: up to that power of two, all integers are there."""


# --- in place ----------------------------------------------------------------------------------


def _filled(
    self: Tensor, operation: str, or_complex: bool = False
) -> tuple[tuple[int, ...], DType]:
    return self._type.shape, _float_dtype(self._type.dtype, operation, or_complex)


@public(function=False, method=True)
def uniform_(
    self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with uniform numbers in [a, b)."""
    if a > b:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found {a} > {b}")
    shape, dtype = _filled(self, "uniform_", or_complex=True)
    drawn = _of_parts(
        shape,
        dtype,
        lambda *own: _scaled(uniform(*own, generator, self._type.device), b - a, a, own[1]),
    )
    return assign(self, drawn, "uniform_")


@public(function=False, method=True)
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normal numbers."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    shape, dtype = _filled(self, "normal_", or_complex=True)
    scale = std * math.sqrt(0.5) if dtype.is_complex else std
    drawn = _of_parts(
        shape,
        dtype,
        lambda *own: _scaled(_normal(*own, generator, self._type.device), scale, mean, own[1]),
    )
    return assign(self, drawn, "normal_")


@public(function=False, method=True)
def bernoulli_(
    self: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Fill with ones with probability `p`, else zeros."""
    if isinstance(p, Tensor):
        p = _probabilities(p)
    else:
        p = _probability(p)
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
    _in_range(low, high, dtype)
    drawn = randint(low, high, self._type.shape, generator=generator, device=self._type.device)
    return assign(self, cast(drawn, dtype), "random_")


def _largest_drawn(dtype: DType) -> int:
    if dtype is bool_:
        return 1
    if dtype.is_floating_point:
        return 1 << _DIGITS[dtype]
    return min(_integer_bounds(dtype)[1], (1 << 63) - 1)


@public(function=False, method=True)
def exponential_(
    self: Tensor, lambd: Scalar = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with exponentially distributed numbers of rate `lambd`."""
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    shape, dtype = _filled(self, "exponential_")
    wide = dtype if dtype is float64 else float32
    times = cast(_waiting_time(uniform(shape, wide, generator, self._type.device)), wide)
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
    drawn = _scaled(_normal(shape, wide, generator, self._type.device), std, mean, wide)
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
    return assign(self, _scaled(drawn, sigma, median, dtype), "cauchy_")


@public(function=False, method=True)
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials up to the first success, each of probability `p`."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    dtype = self._type.dtype
    if dtype is bool_ or dtype.is_complex:
        raise NotImplementedError(f'"geometric" not implemented for {dtype.name}')
    wide = dtype if dtype is float64 else float32
    times = _waiting_time(uniform(self._type.shape, wide, generator, self._type.device))
    trials = e.ceil(e.div(times, -math.log1p(-p)))
    return assign(self, cast(e.maximum(trials, 1), dtype), "geometric_")
