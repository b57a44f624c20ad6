"""What a row of the table of operations is, and where its inputs come from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tgraph as tg

Array = np.ndarray[Any, Any]
Domain = Callable[[np.random.Generator, tuple[int, ...]], Array]

DOUBLE = (tg.float64,)
FLOATS = (tg.float32, tg.float64, tg.float16, tg.bfloat16)
INTEGERS = (tg.int64, tg.int32, tg.int16, tg.int8, tg.uint8)
NUMBERS = (*FLOATS, *INTEGERS)
ANY = (*NUMBERS, tg.bool)
BITS = (*INTEGERS, tg.bool)
SAME, FLOAT, SUMMED, TRUTH = "same", "float", "summed", "truth"
SMALLEST = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


# -- domains ---------------------------------------------------------------------------------


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Positive and negative, none near zero or another, so that kinks are not met."""
    count = int(np.prod(shape))
    steps = rng.permutation(count) - count / 2 + rng.uniform(0.1, 0.4)
    return np.asarray(steps * (3.7 / max(count, 1))).reshape(shape)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.uniform(0.4, 3.0, shape)


def unit(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """In (-0.9, 0.9)."""
    return rng.uniform(-0.9, 0.9, shape)


def share(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """In (0.1, 0.9), such as a probability."""
    return rng.uniform(0.1, 0.9, shape)


def above_one(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.uniform(1.2, 4.0, shape)


def small_counts(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Whole numbers from 1 to 4, as divisors, exponents and shifts."""
    return rng.integers(1, 5, shape).astype(np.float64)


def few_values(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Small whole numbers, so that many are equal."""
    return rng.integers(-2, 3, shape).astype(np.float64)


def truth(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(0, 2, shape).astype(bool)


def signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.choice([-1, 1], shape)


def below(size: int) -> Domain:
    """Positions in an axis of `size`."""

    def positions(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.integers(0, size, shape)

    return positions


def distinct(size: int) -> Domain:
    """Positions in an axis of `size`, none twice along the last axis."""

    def positions(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        rows = int(np.prod(shape[:-1]))
        found = [rng.permutation(size)[: (*shape, 1)[len(shape) - 1]] for _ in range(rows)]
        return np.asarray(found, np.int64).reshape(shape)

    return positions


# -- rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Argument:
    """One tensor that a row feeds; a fixed `dtype` is left alone when the row's dtype changes."""

    shape: tuple[int, ...]
    domain: Domain = normal
    dtype: Any = None


@dataclass(frozen=True)
class OpCase:
    """One operation on inputs of known shapes.

    `function` takes tensors, `reference` NumPy arrays: floats come as float64, other dtypes as
    they are. Both give one result or a tuple. `result` says the dtype of the result: "same" as the
    row's dtype, "float" (integers become float32), "summed" (integers become int64), "truth" (bool,
    but uint8 of uint8), or a DType (a tuple for several results). `gradient` tells whether
    derivatives are tested, `second` those of derivatives; `tolerance` is in units of the dtype's
    spacing at 1. `more` has other shapes on which forward passes are tested.
    """

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    arguments: tuple[Argument, ...]
    dtypes: tuple[Any, ...] = FLOATS
    result: Any = SAME
    gradient: bool = True
    second: bool = True
    tolerance: float = 8
    more: tuple[tuple[tuple[int, ...], ...], ...] = ()
    elementwise: bool = False
    compiles: bool = True
    layouts: bool = True

    @property
    def operation(self) -> str:
        """The public function that the row tests, or several; words behind tell variants apart."""
        return self.name.split(" ")[0]

    def with_shapes(self, shapes: Sequence[tuple[int, ...]]) -> OpCase:
        pairs = zip(self.arguments, shapes, strict=True)
        return replace(self, arguments=tuple(replace(each, shape=shape) for each, shape in pairs))

    def arrays(self, dtype: Any, seed: int = 0) -> list[Array]:
        """The inputs for the row's dtype."""
        rng = np.random.default_rng(seed)
        return [_converted(each.domain(rng, each.shape), each.dtype or dtype)
                for each in self.arguments]  # fmt: skip

    def expected(self, arrays: Sequence[Array]) -> Any:
        wide = [each.astype(np.float64) if _is_float(each) else each for each in arrays]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a variance of too few elements
            return self.reference(*wide)

    def result_dtype(self, dtype: Any, number: int = 0) -> Any:
        rule = self.result[number] if isinstance(self.result, tuple) else self.result
        if rule == SAME:
            return dtype
        if rule == FLOAT:
            return dtype if dtype.is_floating_point else tg.float32
        if rule == TRUTH:
            return tg.uint8 if dtype is tg.uint8 else tg.bool
        if rule == SUMMED:
            return dtype if dtype.is_floating_point else tg.int64
        return rule


def _is_float(array: Array) -> bool:
    return array.dtype.kind in "fV"


def _converted(array: Array, dtype: Any) -> Array:
    if dtype is tg.bool:
        return array > 0
    if dtype.is_floating_point or array.dtype.kind in "iub":
        return array.astype(dtype.numpy)
    whole = np.round(array * (1 if dtype is tg.uint8 else 2))
    return np.asarray(np.abs(whole) if dtype is tg.uint8 else whole).astype(dtype.numpy)


CASES: list[OpCase] = []


def case(
    name: str,
    function: Callable[..., Any],
    reference: Callable[..., Any],
    *arguments: Any,
    **options: Any,
) -> None:
    """Add a row; an argument is a shape, a (shape, domain), a (shape, domain, dtype)."""
    made = []
    for each in arguments:
        is_shape = isinstance(each, tuple) and all(isinstance(size, int) for size in each)
        made.append(Argument(each) if is_shape else Argument(*each))
    CASES.append(OpCase(name, function, reference, tuple(made), **options))


def elementwise(
    name: str,
    function: Callable[..., Any],
    reference: Callable[..., Any],
    *domains: Any,
    **options: Any,
) -> None:
    """Add a row whose operands broadcast; a domain may come with a fixed dtype."""
    shapes = [(3, 4), (4,), (3, 1)] if len(domains) > 1 else [(3, 4)]
    pairs = [each if isinstance(each, tuple) else (each,) for each in domains]
    arguments = [(shape, *pair) for shape, pair in zip(shapes, pairs, strict=False)]
    count = len(domains)
    more: list[tuple[tuple[int, ...], ...]] = [
        ((),) * count,
        ((2, 0, 3),) * count,
        ((37,),) * count,
    ]
    if count > 1:
        more += [((5, 1, 3), (2, 1), (1,))[:count], ((), (2, 3), (0, 2, 1))[:count]]
        more += [((1, 4), (3, 1), (3, 4))[:count], ((0, 1), (1, 3), ())[:count]]
    if "more" in options:
        more = list(options.pop("more"))
    case(name, function, reference, *arguments, elementwise=True, more=tuple(more), **options)
