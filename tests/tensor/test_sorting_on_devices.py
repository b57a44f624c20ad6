"""Sorting and selecting on a device: what the host gives, without a way there and back."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from device_tools import CPU
from tgraph.runtime import order
from tgraph.runtime.cuda import order as cuda_order

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]

DTYPES = (
    tg.bool, tg.uint8, tg.int8, tg.int16, tg.int32, tg.int64, tg.uint32,
    tg.float16, tg.bfloat16, tg.float32, tg.float64,
)  # fmt: skip


def values(dtype: tg.dtype, *shape: int) -> np.ndarray:
    """Numbers with many equal ones, extremes, and what floats have beside numbers."""
    rng = np.random.default_rng(len(shape))
    if dtype is tg.bool:
        return rng.random(shape) < 0.5
    if not dtype.is_floating_point:
        info = np.iinfo(dtype.numpy)
        return rng.choice([info.min, info.min + 1, 0, 1, 2, info.max], shape).astype(dtype.numpy)
    special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-7, -1e-7, 1.5, -1.5, 2.25]
    return rng.choice(special, shape).astype(dtype.numpy)


def bits(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sorts_on_a_device_are_those_of_the_host(cuda, dtype):
    for shape in ((7, 33), (200,), (2, 3, 1), (0, 4), (3, 0)):
        x = tg.from_numpy(values(dtype, *shape))
        there = x.to(cuda)
        for descending in (False, True):
            have, want = tg.sort(there, -1, descending), tg.sort(x, -1, descending)
            assert have.values.device == cuda
            assert bits(have.values.to(CPU).numpy()) == bits(want.values.numpy())
            assert bits(have.indices.to(CPU).numpy()) == bits(want.indices.numpy())
        if x.shape[-1] > 2:
            have, want = tg.topk(there, 3), tg.topk(x, 3)
            assert bits(have.indices.to(CPU).numpy()) == bits(want.indices.numpy())


def test_other_axes_and_strides(cuda):
    x = tg.from_numpy(values(tg.float32, 6, 5, 4))
    want = tg.sort(x.permute(2, 0, 1), 1)
    have = tg.sort(x.to(cuda).permute(2, 0, 1), 1)
    assert bits(have.indices.to(CPU).numpy()) == bits(want.indices.numpy())


def test_compiled_functions_sort_on_the_device(cuda, monkeypatch):
    def function(x):
        return tg.sort(x * 2, -1, True).values, tg.topk(x, 2).indices

    x = tg.randn(5, 9)
    want, compiled = function(x), tg.compile(function)
    for name in ("first_in_order", "in_order", "put_in_order"):
        monkeypatch.setattr(order, name, None)  # the host's
    for _ in range(3):
        for have, expected in zip(compiled(x.to(cuda)), want, strict=True):
            assert bits(have.to(CPU).numpy()) == bits(expected.numpy())


def test_keys_are_in_the_order_of_all_half_floats():
    every = np.arange(1 << 16, dtype=np.uint16)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        numbers = every.view(dtype)
        keys = cuda_order.sort_keys(np, numbers)
        wide = numbers.astype(np.float32)
        ordered = wide[np.argsort(keys, kind="stable")]
        finite = ordered[~np.isnan(ordered)]
        assert (np.diff(finite[np.isfinite(finite)]) >= 0).all()
        assert np.isnan(ordered[len(finite) :]).all()
        assert len(set(keys[wide == 0])) == 1 and len(set(keys[np.isnan(wide)])) == 1
