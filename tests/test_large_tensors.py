"""More than 2**31 elements: positions in generated kernels are 64 bits wide where they have to be.

What allocates is marked slow, for its time and for its memory: 2 to 9 GiB.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

import pytest

import tgraph as tg

COUNT = 2**31 + 1000
PLACES = [5, 2**31 - 1, 2**31, 2**31 + 1, COUNT - 1]


def large(count: int) -> tg.Tensor:
    """So many elements that share one place in memory."""
    return tg.zeros((), dtype=tg.int8).expand(count)


@pytest.mark.parametrize("function", [
    lambda x: x + 1, lambda x: x.sum(), lambda x: x[-5:] * 2,
    lambda x: x.reshape(2, -1).argmax(1),
], ids=["elements", "sum", "slice", "argmax"])  # fmt: skip
def test_positions_of_cuda_kernels_are_as_wide_as_they_must(
    function: Callable[[tg.Tensor], tg.Tensor],
) -> None:
    for count, wide in ((2**20, False), (2**31, True)):
        text = tg.cuda.program(function, large(count)).source
        first = text.split("__global__")[1]
        number = re.search(r"const (int|long long) (?:item|point) =", first)
        assert number and number[1] == ("long long" if wide else "int")


@pytest.fixture(scope="module")
def x() -> Iterator[tg.Tensor]:
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 12 << 30:
        pytest.skip("needs 12 GiB of free memory")
    found = tg.zeros(COUNT, dtype=tg.int8)
    for number, place in enumerate(PLACES, 1):
        found[place] = number
    yield found


def _ends(y: tg.Tensor, *places: int) -> tg.Tensor:
    return tg.stack([y[each] for each in places])


def _written(x: tg.Tensor) -> tg.Tensor:
    x[2**31 + 2 :] = 7
    seen = _ends(x, 2**31, 2**31 + 2, -1)
    x[2**31 + 2 : -1] = 0
    x[-1] = 5
    return seen


AT = tg.tensor(PLACES)
CASES: dict[str, tuple[Callable[[tg.Tensor], tg.Tensor], list[int] | int]] = {
    "argmax": (lambda x: x.argmax(), COUNT - 1),
    "index_select": (lambda x: x.index_select(0, AT), [1, 2, 3, 4, 5]),
    "gather": (lambda x: x.gather(0, AT), [1, 2, 3, 4, 5]),
    "slice": (lambda x: x[2**31 - 1 : 2**31 + 2] * 2, [4, 6, 8]),
    "step": (lambda x: x[:: 2**30].clone(), [0, 0, 3]),
    "flip": (lambda x: x.flip(0)[:2].clone(), [5, 0]),
    "rows": (lambda x: x.reshape(2, -1).argmax(1), [5, COUNT // 2 - 1]),
    "turned": (lambda x: x.reshape(2, -1).t().contiguous()[-1], [0, 5]),
    "where": (lambda x: _ends(tg.where(x > 2, x, 1), 2**31 - 1, 2**31, -1, 0), [1, 3, 5, 1]),
    "cat": (
        lambda x: _ends(tg.cat([x, x[2**31 - 2 :]]), 5, 2**31, COUNT - 1, COUNT, COUNT + 1, -1),
        [1, 3, 5, 0, 2, 5],
    ),
    "scatter": (
        lambda x: x.scatter(0, AT, tg.full((5,), 4, dtype=tg.int8))[AT], [4, 4, 4, 4, 4],
    ),
    "write": (_written, [3, 7, 7]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_on_the_cpu(x: tg.Tensor, name: str) -> None:
    function, wanted = CASES[name]
    assert function(x).tolist() == wanted
    assert tg.compile(function)(x).tolist() == wanted


@pytest.mark.slow
def test_fused_on_the_cpu(x: tg.Tensor) -> None:
    """Sums of int64, which take 16 GiB eagerly, and positions."""
    assert tg.compile(lambda x: (x.sum(), (x != 0).sum()))(x) == (15, 5)
    assert tg.compile(lambda: (tg.arange(COUNT) % 7 == 0).sum())() == (COUNT + 6) // 7
    assert x.nonzero()[:, 0].tolist() == PLACES
