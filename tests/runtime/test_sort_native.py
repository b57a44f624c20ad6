"""Rows in order by NumPy's functions: the elements that a stable sort gives."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from test_order import DTYPES, samples
from tgraph.runtime import numpy_sort, sort_native
from tgraph.runtime.order import in_order

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
NATIVE = [each for each in DTYPES if sort_native.can_sort(np.dtype(each).name)]


def ordered(values, descending):
    """What the body gives for rows of two axes, all and then some of them once more."""
    rows, length = values.shape
    found = np.full((rows, length), 7).astype(values.dtype)
    down, across = (each // values.itemsize for each in values.strides)
    name = values.dtype.name
    words = np.array([length, across, numpy_sort.sort_function(name), 1, rows, down], np.int64)
    args = (ctypes.c_void_p * 3)(values.ctypes.data, found.ctypes.data, words.ctypes.data)
    body = BODY(sort_native.load(name, descending))
    body(ctypes.addressof(args), 0, rows)
    body(ctypes.addressof(args), rows // 2, rows)
    return found


def bits(values):
    """The same for every NaN."""
    unknown = values != values
    return np.where(unknown, np.nan, values).tobytes() if unknown.any() else values.tobytes()


@pytest.mark.parametrize("dtype", NATIVE, ids=lambda each: np.dtype(each).name)
@pytest.mark.parametrize("descending", [False, True])
def test_rows_in_order(dtype, descending):
    for length in (1, 2, 31, 200, 1003):
        for kind in range(3):
            values = samples(dtype, (5, length), kind)
            expected = bits(in_order(values, descending))
            assert bits(ordered(values, descending)) == expected
            columns = np.ascontiguousarray(values.T).T
            assert bits(ordered(columns, descending)) == expected


def test_types():
    names = {np.dtype(each).name for each in NATIVE}
    assert {"float32", "float64", "int8", "int64", "uint8", "bool"} <= names
    assert not names & {"float16", "bfloat16"}
