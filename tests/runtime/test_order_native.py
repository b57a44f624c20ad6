"""Positions in order by generated code: every way of doing it gives those of a stable sort."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest
from test_order import DTYPES, samples
from tgraph.runtime import jit, order_native, selection_native
from tgraph.runtime.order import stable_order
from tgraph.runtime.order_native import BY_BYTES, INSERTED, SELECTED

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def ordered(values, count, descending, way, units=1, strides=None):
    """What the body gives for rows of two axes, in units one after the other."""
    rows, length = values.shape[:2]
    found = np.full((rows, count), -7, np.int64)
    nbytes = units * 2 * length * order_native.entry_bytes(values.dtype.name)
    lists = np.zeros(nbytes + 64, np.uint8)
    down, across = strides or (length, 1)
    words = np.array([length, count, across, rows, units, way, 1, rows, down], np.int64)
    args = (ctypes.c_void_p * 4)(
        values.ctypes.data, found.ctypes.data, -(-lists.ctypes.data // 64) * 64, words.ctypes.data
    )
    body = BODY(order_native.load(values.dtype.name, descending))
    for unit in range(units):
        body(ctypes.addressof(args), unit, unit + 1)
    return found


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: np.dtype(each).name)
@pytest.mark.parametrize("descending", [False, True])
def test_every_way(dtype, descending):
    for length, kind in itertools.product((1, 2, 31, 200, 1003), range(3)):
        values = samples(dtype, (5, length), kind)
        expected = stable_order(values, descending)
        for way, units in itertools.product((INSERTED, SELECTED, BY_BYTES), (1, 3)):
            for count in {1, length // 5, length} - {0}:
                found = ordered(values, count, descending, way, units)
                assert np.array_equal(found, expected[:, :count]), (length, kind, way, count)


@pytest.mark.parametrize("way", [INSERTED, SELECTED, BY_BYTES])
def test_rows_with_strides(way):
    memory = samples(np.float32, (300, 7), 1)
    found = ordered(memory.T.copy().T.T, 20, True, way)
    columns = np.ascontiguousarray(memory)
    strided = np.lib.stride_tricks.as_strided(columns, (7, 300), (4, 28))
    assert np.array_equal(ordered(strided, 20, True, way, 2, strides=(1, 7)), found)
    assert np.array_equal(found, stable_order(memory.T, True)[:, :20])


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_it_compiles_for_every_width_of_vectors(vector_bytes):
    for dtype in ("float16", "float64", "uint8"):
        module = jit.compile_module(order_native.text(dtype, True, vector_bytes))
        assert module.address("order")


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: np.dtype(each).name)
def test_the_position_of_each_rank_of_a_long_row(dtype):
    """Some keys differ in one byte alone, so that few or many are left to be put in order."""
    body = BODY(selection_native.load(np.dtype(dtype).name))
    for length, kind in itertools.product((selection_native.FEW + 1, 200), range(3)):
        values = samples(dtype, (1, length), kind)
        expected = stable_order(values, False)[0]
        found = np.full(length, -7, np.int64)
        for rank in range(length):
            words = np.array([length, rank, 1, 0], np.int64)
            args = (ctypes.c_void_p * 3)(
                values.ctypes.data, found[rank:].ctypes.data, words.ctypes.data
            )
            body(ctypes.addressof(args), 0, 1)
        assert np.array_equal(found, expected), (length, kind)
