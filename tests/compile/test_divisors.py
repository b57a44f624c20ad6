"""Integers divided by numbers that stand in the program, which kernels write as products."""

from __future__ import annotations

import numpy as np
import pytest

import tgraph as tg


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_quotients_and_remainders_of_known_divisors(dtype):
    info = np.iinfo(dtype)
    edges = [info.min, info.min + 1, 0, 1, info.max - 1, info.max]
    values = np.random.default_rng(0).integers(info.min, info.max, 20_000, dtype, endpoint=True)
    values = np.concatenate([np.array(edges, dtype), np.arange(-128, 128).astype(dtype), values])
    known = {1, 2, 3, 7, 10, 64, 100, 127, info.max // 2, info.max - 1, info.max}
    known |= {-1, -2, -7, -64, info.min} if info.min else set()
    for divisor in known:
        divided = tg.compile(lambda x, divisor=divisor: (x // divisor, x % divisor))
        quotient, remainder = divided(tg.tensor(values))
        by = np.array(divisor, dtype)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(quotient.numpy(), np.floor_divide(values, by))
            np.testing.assert_array_equal(remainder.numpy(), np.remainder(values, by))
