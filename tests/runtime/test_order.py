"""Sorting and selecting: the positions that a stable sort gives, with NaN as the largest."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tgraph.runtime import order, parallel
from tgraph.runtime.order import first_in_order, nth_in_order, stable_order

DTYPES = (
    np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.bool_, np.int8, np.uint8, np.int16,
    np.int32, np.uint32, np.int64, np.uint64,
)  # fmt: skip
SHAPES = ((7,), (3, 40), (1, 700), (50, 64), (2, 3, 300), (3, 1003), (4, 0), (0, 9))


def plain(values, descending):
    """Python's own stable sort of every row."""
    if not values.size:
        return np.zeros(values.shape, np.int64)
    rows = values.reshape(-1, values.shape[-1]).tolist()
    sign = -1 if descending else 1
    found = [
        sorted(
            range(len(row)), key=lambda at: (sign * (row[at] != row[at]), _known(row[at]) * sign)
        )
        for row in rows
    ]
    return np.array(found, np.int64).reshape(values.shape)


def _known(number):
    return 0 if number != number else number


def samples(dtype, shape, kind):
    generator = np.random.default_rng(len(shape) + kind)
    if kind == 0:  # many equals
        found = generator.integers(0, 3, shape).astype(dtype)
    elif np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        found = generator.integers(info.min, info.max, shape, dtype, endpoint=True)
    else:
        found = (generator.standard_normal(shape) * 50).astype(dtype)
    if np.dtype(dtype).kind in "fV":
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -np.nan]).astype(dtype)
        some = generator.random(shape) < (0.6 if kind == 2 else 0.2)
        found = np.where(some, generator.choice(special, shape), found).astype(dtype)
    return found


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: np.dtype(each).name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_order(dtype, shape, descending):
    for kind in (0, 1, 2):
        values = samples(dtype, shape, kind)
        expected = plain(values, descending)
        found = stable_order(values, descending)
        assert found.dtype == np.int64 and np.array_equal(found, expected)
        length = shape[-1]
        for count in {0, 1, 3, length // 40, length // 9, length // 2, length} & set(
            range(length + 1)
        ):
            first = first_in_order(values, count, descending)
            assert first.dtype == np.int64 and np.array_equal(first, expected[..., :count])
        if descending:
            continue
        for rank in {0, length // 3, length - 1} if length else ():
            assert np.array_equal(nth_in_order(values, rank), expected[..., rank : rank + 1])


def test_views_and_signalling_nan():
    values = np.arange(4000.0, dtype=np.float32).reshape(40, 100)
    values[3, 5] = np.array([0x7F800001], np.uint32).view(np.float32)[0]
    for view in (values.T, values[::2, ::-1], values[:, ::3]):
        assert np.array_equal(stable_order(view), plain(view, False))
        assert np.array_equal(first_in_order(view, 3, True), plain(view, True)[..., :3])
    assert stable_order(values.T).flags.c_contiguous


def test_a_negative_zero_that_one_thread_meets(monkeypatch):
    """It stays where it was among equals; other rows have none."""
    monkeypatch.setattr(order, "_SHARE", 10)
    before = parallel.get_num_threads()
    parallel.set_num_threads(2)
    try:
        for row in (0, 3):
            values = np.ones((4, 20), np.float32)
            values[row, ::3], values[row, ::6] = -0.0, 0.0
            expected = np.take_along_axis(values, stable_order(values), -1)
            assert order.in_order(values).tobytes() == expected.tobytes()
    finally:
        parallel.set_num_threads(before)
