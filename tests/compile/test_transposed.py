"""Operands that are contiguous along another axis than the result's go through small buffers."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from tgraph.compiler.targets.cpu import tiles as llvm_tiles
from tgraph.runtime import jit, transpose_native

import tgraph as tg

DTYPES = [tg.float32, tg.float64, tg.bfloat16, tg.int8, tg.int16, tg.int64, tg.bool]
# Whole tiles, all kinds of rests, fewer rows or columns than a square of vectors has.
SHAPES = [(64, 128), (65, 127), (100, 300), (9, 700), (700, 9), (17, 1001), (3, 70, 90)]
FUNCTIONS = {
    "one": lambda x, y: x.mT + y,
    "several": lambda x, y: x.mT + y * x.mT - (x + 1).mT * 2,
    "flipped": lambda x, y: x.flip(-2).mT + y,
    "sliced": lambda x, y: x[..., 1:, 2:].mT + y[..., 2:, 1:],
    "beside a pad": lambda x, y: tg.nn.functional.pad(y[..., 1:-1, :], (0, 0, 1, 1)) + x.mT,
    "padded itself": lambda x, y: tg.nn.functional.pad(x[..., 1:, :].mT, (1, 0)) + y,
    "broadcast": lambda x, y: x.mT[..., :1] + x.mT + y[..., :1, :],
    "gathered rows": lambda x, y: x.mT + y.flip(-1)[..., tg.arange(y.shape[-2]).flip(0), :],
    "both layouts": lambda x, y: (x + 1, (x.mT + 1).contiguous()),
}


def operands(shape, dtype):
    tg.manual_seed(0)
    x = (tg.randn(shape) * 50).to(dtype)
    y = (tg.randn(*shape[:-2], shape[-1], shape[-2]) * 50).to(dtype)
    return (x > 0, y > 0) if dtype == tg.bool else (x, y)


def schedules(function, *tensors):
    return [each.schedule for each in tg.compile(function).explain(*tensors).kernels]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape, dtype):
    x, y = operands(shape, dtype)
    # Compiled code rounds to 16 bits where it stores, eager code behind every operation.
    tolerance = 2e-2 if dtype == tg.bfloat16 else 1e-6
    for name, function in FUNCTIONS.items():
        if dtype == tg.bool and name == "several":
            continue  # booleans are not subtracted
        results = tg.compile(function)(x, y), function(x, y)
        found, expected = (each if isinstance(each, tuple) else (each,) for each in results)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            one, other = one.double().numpy(), other.double().numpy()
            least = tolerance * np.abs(other).max()
            np.testing.assert_allclose(one, other, tolerance, least, err_msg=name)


@pytest.mark.parametrize("order", [(2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1), (1, 0, 2)])
def test_orders_of_axes(order):
    x = tg.randn(30, 40, 50)
    found = tg.compile(lambda x: x.permute(order) * 2 + 1)(x)
    np.testing.assert_array_equal(found.numpy(), x.numpy().transpose(order) * 2 + 1)


def test_that_buffers_are_used():
    x, y = operands((256, 256), tg.float32)
    for name in ("one", "several", "sliced", "flipped", "beside a pad"):
        (line,) = schedules(FUNCTIONS[name], x, y)
        assert "1 transposed in a buffer" in line, name
    (line,) = schedules(lambda x, y: (x.mT + y.mT + 1).contiguous(), x, y)
    assert "2 transposed in a buffer" in line
    for line in schedules(lambda x, y: x.mT + 1, *operands((20, 20), tg.float32)):
        assert "transposed" not in line  # too little work


def test_what_does_not_fit_into_the_stack_is_read_where_it_lies():
    given = [tg.randn(128, 128, dtype=tg.float64) for _ in range(4)]
    room = llvm_tiles.MOST_BYTES // (llvm_tiles.TRANSPOSE_TILE * llvm_tiles.PITCH * 8)

    def total(a, b, c, d):
        return (a.mT + b.mT * c.mT - d.mT).contiguous()

    (line,) = schedules(total, *given)
    assert 0 < room < 4 and f"{room} transposed in a buffer" in line
    np.testing.assert_allclose(tg.compile(total)(*given).numpy(), total(*given).numpy(), 1e-12)


def test_results_of_other_orders_have_kernels_of_their_own():
    """Walking over one of them in the other's order would divide for every element."""
    x = tg.randn(130, 200)
    lines = schedules(lambda x: (x + 1, (x.mT * 2).contiguous()), x)
    assert ["transposed in a buffer" in line for line in lines] == [False, True]
    # The same elements in the same order go together.
    assert len(schedules(lambda x: (x + 1, x.reshape(10, 13, 200) * 2), x)) == 1
    assert len(schedules(lambda x: (x + 1, x.reshape(-1) * 2), x)) == 1


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_squares_of_vectors(itemsize, lanes):
    """Nothing but the block is written."""
    module = jit.compile_module(transpose_native.text(itemsize, lanes), passes=False)
    types = [ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p, ctypes.c_int64]
    function = ctypes.CFUNCTYPE(None, *types)(module.address("transpose"))
    random = np.random.default_rng(0)
    for lines, count in [
        (1, 1),
        (lanes, lanes),
        (lanes + 1, 3 * lanes - 1),
        (lanes - 1, 40),
        (40, 1),
    ]:
        given = random.integers(0, 100, (lines, count + 3)).astype(f"i{itemsize}")
        found = np.full((count + 1, lines + 5), -1, given.dtype)
        expected = found.copy()
        expected[:count, :lines] = given[:, :count].T
        function(given.ctypes.data, count + 3, lines, count, found.ctypes.data, lines + 5)
        np.testing.assert_array_equal(found, expected)
