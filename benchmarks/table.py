"""The rows of the tests' table of operations at three sizes: compiled beside eager, in one process.

A row is as small as the tests have it, or with axes that are doubled, one after another, as far as
it allows: until its tensors have so many elements, or eager code takes too long.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tgraph as tg

from .pairs import Pair
from .process import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from opcase import OpCase
from opcases import CASES

ROWS = {case.name: case for case in CASES if case.compiles}
NOT_COMPILED = [case.name for case in CASES if not case.compiles]

NOTE = (
    "Both in one process, the least of seven rounds and more, in turns. Eager code has its own "
    "plans, as it has them for whoever does not compile. Sizes are those of the tests, and with "
    "axes doubled until a tensor has 16,384 and 1,048,576 elements, as far as the row allows. "
    f"{len(NOT_COMPILED)} rows are not compiled, since the shapes of their results are data."
)

ELEMENTS = {"small": 0, "middle": 1 << 14, "large": 1 << 20}
MOST_SECONDS = 0.03
"""An axis that makes eager code slower than this is not doubled."""

Call = Callable[[], Any]


@dataclass(frozen=True)
class How:
    """`rounds` of batches that take `seconds` each; a batch of one and one of the other in turn.

    Where the ratio is above `doubtful`, up to `most` rounds, with a `pause` before each turn: the
    threads of BLAS, which eager code uses, wait for more work for a while and take a processor.
    """

    rounds: int = 7
    seconds: float = 0.001
    doubtful: float = 1.3
    most: int = 40
    pause: float = 0.04


@dataclass(frozen=True)
class Row(Pair):
    """A row at a size. `computes` is False where results are arguments, or views of them."""

    computes: bool = True


def compare(names: Sequence[str], sizes: Sequence[str], how: How) -> Iterator[Row]:
    """Compiled beside eager, the least time of each."""
    for name in names:
        for size, case in _sized(ROWS[name], sizes):
            yield measured(case, size, how)


def measured(case: OpCase, size: str, how: How) -> Row:
    """One row; eager code has its own plans, as whoever does without compiling has them."""
    inputs = _tensors(case)
    compiled = tg.compile(case.function)
    calls = [lambda: compiled(*inputs), lambda: case.function(*inputs)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls * 3:  # plans are made by the first and the second call
            call()
        ours, theirs = _least(calls, how)
    computes = bool(compiled.graph(*inputs).outputs)
    return Row(case.name, size, (ours,), (theirs,), computes=computes)


def _least(calls: Sequence[Call], how: How) -> list[float]:
    counts = [max(1, int(how.seconds / _seconds(call, 1))) for call in calls]
    least = [math.inf, math.inf]
    for number in range(how.most):
        if number >= how.rounds and least[0] <= how.doubtful * least[1]:
            break
        for at in ((0, 1), (1, 0))[number % 2]:
            time.sleep(how.pause if number >= how.rounds else 0)
            least[at] = min(least[at], _seconds(calls[at], counts[at]))
    return least


def _seconds(call: Call, count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        call()
    return max((time.perf_counter() - began) / count, 1e-9)


def _tensors(case: OpCase) -> list[Any]:
    return [tg.from_numpy(array) for array in case.arrays(case.dtypes[0])]


# --- sizes ---------------------------------------------------------------------------------------


def _sized(case: OpCase, sizes: Sequence[str]) -> Iterator[tuple[str, OpCase]]:
    """The row at each size; of equal ones the first alone."""
    known = None
    for size in sizes:
        sized = grown(case, ELEMENTS[size])
        shapes = [each.shape for each in sized.arguments]
        if shapes != known:
            yield size, sized
        known = shapes


def grown(case: OpCase, elements: int) -> OpCase:
    """The row with axes doubled until its tensors have so many elements, if it allows that."""
    factors = {size: 1 for each in case.arguments for size in each.shape if size > 1}
    waiting = list(factors)
    while waiting and _elements(case, factors) < elements:
        size = waiting.pop(0)
        larger = {**factors, size: 2 * factors[size]}
        if _is_possible(_scaled(case, larger)):
            factors = larger
            waiting.append(size)
    return _scaled(case, factors)


def _scaled(case: OpCase, factors: dict[int, int]) -> OpCase:
    return case.with_shapes(
        [tuple(factors.get(size, 1) * size for size in each.shape) for each in case.arguments]
    )


def _elements(case: OpCase, factors: dict[int, int]) -> int:
    return max(math.prod(each.shape) for each in _scaled(case, factors).arguments)


def _is_possible(case: OpCase) -> bool:
    """Whether eager code takes a row, in a time that is bearable."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            inputs = _tensors(case)
            return min(_seconds(lambda: case.function(*inputs), 1) for _ in range(3)) < MOST_SECONDS
        except Exception:
            return False
