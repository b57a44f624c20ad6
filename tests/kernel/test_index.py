"""Index expressions and the loops over them mean what they say, at every point."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping

import pytest
from tgraph.compiler.kernel.index import Axis, Index, Quotient, constant, flatten, of_axis
from tgraph.compiler.kernel.regions import Side
from tgraph.compiler.kernel.simplify_loops import _walks_together

AXES = (Axis("i", 5), Axis("j", 7), Axis("k", 3))
Point = Mapping[Axis, int]
POINTS = [
    dict(zip(AXES, each, strict=True))
    for each in itertools.product(*(range(axis.size) for axis in AXES))
]


def value(index: Index, at: Point) -> int:
    """What an index is at a point, from its terms."""
    result = index.const
    for atom, coefficient in index.terms.items():
        if isinstance(atom, Axis):
            found = at[atom]
        else:
            found = value(atom.index, at)
            found = found // atom.divisor if isinstance(atom, Quotient) else found % atom.divisor
        result += coefficient * found
    return result


def random_index(source: random.Random, depth: int) -> tuple[Index, Callable[[Point], int]]:
    """An index, and what it is by Python's arithmetic."""
    if depth == 0:
        axis = source.choice(AXES)
        return of_axis(axis), lambda at: at[axis]
    (one, first), (other, second) = (random_index(source, depth - 1) for _ in range(2))
    number = source.randrange(2, 9)
    match source.randrange(4):
        case 0:
            return one * number + other, lambda at: first(at) * number + second(at)
        case 1:
            return one // number, lambda at: first(at) // number
        case 2:
            return one % number, lambda at: first(at) % number
    return one + constant(number), lambda at: first(at) + number


@pytest.mark.parametrize("seed", range(40))
def test_arithmetic_and_bounds(seed: int) -> None:
    source = random.Random(seed)
    index, expected = random_index(source, 3)
    found = [value(index, at) for at in POINTS]
    assert found == [expected(at) for at in POINTS], index
    low, high = index.bounds
    assert low <= min(found) and max(found) <= high, index


@pytest.mark.parametrize("divisor, stride", [(4, 4), (4, 5), (4, 8), (6, 3), (3, 3)])
def test_parts_are_put_together_where_they_belong_together(divisor: int, stride: int) -> None:
    whole = of_axis(AXES[0]) * 7 + of_axis(AXES[1])
    offset = flatten((whole // divisor, whole % divisor), (stride, 1))
    for at in POINTS:
        place = at[AXES[0]] * 7 + at[AXES[1]]
        assert value(offset, at) == place // divisor * stride + place % divisor
    assert (offset == whole) == (divisor == stride)


def test_loops_walk_together_where_no_part_of_them_is_read() -> None:
    outer, inner, _ = AXES
    whole = of_axis(outer) * inner.size + of_axis(inner)
    assert _walks_together(whole, outer, inner)
    assert not _walks_together(of_axis(outer) * 8 + of_axis(inner), outer, inner)
    for part in (whole // 4, whole % 4, of_axis(inner) % 2):
        assert not _walks_together(whole + part, outer, inner), part


def test_phases_have_each_place_once() -> None:
    axis = Axis("i", 40)
    for low, high, step in itertools.product((0, 1, 5), (7, 8, 9, 30), (1, 2, 3, 4)):
        found = []
        for phase in range(step):
            counter, place = Side(axis, low, high, step, phase).place
            found += [value(place, {counter: at}) for at in range(counter.size)]
        assert sorted(found) == list(range(low, high)), (low, high, step)
